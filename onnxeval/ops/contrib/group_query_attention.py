"""GroupQueryAttention: attention over a cache of keys and values, as generative models are exported."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import FLOAT8E4M3FN, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._attention import scores_of, weighted
from onnxeval.ops.contrib._attention import checked_bias, join_heads, single, split_heads
from onnxeval.ops.contrib._cache_times import Times, times_of
from onnxeval.ops.contrib._kv_cache import coding_of, joined_cache
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT32, FLOATS, INT8, INT32, INT64, UINT8, microsoft_op
from onnxeval.values import shape_text


@microsoft_op(
    "GroupQueryAttention",
    "TTTCCMMTTPTTSSTTM",
    T=FLOATS,
    C=(*FLOATS, UINT8, INT8, FLOAT8E4M3FN),
    M=(INT32,),
    P=(INT64,),
    S=(FLOAT32,),
)
def group_query_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    seqlens_k: Tensor,
    total_sequence_length: Tensor,
    cos_cache: Tensor | None,
    sin_cache: Tensor | None,
    position_ids: Tensor | None,
    attention_bias: Tensor | None,
    head_sink: Tensor | None,
    k_scale: Tensor | None,
    v_scale: Tensor | None,
    q_norm_weight: Tensor | None,
    k_norm_weight: Tensor | None,
    query_seqlens: Tensor | None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_norm_epsilon: float | None = None,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sliding_window_cache: int = 0,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
    allocate: Allocate,
) -> tuple[Tensor, ...]:
    """(Y, present key, present value, scores) of queries (B, S, N * H), keys and values (B, S, Nk * H), or all in one.

    Each entry of the batch has ``seqlens_k`` + 1 tokens after this call; the last S of them are new, or the first
    ``query_seqlens`` of the S rows. What came before, (B, Nk, P, H), is as long as the longest, or a buffer that rows
    are written to; with ``sliding_window_cache`` a buffer of the last tokens alone, from row 0 on. Rows of a present
    behind the last token and Y of padding are zeros, or what padding gives.

    In this order: RMS norms of the heads, rotation, scores ``scale`` q k^T, ``softcap``, ``attention_bias``, the causal
    mask and the window, softmax, where ``head_sink`` or with ``smooth_softmax`` a zero adds to the sum. ``qk_output`` 1
    asks for the scores before it, 2 for those after it, both 0 for hidden keys. Keys and values go through the form
    of the cache before they are used. A first prompt uses only the first of the ``position_ids``. Sums are in float32.

    Raises ValueError where shapes, lengths and attributes do not fit together.
    Source: com.microsoft.GroupQueryAttention-1.
    """
    if (past_key is None) != (past_value is None):
        raise ValueError("past_key and past_value come together, one of them is absent")
    q, k, v = _heads(query, key, value, num_heads, kv_num_heads)
    rows = None if past_key is None else past_key.shape[2]
    times = times_of(
        _for_batch(seqlens_k, "seqlens_k", len(q)),
        None if query_seqlens is None else _for_batch(query_seqlens, "query_seqlens", len(q)),
        single(total_sequence_length, "total_sequence_length") or 0,
        q.shape[2],
        k.shape[2],
        rows,
        _window(local_window_size, causal, sliding_window_cache, past_key),
    )
    if (q_norm_weight is None) != (k_norm_weight is None):
        raise ValueError("q_norm_weight and k_norm_weight come together, one of them is absent")
    if q_norm_weight is not None and k_norm_weight is not None:
        q = _normed(q, q_norm_weight, qk_norm_epsilon if q_norm_epsilon is None else q_norm_epsilon)
        k = _normed(k, k_norm_weight, qk_norm_epsilon if k_norm_epsilon is None else k_norm_epsilon)
    if do_rotary:
        q, k = (_rotated(x, cos_cache, sin_cache, position_ids, times, rotary_interleaved) for x in (q, k))
    columns, present = [], []
    for new, past, kind, unit, name in (
        (k, past_key, k_quant_type, k_scale, "past_key"),
        (v, past_value, v_quant_type, v_scale, "past_value"),
    ):
        coding = coding_of(past, query.dtype, kind, kv_cache_bit_width, unit, *k.shape[1::2])
        coded = coding.encoded(new)
        if past is not None and past.shape != (*coded.shape[:2], rows, coded.shape[3]):
            raise ValueError(f"{name} of shape {shape_text(past.shape)} does not continue in {shape_text(coded.shape)}")
        present.append(joined_cache(past, times.kept, coded, times.new, times.dropped, times.length, allocate))
        columns.append(coding.decoded(coded if past is None else np.concatenate([_filled(past, times), coded], axis=2)))
    keys, values = columns
    positions, valid = _columns(times, keys.shape[2], k.shape[2])
    keys, values = (np.where(valid[:, np.newaxis, :, np.newaxis], x, np.float32(0)) for x in (keys, values))
    scores = scores_of(q, keys, scale or None)
    if softcap > 0:
        scores = softcap * np.tanh(scores / softcap)
    if attention_bias is not None:
        bias = checked_bias(attention_bias, (*q.shape[:3], times.total))
        place = np.clip(positions, 0, times.total - 1)[:, np.newaxis, np.newaxis]
        scores = scores + np.take_along_axis(bias, place, axis=3)
    seen = _seen(times, positions, valid, q.shape[2], local_window_size, causal)
    probabilities = _probabilities(scores, seen, head_sink, smooth_softmax)
    y = join_heads(weighted(probabilities, values)).astype(query.dtype)
    if qk_output not in (0, 1, 2):
        raise ValueError(f"qk_output {qk_output} is none of 0, 1, 2")
    if not qk_output:
        return y, *present
    stage = np.where(seen, scores if qk_output == 1 else probabilities, np.float32(0)).astype(query.dtype)
    return y, *present, _by_position(stage, positions, valid, times.total, allocate)


def _heads(
    query: Tensor, key: Tensor | None, value: Tensor | None, heads: int, kv_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values in float32 (B, heads, time, H)."""
    if kv_heads < 1 or heads < 1 or heads % kv_heads:
        raise ValueError(f"num_heads {heads} is not a positive multiple of kv_num_heads {kv_heads}")
    if (key is None) != (value is None):
        raise ValueError("key and value come together, one of them is absent")
    if key is None or value is None:
        packed = split_heads(query, heads + 2 * kv_heads, "the packed query")
        return packed[:, :heads], packed[:, heads : heads + kv_heads], packed[:, heads + kv_heads :]
    q = split_heads(query, heads, "query")
    k, v = split_heads(key, kv_heads, "key"), split_heads(value, kv_heads, "value")
    if k.shape != v.shape or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        shapes = ", ".join(shape_text(x.shape) for x in (query, key, value))
        raise ValueError(f"query, key and value have shapes {shapes}, which do not fit {heads} and {kv_heads} heads")
    return q, k, v


def _for_batch(x: Tensor, name: str, batch: int) -> Tensor:
    if x.size != batch:
        raise ValueError(f"{name} has shape {shape_text(x.shape)}, expected [{batch}]")
    return x


def _window(local: int, causal: int, sliding: int, past: Tensor | None) -> int | None:
    """The window of a sliding cache, None where there is none."""
    if local != -1 and (local < 1 or not causal):
        raise ValueError(f"local_window_size {local} is neither -1 nor positive, or attention is not causal")
    if sliding and (local < 1 or past is None):
        raise ValueError(f"sliding_window_cache needs a past and a window, local_window_size is {local}")
    return local if sliding else None


def _normed(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    if weight.shape != x.shape[3:]:
        raise ValueError(f"a norm's weight has shape {shape_text(weight.shape)}, expected {shape_text(x.shape[3:])}")
    mean = np.mean(x * x, axis=-1, keepdims=True)
    return np.asarray(x / np.sqrt(mean + np.float32(epsilon)) * weight.astype(np.float32))


def _rotated(
    x: Tensor, cos: Tensor | None, sin: Tensor | None, position_ids: Tensor | None, times: Times, interleaved: int
) -> Tensor:
    if cos is None or sin is None:
        raise ValueError("do_rotary needs cos_cache and sin_cache, one of them is absent")
    if cos.ndim != 2 or cos.shape != sin.shape or 2 * cos.shape[1] > x.shape[3]:
        raise ValueError(f"cos_cache {shape_text(cos.shape)} and sin_cache {shape_text(sin.shape)} fit no {x.shape[3]}")
    batch, _, rows, _ = x.shape
    steps = np.arange(rows)
    positions = times.first_query[:, np.newaxis] + steps
    if position_ids is not None:
        if position_ids.shape != (batch, rows) and rows:
            raise ValueError(f"position_ids have shape {shape_text(position_ids.shape)}, expected [{batch}, {rows}]")
        positions = position_ids.reshape(-1)[:1] + steps if times.is_prompt else position_ids
    positions = np.where(steps < times.queries[:, np.newaxis], positions, 0)
    result: Tensor = standard("nn", "RotaryEmbedding", 23)(
        x,
        cos.astype(np.float32),
        sin.astype(np.float32),
        positions,
        interleaved=interleaved,
        num_heads=None,
        rotary_embedding_dim=2 * cos.shape[1],
    )
    return result


def _filled(past: Tensor, times: Times) -> Tensor:
    return past[:, :, : times.kept.max(initial=0)]


def _columns(times: Times, n_columns: int, n_new: int) -> tuple[Tensor, Tensor]:
    """(B, columns): the position of the token in each column, and whether there is one."""
    rows, steps = np.arange(n_columns - n_new), np.arange(n_new)
    origin, kept, past, new = (x[:, np.newaxis] for x in (times.past - times.kept, times.kept, times.past, times.new))
    positions = np.concatenate([origin + rows, past + steps], axis=1)
    return positions, np.concatenate([rows < kept, steps < new], axis=1)


def _seen(times: Times, positions: Tensor, valid: Tensor, n_queries: int, window: int, causal: int) -> Tensor:
    """(B, 1, S, columns): which keys a query sees."""
    place = (times.first_query[:, np.newaxis] + np.arange(n_queries))[:, :, np.newaxis]
    keys = positions[:, np.newaxis]
    seen = np.broadcast_to(valid[:, np.newaxis], (len(valid), n_queries, valid.shape[1]))
    if causal:
        seen = seen & (keys <= place)
    if window > 0:
        seen = seen & (keys > place - window)
    return seen[:, np.newaxis]


def _probabilities(scores: Tensor, seen: Tensor, head_sink: Tensor | None, smooth_softmax: int) -> Tensor:
    """Softmax over the keys that are seen; zeros where there are none."""
    scores = np.where(seen, scores, np.float32(-np.inf))
    sink = np.full((1, 1, 1, 1), 0 if smooth_softmax == 1 else -np.inf, np.float32)
    if head_sink is not None:
        if head_sink.shape != scores.shape[1:2]:
            raise ValueError(f"head_sink has shape {shape_text(head_sink.shape)}, expected [{scores.shape[1]}]")
        sink = head_sink.astype(np.float32).reshape(1, -1, 1, 1)
    highest = np.maximum(scores.max(axis=-1, keepdims=True, initial=-np.inf), sink)
    highest = np.where(np.isneginf(highest), np.float32(0), highest)
    powers = np.exp(scores - highest)
    total = powers.sum(axis=-1, keepdims=True) + np.exp(sink - highest)
    return np.asarray(np.divide(powers, total, out=np.zeros_like(powers), where=total != 0))


def _by_position(x: Tensor, positions: Tensor, valid: Tensor, total: int, allocate: Allocate) -> Tensor:
    """(B, N, S, columns) -> (B, N, S, total), zero where no key is."""
    result = allocate((*x.shape[:3], total), x.dtype)
    result[...] = 0
    entry, column = np.nonzero(valid & (positions < total))
    result[entry, :, :, positions[entry, column]] = x[entry, :, :, column]
    return result

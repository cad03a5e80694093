"""GroupQueryAttention: attention over a cache of keys and values, as generative models are exported."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import FLOAT8E4M3FN, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._attention import scores_of, weighted
from onnxeval.ops.contrib._attention import checked_bias, join_heads, single
from onnxeval.ops.contrib._cache_times import Times, for_batch, times_of
from onnxeval.ops.contrib._grouped import columns_of, grouped_heads, probabilities_of, rotated, seen_keys
from onnxeval.ops.contrib._kv_cache import coding_of, joined_cache
from onnxeval.ops.contrib._typed import FLOAT32, FLOATS, INT8, INT32, INT64, UINT8, microsoft_op
from onnxeval.values import shape_text


@microsoft_op(
    "GroupQueryAttention",
    "TTTCCMMTTPTTSSTTM",
    outputs=4,
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
    operands = grouped_operands(
        query,
        key,
        value,
        past_key,
        past_value,
        seqlens_k,
        total_sequence_length,
        cos_cache,
        sin_cache,
        position_ids,
        attention_bias,
        head_sink,
        k_scale,
        v_scale,
        q_norm_weight,
        k_norm_weight,
        query_seqlens,
        causal=causal,
        do_rotary=do_rotary,
        k_norm_epsilon=k_norm_epsilon,
        k_quant_type=k_quant_type,
        kv_cache_bit_width=kv_cache_bit_width,
        kv_num_heads=kv_num_heads,
        local_window_size=local_window_size,
        num_heads=num_heads,
        q_norm_epsilon=q_norm_epsilon,
        qk_norm_epsilon=qk_norm_epsilon,
        rotary_interleaved=rotary_interleaved,
        sliding_window_cache=sliding_window_cache,
        v_quant_type=v_quant_type,
        allocate=allocate,
    )
    scores = scores_of(operands.q, operands.keys, scale or None)
    if softcap > 0:
        scores = softcap * np.tanh(scores / softcap)
    if operands.bias is not None:
        scores = scores + operands.bias
    seen = operands.seen(local_window_size, causal)
    probabilities = probabilities_of(scores, seen, head_sink, smooth_softmax)
    y = join_heads(weighted(probabilities, operands.values)).astype(query.dtype)
    if qk_output not in (0, 1, 2):
        raise ValueError(f"qk_output {qk_output} is none of 0, 1, 2")
    if not qk_output:
        return y, *operands.present
    stage = np.where(seen, scores if qk_output == 1 else probabilities, np.float32(0)).astype(query.dtype)
    return y, *operands.present, _by_position(stage, operands.positions, operands.valid, operands.times.total, allocate)


class GroupedOperands(NamedTuple):
    """What attention is of, in float32: (batch, heads, time or columns, size)."""

    q: Tensor
    keys: Tensor
    values: Tensor
    bias: Tensor | None  # (batch or 1, heads or 1, queries, columns), added to the scores
    present: tuple[Tensor, Tensor]
    positions: Tensor  # (batch, columns) of the tokens, and whether there is one
    valid: Tensor
    times: Times

    def seen(self, window: int, causal: int) -> Tensor:
        """(batch, 1, queries, columns): whether a query sees a key."""
        return seen_keys(self.times, self.positions, self.valid, self.q.shape[2], window, causal)


def grouped_operands(
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
    _head_sink: Tensor | None,
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
    rotary_interleaved: int = 0,
    sliding_window_cache: int = 0,
    v_quant_type: str = "NONE",
    allocate: Allocate,
    **_: Any,
) -> GroupedOperands:
    """What `group_query_attention` is of."""
    if (past_key is None) != (past_value is None):
        raise ValueError("past_key and past_value come together, one of them is absent")
    q, k, v = grouped_heads(query, key, value, num_heads, kv_num_heads)
    rows = None if past_key is None else past_key.shape[2]
    times = times_of(
        for_batch(seqlens_k, "seqlens_k", len(q)),
        None if query_seqlens is None else for_batch(query_seqlens, "query_seqlens", len(q)),
        single(total_sequence_length, "total_sequence_length") or 0,
        q.shape[2],
        k.shape[2],
        rows,
        _window(local_window_size, causal, sliding_window_cache, past_key),
    )
    if query_seqlens is None and past_key is not None and not times.is_prompt and q.shape[2] > 1 and len(q) > 1:
        raise ValueError(f"{q.shape[2]} queries after a past are for a batch of 1, here are {len(q)}")
    if (q_norm_weight is None) != (k_norm_weight is None):
        raise ValueError("q_norm_weight and k_norm_weight come together, one of them is absent")
    if q_norm_weight is not None and k_norm_weight is not None:
        q = _normed(q, q_norm_weight, qk_norm_epsilon if q_norm_epsilon is None else q_norm_epsilon)
        k = _normed(k, k_norm_weight, qk_norm_epsilon if k_norm_epsilon is None else k_norm_epsilon)
    if do_rotary:
        q, k = (rotated(x, cos_cache, sin_cache, position_ids, times, rotary_interleaved) for x in (q, k))
    columns, present = [], []
    # The present begins with all columns then
    is_even = not times.dropped.any() and len(set(times.kept.tolist())) < 2 and (times.new == k.shape[2]).all()
    for new, past, kind, unit, name in (
        (k, past_key, k_quant_type, k_scale, "past_key"),
        (v, past_value, v_quant_type, v_scale, "past_value"),
    ):
        coding = coding_of(past, query.dtype, kind, kv_cache_bit_width, unit, *k.shape[1::2])
        coded = coding.encoded(new)
        if past is not None and past.shape != (*coded.shape[:2], rows, coded.shape[3]):
            raise ValueError(f"{name} of shape {shape_text(past.shape)} does not continue in {shape_text(coded.shape)}")
        present.append(joined_cache(past, times.kept, coded, times.new, times.dropped, times.length, allocate))
        longest = times.kept.max(initial=0)
        if past is not None and is_even:
            coded = present[-1][:, :, : longest + coded.shape[2]]
        elif past is not None:
            coded = np.concatenate([past[:, :, :longest], coded], axis=2)
        columns.append(coding.decoded(coded))
    keys, values = columns
    positions, valid = columns_of(times, keys.shape[2], k.shape[2])
    if not valid.all():
        keys, values = (np.where(valid[:, np.newaxis, :, np.newaxis], x, np.float32(0)) for x in (keys, values))
    bias = None
    if attention_bias is not None:
        place = np.clip(positions, 0, times.total - 1)[:, np.newaxis, np.newaxis]
        bias = np.take_along_axis(checked_bias(attention_bias, (*q.shape[:3], times.total)), place, axis=3)
    return GroupedOperands(q, keys, values, bias, (present[0], present[1]), positions, valid, times)


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


def _by_position(x: Tensor, positions: Tensor, valid: Tensor, total: int, allocate: Allocate) -> Tensor:
    """(B, N, S, columns) -> (B, N, S, total), zero where no key is."""
    result = allocate((*x.shape[:3], total), x.dtype)
    result[...] = 0
    entry, column = np.nonzero(valid & (positions < total))
    result[entry, :, :, positions[entry, column]] = x[entry, :, :, column]
    return result

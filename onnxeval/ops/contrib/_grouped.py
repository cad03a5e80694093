"""Attention of grouped heads over a cache: what GroupQueryAttention and SparseAttention share."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib._attention import split_heads
from onnxeval.ops.contrib._cache_times import Times
from onnxeval.ops.contrib._standard import standard
from onnxeval.values import shape_text


def grouped_heads(
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


def rotated(
    x: Tensor, cos: Tensor | None, sin: Tensor | None, position_ids: Tensor | None, times: Times, interleaved: int
) -> Tensor:
    """(B, heads, S, H) rotated by the positions of the tokens, of which a first prompt uses only the first given."""
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
        cos.astype(np.float32, copy=False),
        sin.astype(np.float32, copy=False),
        positions,
        interleaved=interleaved,
        num_heads=None,
        rotary_embedding_dim=2 * cos.shape[1],
    )
    return result


def columns_of(times: Times, n_columns: int, n_new: int) -> tuple[Tensor, Tensor]:
    """(B, columns): the position of the token in each column, and whether there is one."""
    rows, steps = np.arange(n_columns - n_new), np.arange(n_new)
    origin, kept, past, new = (x[:, np.newaxis] for x in (times.past - times.kept, times.kept, times.past, times.new))
    positions = np.concatenate([origin + rows, past + steps], axis=1)
    return positions, np.concatenate([rows < kept, steps < new], axis=1)


def seen_keys(times: Times, positions: Tensor, valid: Tensor, n_queries: int, window: int, causal: int) -> Tensor:
    """(B, 1, S, columns): which keys a query sees."""
    place = (times.first_query[:, np.newaxis] + np.arange(n_queries))[:, :, np.newaxis]
    keys = positions[:, np.newaxis]
    seen = np.broadcast_to(valid[:, np.newaxis], (len(valid), n_queries, valid.shape[1]))
    if causal:
        seen = seen & (keys <= place)
    if window > 0:
        seen = seen & (keys > place - window)
    return seen[:, np.newaxis]


def probabilities_of(scores: Tensor, seen: Tensor, head_sink: Tensor | None, smooth_softmax: int) -> Tensor:
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

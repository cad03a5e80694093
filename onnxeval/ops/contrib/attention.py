"""Attention of onnxruntime, which projects its input to queries, keys and values itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib._attention import (
    added,
    attend,
    causal_bias,
    checked_bias,
    extended,
    join_heads,
    padding_bias,
    single,
    split_heads,
)
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOATS, INT32, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("Attention", "TTTMTTM", T=FLOATS, M=(INT32,))
def attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    mask_index: Tensor | None,
    past: Tensor | None,
    attention_bias: Tensor | None,
    past_sequence_length: Tensor | None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] = (),
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(Y, present): the input (B, S, E) times the weights (E, D + D + Dv) attends to itself in ``num_heads`` heads.

    ``qkv_hidden_sizes`` are (D, D, Dv), thirds where they are not given. ``past`` and present are keys and values
    (2, B, N, time, H); with ``past_present_share_buffer`` a buffer, of which ``past_sequence_length`` is filled. Masks
    are those of `padding_bias`. Sums are in float32.

    With ``do_rotary`` the halves of the first ``rotary_embedding_dim`` features of a head turn against each other, by
    angles of position / 10000^(2 i / dim), as in onnxruntime's device kernels.

    Raises ValueError where shapes do not fit together, and where a present is asked for of keys and values of different
    sizes. Source: com.microsoft.Attention-1.
    """
    length = single(past_sequence_length, "past_sequence_length") if past_present_share_buffer else None
    if past_present_share_buffer and past is not None and length is None:
        raise ValueError("past_present_share_buffer needs past_sequence_length, which is absent")
    results = attended(
        _projected(x, weights, bias, qkv_hidden_sizes),
        mask_index,
        past,
        attention_bias,
        length,
        do_rotary=do_rotary,
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
        scale=scale,
        unidirectional=unidirectional,
        n_outputs=n_outputs,
    )
    return tuple(result.astype(x.dtype) for result in results)


def attended(
    projected: Sequence[Tensor],
    mask_index: Tensor | None,
    past: Tensor | None,
    attention_bias: Tensor | None,
    length: int | None,
    *,
    do_rotary: int,
    mask_filter_value: float,
    num_heads: int,
    rotary_embedding_dim: int,
    scale: float,
    unidirectional: int,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(Y, present where it is asked for) in float32, of queries, keys and values (B, S, D or Dv).

    ``length`` is how much of ``past`` is filled where that is a buffer. All else is as in `attention`.
    """
    q, k, v = (split_heads(part, num_heads, "the projection") for part in projected)
    past_key, past_value = _halves(past, q, v)
    n_past = 0 if past_key is None else past_key.shape[2] if length is None else length
    if do_rotary:
        q, k = (_turned(part, n_past, rotary_embedding_dim) for part in (q, k))
    keys, present_key = extended(past_key, k, length, "past")
    values, present_value = extended(past_value, v, length, "past")
    shape = (*q.shape[:3], keys.shape[2])
    total = causal_bias(n_past, *shape[2:]) if unidirectional else None
    if mask_index is not None:
        total = added(total, padding_bias(mask_index, (shape[0], *shape[2:]), mask_filter_value))
    if attention_bias is not None:
        total = added(total, checked_bias(attention_bias, shape))
    y, _ = attend(q, keys, values, scale=scale, bias=total)
    results = (join_heads(y),)
    if n_outputs < 2:
        return results
    if q.shape != v.shape:
        raise ValueError(f"heads of keys have size {q.shape[3]}, of values {v.shape[3]}: they make no present")
    return (*results, np.stack([present_key, present_value]))


def _projected(x: Tensor, weights: Tensor, bias: Tensor | None, sizes: Sequence[int]) -> list[Tensor]:
    """Queries, keys and values (B, S, D or Dv) in float32."""
    if x.ndim != 3 or weights.ndim != 2 or weights.shape[0] != x.shape[2]:
        shapes = f"{shape_text(x.shape)} and {shape_text(weights.shape)}"
        raise ValueError(f"the input and the weights have shapes {shapes}, expected [B, S, E] and [E, D + D + Dv]")
    width = weights.shape[1]
    sizes = tuple(sizes) or (width // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != width or min(sizes) < 1 or sizes[0] != sizes[1]:
        raise ValueError(f"weights of {width} columns do not hold queries, keys and values of sizes {list(sizes)}")
    if bias is not None and bias.shape != (width,):
        raise ValueError(f"the bias has shape {shape_text(bias.shape)}, expected [{width}]")
    product = x.astype(np.float32) @ weights.astype(np.float32)
    if bias is not None:
        product += bias.astype(np.float32)
    return np.split(product, np.cumsum(sizes)[:2], axis=2)


def _halves(past: Tensor | None, q: Tensor, v: Tensor) -> tuple[Tensor, Tensor] | tuple[None, None]:
    if past is None:
        return None, None
    if q.shape != v.shape or past.ndim != 5 or past.shape[0] != 2:
        expected = f"[2, {q.shape[0]}, {q.shape[1]}, P, {q.shape[3]}], and one size for heads of keys and values"
        raise ValueError(f"past has shape {shape_text(past.shape)}, expected {expected}")
    return past[0], past[1]


def _turned(x: Tensor, n_past: int, dim: int) -> Tensor:
    width = dim or x.shape[3]
    if width % 2 or width > x.shape[3]:
        raise ValueError(f"rotary_embedding_dim {width} is no even part of heads of size {x.shape[3]}")
    places = n_past + np.arange(x.shape[2], dtype=np.float32)
    angles = places[:, np.newaxis] * 10000.0 ** (-2 * np.arange(width // 2, dtype=np.float32) / width)
    positions = np.broadcast_to(np.arange(x.shape[2]), (x.shape[0], x.shape[2]))
    result: Tensor = standard("nn", "RotaryEmbedding", 23)(
        x, np.cos(angles), np.sin(angles), positions, interleaved=0, num_heads=None, rotary_embedding_dim=width
    )
    return result

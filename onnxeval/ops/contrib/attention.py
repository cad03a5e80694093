"""Attention of onnxruntime, which projects its input to queries, keys and values itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib._attention import (
    Operands,
    added,
    attend,
    causal_bias,
    checked_bias,
    extended,
    join_heads,
    of_beams,
    padding_bias,
    single,
    split_heads,
)
from onnxeval.ops.contrib._projection import projected
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOATS, INT32, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("Attention", "TTTMTTM", outputs=2, T=FLOATS, M=(INT32,))
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
    length = filled(past, past_sequence_length, past_present_share_buffer)
    results = attended(
        projected(x, weights, bias, qkv_hidden_sizes),
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


@microsoft_op("DecoderMaskedSelfAttention", "TTTMTTMMM", outputs=2, T=(FLOAT32, FLOAT16), M=(INT32,))
def decoder_masked_self_attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor,
    mask_index: Tensor | None,
    past: Tensor,
    attention_bias: Tensor | None,
    past_sequence_length: Tensor,
    beam_width: Tensor | None,
    cache_indirection: Tensor | None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """`attention` of one token a row (B, 1, E).

    ``beam_width`` beams need ``cache_indirection`` as in MultiHeadAttention. Keys in a buffer lie in the order of the
    axes, not as onnxruntime's device kernels have them.

    Raises ValueError where shapes do not fit together. Source: com.microsoft.DecoderMaskedSelfAttention-1.
    """
    if x.ndim != 3 or x.shape[1] != 1:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected one token a row: [B, 1, E]")
    if (single(beam_width, "beam_width") or 1) > 1 and cache_indirection is None:
        raise ValueError("beams need cache_indirection, which is absent")
    length = single(past_sequence_length, "past_sequence_length") if past_present_share_buffer else None
    results = attended(
        projected(x, weights, bias, ()),
        mask_index,
        past,
        attention_bias,
        length,
        cache_indirection,
        do_rotary=do_rotary,
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        rotary_embedding_dim=0,
        scale=scale,
        unidirectional=0,
        n_outputs=n_outputs,
    )
    return tuple(result.astype(x.dtype) for result in results)


def filled(past: Tensor | None, past_sequence_length: Tensor | None, is_buffer: int) -> int | None:
    """How much of a past that is a buffer is filled; None where it is none."""
    length = single(past_sequence_length, "past_sequence_length") if is_buffer else None
    if is_buffer and past is not None and length is None:
        raise ValueError("past_present_share_buffer needs past_sequence_length, which is absent")
    return length


def attended(
    projected: Sequence[Tensor],
    mask_index: Tensor | None,
    past: Tensor | None,
    attention_bias: Tensor | None,
    length: int | None,
    indirection: Tensor | None = None,
    *,
    do_rotary: int,
    mask_filter_value: float,
    num_heads: int,
    rotary_embedding_dim: int,
    scale: float,
    unidirectional: int,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(Y, present where it is asked for) in float32; all else is as in `operands_of` and `attention`."""
    q, keys, values, bias, *present = operands_of(
        projected,
        mask_index,
        past,
        attention_bias,
        length,
        indirection,
        do_rotary=do_rotary,
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        rotary_embedding_dim=rotary_embedding_dim,
        unidirectional=unidirectional,
    )
    y, _ = attend(q, keys, values, scale=scale, bias=bias)
    return (join_heads(y),) if n_outputs < 2 else (join_heads(y), stacked(q, *present))


def operands_of(
    projected: Sequence[Tensor],
    mask_index: Tensor | None,
    past: Tensor | None,
    attention_bias: Tensor | None,
    length: int | None,
    indirection: Tensor | None = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    rotary_embedding_dim: int = 0,
    unidirectional: int = 0,
) -> Operands:
    """What attention is of, from queries, keys and values (B, S, D or Dv).

    ``length`` is how much of ``past`` is filled where that is a buffer, ``indirection`` which beam its tokens are of.
    """
    q, k, v = (split_heads(part, num_heads, "the projection") for part in projected)
    past_key, past_value = _halves(past, q, v)
    n_past = 0 if past_key is None else past_key.shape[2] if length is None else length
    if do_rotary:
        q, k = (_turned(part, n_past, rotary_embedding_dim) for part in (q, k))
    keys, present_key = extended(past_key, k, length, "past")
    values, present_value = extended(past_value, v, length, "past")
    if indirection is not None:
        keys, values = (of_beams(part, indirection, n_past) for part in (keys, values))
    shape = (*q.shape[:3], keys.shape[2])
    total = causal_bias(n_past, *shape[2:]) if unidirectional else None
    if mask_index is not None:
        total = added(total, padding_bias(mask_index, (shape[0], *shape[2:]), mask_filter_value))
    if attention_bias is not None:
        total = added(total, checked_bias(attention_bias, shape))
    return Operands(q, keys, values, total, present_key, present_value)


def stacked(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Keys and values as one present. Raises ValueError where their heads are of different sizes."""
    if q.shape[3] != values.shape[3]:
        raise ValueError(f"heads of keys have size {q.shape[3]}, of values {values.shape[3]}: they make no present")
    return np.stack([keys, values])


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

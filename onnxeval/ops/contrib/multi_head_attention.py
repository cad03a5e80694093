"""MultiHeadAttention and its form for decoding token by token."""

from __future__ import annotations

from typing import TypeAlias

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
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOATS, INT32, microsoft_op
from onnxeval.values import shape_text

#: Keys and values of before, how much of them is filled where they are buffers, and which beam each token is of.
_Past: TypeAlias = tuple[Tensor | None, Tensor | None, int | None, Tensor | None]


@microsoft_op("MultiHeadAttention", "TTTTMTTTMM", outputs=4, T=FLOATS, M=(INT32,))
def multi_head_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    bias: Tensor | None,
    key_padding_mask: Tensor | None,
    attention_bias: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    past_sequence_length: Tensor | None,
    cache_indirection: Tensor | None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float = 0.0,
    unidirectional: int = 0,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(Y, present key, present value, scores) of queries (B, S, D), keys (B, L, D) and values (B, L, Dv).

    Queries, keys and values, or keys and values, may come in one tensor (B, S, N, 3 or 2, H); keys and values of (B, N,
    L, H) are taken as they are. ``bias`` (D + D + Dv,) is added to all three. What came before, (B, N, P, H), goes
    before the keys; with ``past_sequence_length`` it is a buffer that is filled so far, and ``cache_indirection``
    (batch, beams, longest) tells from which beam of its batch each of its tokens is. Masks are those of
    `padding_bias`. The scores are those before softmax. Sums are in float32.

    Raises ValueError where shapes do not fit together. Source: com.microsoft.MultiHeadAttention-1.
    """
    operands = multi_head_operands(
        query,
        key,
        value,
        bias,
        key_padding_mask,
        attention_bias,
        past_key,
        past_value,
        past_sequence_length,
        cache_indirection,
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        unidirectional=unidirectional,
    )
    return tuple(each.astype(query.dtype) for each in _attended(operands, scale)[:n_outputs])


def multi_head_operands(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    bias: Tensor | None,
    key_padding_mask: Tensor | None,
    attention_bias: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    past_sequence_length: Tensor | None,
    cache_indirection: Tensor | None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    unidirectional: int = 0,
) -> Operands:
    """What `multi_head_attention` is of."""
    q, k, v = _split(query, key, value, bias, num_heads)
    length = None if past_key is None else single(past_sequence_length, "past_sequence_length")
    past = (past_key, past_value, length, cache_indirection)
    n_past = _n_past(past)
    causal = causal_bias(n_past, q.shape[2], n_past + k.shape[2]) if unidirectional else None
    return _operands(q, k, v, past, causal, key_padding_mask, attention_bias, mask_filter_value)


@microsoft_op("DecoderMaskedMultiHeadAttention", "TTTMTTTMMMT", T=(FLOAT32, FLOAT16), M=(INT32,))
def decoder_masked_multi_head_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    mask_index: Tensor | None,
    attention_bias: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    past_sequence_length: Tensor | None,
    beam_width: Tensor | None,
    cache_indirection: Tensor | None,
    bias: Tensor | None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    output_qk: int = 0,  # noqa: ARG001  the scores are there in any case
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`multi_head_attention` of one query a row; without a key the query (B, 1, 3 * D) holds all three.

    With ``past_present_share_buffer`` the past is a buffer (B, N, longest, H), of which ``past_sequence_length`` is
    filled; keys in it lie as onnxruntime's CPU kernel has them, in the order of the axes. ``beam_width`` beams need
    ``cache_indirection``.

    Raises ValueError where shapes do not fit together. Source: com.microsoft.DecoderMaskedMultiHeadAttention-1.
    """
    if query.ndim != 3 or query.shape[1] != 1:
        raise ValueError(f"the query has shape {shape_text(query.shape)}, expected one token a row: [B, 1, D]")
    if key is None and value is None:
        if query.shape[2] % 3:
            raise ValueError(f"a packed query has {query.shape[2]} features, expected a multiple of 3")
        query, key, value = np.split(query, 3, axis=2)
    q, k, v = _split(query, key, value, bias, num_heads)
    length = single(past_sequence_length, "past_sequence_length") if past_present_share_buffer else None
    if past_present_share_buffer and past_key is not None and length is None:
        raise ValueError("past_present_share_buffer needs past_sequence_length, which is absent")
    if (single(beam_width, "beam_width") or 1) > 1 and cache_indirection is None:
        raise ValueError("beams need cache_indirection, which is absent")
    past = (past_key, past_value, length, cache_indirection)
    operands = _operands(q, k, v, past, None, mask_index, attention_bias, mask_filter_value)
    y, present_key, present_value, scores = (each.astype(query.dtype) for each in _attended(operands, scale))
    return y, present_key, present_value, scores


def _operands(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    past: _Past,
    bias: Tensor | None,
    mask: Tensor | None,
    attention_bias: Tensor | None,
    filter_value: float,
) -> Operands:
    past_key, past_value, length, indirection = past
    if (past_key is None) != (past_value is None):
        raise ValueError("past_key and past_value come together, one of them is absent")
    keys, present_key = extended(past_key, k, length, "past_key")
    values, present_value = extended(past_value, v, length, "past_value")
    if indirection is not None and past_key is not None:
        keys, values = (of_beams(x, indirection, keys.shape[2] - k.shape[2]) for x in (keys, values))
    shape = (*q.shape[:3], keys.shape[2])
    if mask is not None:
        bias = added(bias, padding_bias(mask, (shape[0], *shape[2:]), filter_value))
    if attention_bias is not None:
        bias = added(bias, checked_bias(attention_bias, shape))
    return Operands(q, keys, values, bias, present_key, present_value)


def _attended(operands: Operands, scale: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    q, keys, values, bias, *present = operands
    y, scores = attend(q, keys, values, scale=scale, bias=bias)
    return join_heads(y), present[0], present[1], scores


def _n_past(past: _Past) -> int:
    past_key, _, length, _ = past
    return 0 if past_key is None else past_key.shape[2] if length is None else length


def _split(
    query: Tensor, key: Tensor | None, value: Tensor | None, bias: Tensor | None, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values in float32 (batch, heads, time, size), with the bias."""
    if key is None or key.ndim == 5:
        if value is not None:
            raise ValueError("there is a value though the query or the key holds it too")
        packed = _unpacked(query, 3, heads) if key is None else [split_heads(query, heads, "query")]
        q, k, v = packed if key is None else (*packed, *_unpacked(key, 2, heads))
    elif value is None:
        raise ValueError(f"there is no value beside a key of shape {shape_text(key.shape)}")
    else:
        q = split_heads(query, heads, "query")
        k, v = (
            x.astype(np.float32) if x.ndim == 4 else split_heads(x, heads, name)
            for x, name in ((key, "key"), (value, "value"))
        )
    if bias is None:
        return q, k, v
    sizes = [q.shape[3], k.shape[3], v.shape[3]]
    if bias.shape != (heads * sum(sizes),):
        raise ValueError(f"the bias has shape {shape_text(bias.shape)}, expected [{heads * sum(sizes)}]")
    parts = np.split(bias.astype(np.float32), np.cumsum([heads * size for size in sizes])[:-1])
    biases = [part.reshape(heads, 1, size) for part, size in zip(parts, sizes, strict=True)]
    if key is not None and key.ndim == 4:
        return q + biases[0], k, v
    return q + biases[0], k + biases[1], v + biases[2]


def _unpacked(x: Tensor, count: int, heads: int) -> list[Tensor]:
    """(batch, time, heads, count, size) -> ``count`` tensors (batch, heads, time, size)."""
    if x.ndim != 5 or x.shape[2:4] != (heads, count):
        raise ValueError(f"a packed tensor has shape {shape_text(x.shape)}, expected [B, L, {heads}, {count}, H]")
    return [x[:, :, :, place].transpose(0, 2, 1, 3).astype(np.float32) for place in range(count)]

"""Batches without their padding: taking it out, putting it back, and attention in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib._attention import added, attend, checked_bias, join_heads, padding_bias, split_heads
from onnxeval.ops.contrib._projection import projected
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, INT32, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("RemovePadding", "TM", T=(FLOAT32, FLOAT16), M=(INT32,))
def remove_padding(x: Tensor, sequence_token_count: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(tokens (total, H), their places (B, S), sums of the counts (B + 1,), the greatest count (1,)) of x (B, S, H).

    Of each sequence so many tokens as ``sequence_token_count`` (B,) says are no padding. The places, in x without its
    first axis, are those of the tokens, then those of the padding. Source: com.microsoft.RemovePadding-1.
    """
    if x.ndim != 3 or sequence_token_count.shape != x.shape[:1]:
        shapes = f"{shape_text(x.shape)} and {shape_text(sequence_token_count.shape)}"
        raise ValueError(f"the input and the counts have shapes {shapes}, expected [B, S, H] and [B]")
    batch, length, width = x.shape
    if np.any((sequence_token_count < 0) | (sequence_token_count > length)):
        low, high = sequence_token_count.min(), sequence_token_count.max()
        raise ValueError(f"sequences of {length} cannot hold {low} to {high} tokens")
    real = (np.arange(length) < sequence_token_count[:, np.newaxis]).reshape(-1)
    places = np.concatenate([np.flatnonzero(real), np.flatnonzero(~real)]).astype(np.int32)
    sums = np.concatenate([np.zeros(1, np.int32), np.cumsum(sequence_token_count, dtype=np.int32)])
    longest = np.full(1, sequence_token_count.max(initial=0), np.int32)
    return x.reshape(-1, width)[real], places.reshape(batch, length), sums, longest


@microsoft_op("RestorePadding", "TM", T=(FLOAT32, FLOAT16), M=(INT32,))
def restore_padding(x: Tensor, token_offset: Tensor) -> Tensor:
    """Tokens (total, H) and places (B, S) of `remove_padding` -> (B, S, H), zeros in the padding.

    Source: com.microsoft.RestorePadding-1.
    """
    if x.ndim != 2:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [tokens, H]")
    return spread(x, token_offset)


@microsoft_op("PackedAttention", "TTTMMT", T=(FLOAT32, FLOAT16), M=(INT32,))
def packed_attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor,
    token_offset: Tensor,
    cumulative_sequence_length: Tensor,
    attention_bias: Tensor | None,
    *,
    num_heads: int,
    qkv_hidden_sizes: Sequence[int] = (),
    scale: float = 0.0,
) -> Tensor:
    """Attention-1 of com.microsoft among the tokens (total, E) of each sequence -> (total, Dv).

    Places are those of `remove_padding`, and sums. Raises ValueError where shapes do not fit together.
    Source: com.microsoft.PackedAttention-1.
    """
    if x.ndim != 2:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [tokens, E]")
    parts = [part[0] for part in projected(x[np.newaxis], weights, bias, qkv_hidden_sizes)]
    sequences = (token_offset, cumulative_sequence_length)
    return _attended(parts, sequences, attention_bias, num_heads, scale).astype(x.dtype)


@microsoft_op("PackedMultiHeadAttention", "TTTTMMT", T=(FLOAT32, FLOAT16), M=(INT32,))
def packed_multi_head_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    bias: Tensor | None,
    token_offset: Tensor,
    cumulative_sequence_length: Tensor,
    attention_bias: Tensor | None,
    *,
    mask_filter_value: float = -10000.0,  # noqa: ARG001  padding is not there
    num_heads: int,
    scale: float = 0.0,
) -> Tensor:
    """MultiHeadAttention-1 among the tokens (total, D) of each sequence -> (total, Dv).

    Queries, keys and values may come in one tensor (total, N, 3, H). Places are those of `remove_padding`, and sums.
    Raises ValueError where shapes do not fit together. Source: com.microsoft.PackedMultiHeadAttention-1.
    """
    if (key is None) != (value is None):
        raise ValueError("key and value come together, one of them is absent")
    parts = [query, key, value]
    if key is None or value is None:
        if query.ndim != 4 or query.shape[1:3] != (num_heads, 3):
            raise ValueError(
                f"a packed query has shape {shape_text(query.shape)}, expected [tokens, {num_heads}, 3, H]"
            )
        parts = [query[:, :, place].reshape(len(query), -1) for place in range(3)]
    q, k, v = (np.zeros((0, 0)) if part is None else part.astype(np.float32) for part in parts)
    if not q.ndim == k.ndim == v.ndim == 2 or q.shape != k.shape or len(v) != len(q):
        shapes = f"{shape_text(q.shape)}, {shape_text(k.shape)} and {shape_text(v.shape)}"
        raise ValueError(f"query, key and value have shapes {shapes}, expected [tokens, D], [tokens, D], [tokens, Dv]")
    if bias is not None:
        widths = [x.shape[1] for x in (q, k, v)]
        if bias.shape != (sum(widths),):
            raise ValueError(f"the bias has shape {shape_text(bias.shape)}, expected [{sum(widths)}]")
        of_q, of_k, of_v = np.split(bias.astype(np.float32), np.cumsum(widths)[:2])
        q, k, v = q + of_q, k + of_k, v + of_v
    sequences = (token_offset, cumulative_sequence_length)
    return _attended([q, k, v], sequences, attention_bias, num_heads, scale).astype(query.dtype)


def _attended(
    parts: Sequence[Tensor], sequences: tuple[Tensor, Tensor], attention_bias: Tensor | None, heads: int, scale: float
) -> Tensor:
    """Of queries, keys and values (total, D or Dv) in float32."""
    places, sums = sequences
    counts = np.diff(sums)
    if sums.shape != (len(places) + 1,) or sums[0] or sums[-1] != len(parts[0]) or np.any(counts < 0):
        raise ValueError(f"{len(parts[0])} tokens of {len(places)} sequences do not end at {sums.tolist()}")
    q, k, v = (split_heads(spread(part, places), heads, "the projection") for part in parts)
    shape = (*q.shape[:3], k.shape[2])
    total = padding_bias(counts, (shape[0], *shape[2:]), float(np.finfo(np.float32).min))
    if attention_bias is not None:
        total = added(total, checked_bias(attention_bias, shape))
    y = join_heads(attend(q, k, v, scale=scale, bias=total)[0])
    return y.reshape(-1, y.shape[2])[places.reshape(-1)[: len(parts[0])]]


def spread(tokens: Tensor, places: Tensor) -> Tensor:
    """Tokens (total, H) at places (B, S) of `remove_padding` -> (B, S, H), zeros in the padding."""
    if places.ndim != 2 or places.size < len(tokens) or set(places.reshape(-1).tolist()) != set(range(places.size)):
        raise ValueError(
            f"token_offset of shape {shape_text(places.shape)} is no order of {len(tokens)} tokens and their padding"
        )
    result = np.zeros((places.size, tokens.shape[1]), tokens.dtype)
    result[places.reshape(-1)[: len(tokens)]] = tokens
    return result.reshape(*places.shape, tokens.shape[1])

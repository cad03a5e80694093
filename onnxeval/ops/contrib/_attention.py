"""What the attention operators of onnxruntime share: heads, masks, caches, and the weighing itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._attention import require_matching, scores_of, softmax, weighted
from onnxeval.values import shape_text


def split_heads(x: Tensor, heads: int, name: str) -> Tensor:
    """(batch, time, heads * size) -> float32 (batch, heads, time, size)."""
    if x.ndim != 3 or heads < 1 or x.shape[2] % heads:
        raise ValueError(f"{name} has shape {shape_text(x.shape)}, expected [batch, time, a multiple of {heads} heads]")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3).astype(np.float32, copy=False)


def join_heads(x: Tensor) -> Tensor:
    """(batch, heads, time, size) -> (batch, time, heads * size)."""
    batch, heads, time, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, time, heads * size)


class Operands(NamedTuple):
    """What attention is of, in float32: (batch, heads, time, size), and what is added to the scores."""

    q: Tensor
    keys: Tensor
    values: Tensor
    bias: Tensor | None
    present_key: Tensor
    present_value: Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, *, scale: float, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """(what each query gets, its scores): softmax(``scale`` q k^T + ``bias``) v of float32 (B, N, time, size).

    A scale of 0 means 1 / sqrt(size).
    """
    require_matching(q, k, v)
    scores = scores_of(q, k, scale or None)
    if bias is not None:
        scores = scores + bias
    return weighted(softmax(scores), v), scores


def causal_bias(n_past: int, n_queries: int, n_keys: int) -> Tensor:
    """(queries, keys): the lowest float32 where a key comes after the query; the first query is number ``n_past``."""
    later = np.arange(n_keys) > np.arange(n_queries)[:, np.newaxis] + n_past
    return np.where(later, np.finfo(np.float32).min, np.float32(0))


def padding_bias(mask: Tensor, shape: tuple[int, int, int], filter_value: float) -> Tensor | None:
    """What a mask of integers adds to scores of (batch, heads, queries, keys); ``shape`` lacks the heads.

    * (batch,): how many keys there are. (2 * batch,): where they end, then where they start. (3 * batch + 2,): how
      many there are, then sums that tell no more.
    * (batch, keys), (batch, queries, keys), (batch, 1, longest, longest): 1 where a key is seen, 0 where it is
      hidden. (batch or 1, 1) hides all or nothing, which is the same.

    What is hidden gets ``filter_value``. Raises ValueError for other shapes.
    """
    batch, n_queries, n_keys = shape
    keys = np.arange(n_keys)
    match mask.shape:
        case (size,) if size in (batch, 2 * batch, 3 * batch + 2):
            seen = keys < mask[:batch, np.newaxis]
            if size == 2 * batch:
                seen &= keys >= mask[batch:, np.newaxis]
            seen = seen[:, np.newaxis]
        case (first, second) if (first, second) == (batch, n_keys):
            seen = mask[:, np.newaxis] > 0
        case (first, 1) if first in (1, batch):
            return None
        case (first, second, third) if (first, second, third) == shape:
            seen = mask > 0
        case (first, 1, longest, last) if first == batch and longest == last >= n_keys:
            seen = mask[:, 0, n_keys - n_queries : n_keys, :n_keys] > 0
        case _:
            given = shape_text(mask.shape)
            raise ValueError(f"the mask has shape {given} for {shape_text(shape)} of batch, queries, keys")
    return np.where(seen, np.float32(0), np.float32(filter_value))[:, np.newaxis]


def added(bias: Tensor | None, more: Tensor | None) -> Tensor | None:
    """Both where there are both, broadcast."""
    if bias is None or more is None:
        return more if bias is None else bias
    return bias + more


def checked_bias(attention_bias: Tensor, shape: tuple[int, int, int, int]) -> Tensor:
    """``attention_bias`` (batch or 1, heads or 1, queries, keys) in float32; ValueError for other shapes."""
    if (
        attention_bias.ndim != 4
        or attention_bias.shape[2:] != shape[2:]
        or any(size not in (1, wanted) for size, wanted in zip(attention_bias.shape, shape, strict=True))
    ):
        raise ValueError(f"attention_bias has shape {shape_text(attention_bias.shape)}, expected {shape_text(shape)}")
    return attention_bias.astype(np.float32)


def extended(past: Tensor | None, new: Tensor, length: int | None, name: str) -> tuple[Tensor, Tensor]:
    """(all keys or values, the cache to hand on) of a cache (B, N, time, size) and what is new.

    Without ``length`` the cache is as long as what came before. Else it is a buffer of which so much is filled: what is
    new goes in after that, and the rest of it is kept.
    """
    if past is None:
        return new, new
    if past.ndim != 4 or past.shape[:2] + past.shape[3:] != new.shape[:2] + new.shape[3:]:
        raise ValueError(f"{name} of shape {shape_text(past.shape)} does not continue in {shape_text(new.shape)}")
    past = past.astype(np.float32, copy=False)
    if length is None:
        whole = np.concatenate([past, new], axis=2)
        return whole, whole
    end = length + new.shape[2]
    if length < 0 or end > past.shape[2]:
        raise ValueError(f"{name} has room for {past.shape[2]}, {length} are there and {new.shape[2]} are new")
    buffer = past.copy()
    buffer[:, :, length:end] = new
    return buffer[:, :, :end], buffer


def single(value: Tensor | None, name: str) -> int | None:
    """The number in a tensor of one element; None where there is no tensor."""
    if value is None:
        return None
    if value.size != 1:
        raise ValueError(f"{name} has shape {shape_text(value.shape)}, expected a single number")
    return int(value.item())


def of_beams(x: Tensor, indirection: Tensor, n_past: int) -> Tensor:
    """(batch * beams, N, time, size): each of the first ``n_past`` tokens is taken from the beam that is told.

    ``indirection`` (batch, beams, longest) holds beams of the same batch.
    """
    rows = len(x)
    if indirection.ndim != 3 or indirection.shape[0] * indirection.shape[1] != rows or indirection.shape[2] < n_past:
        given = shape_text(indirection.shape)
        raise ValueError(f"cache_indirection has shape {given} for {rows} rows and {n_past} tokens")
    batch, beams, _ = indirection.shape
    source = indirection[:, :, :n_past]
    if np.any((source < 0) | (source >= beams)):
        raise ValueError(f"cache_indirection holds {source.min()} to {source.max()}, there are {beams} beams")
    source = (source + beams * np.arange(batch)[:, np.newaxis, np.newaxis]).reshape(rows, n_past)
    past = x[source, :, np.arange(n_past)].transpose(0, 2, 1, 3)
    return np.concatenate([past, x[:, :, n_past:]], axis=2)

"""Scaled dot products between grouped heads, shared by Attention and FlexAttention, and those that models spell out."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType, Tensor, dtype_of
from onnxeval.ops._precision import in_float32

#: ``softmax_precision`` may name these.
_PRECISIONS: tuple[DType, ...] = (np.dtype(np.float16), BFLOAT16, np.dtype(np.float32), np.dtype(np.float64))


def working_dtype(*tensors: Tensor) -> DType:
    """The type products are summed in: float64 where a tensor has it, else float32."""
    double = np.dtype(np.float64)
    return double if double in {x.dtype for x in tensors} else np.dtype(np.float32)


def precision_of(element_type: int) -> DType:
    """The dtype that ``softmax_precision`` names. Raises ValueError where it is no float of 16 bits or more."""
    dtype = dtype_of(element_type)
    if dtype not in _PRECISIONS:
        raise ValueError(f"softmax_precision {element_type} is {dtype.name}, expected a float of 16, 32 or 64 bits")
    return dtype


def require_matching(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise ValueError unless q (B, Hq, L, D), k (B, H, S, D) and v (B, H, S, Dv) fit, Hq a multiple of H."""
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(f"Q, K and V have ranks {q.ndim}, {k.ndim} and {v.ndim}, expected 4")
    if k.shape != (q.shape[0], *k.shape[1:3], q.shape[3]) or v.shape[:3] != k.shape[:3]:
        raise ValueError(f"Q {list(q.shape)}, K {list(k.shape)} and V {list(v.shape)} do not fit")
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ValueError(f"{q.shape[1]} heads of Q cannot share {k.shape[1]} heads of K and V evenly")


def scores_of(q: Tensor, k: Tensor, scale: float | None) -> Tensor:
    """``scale * q @ k^T``: (B, Hq, L, D), (B, H, S, D) -> (B, Hq, L, S); the default is 1 / sqrt(D).

    Query head h uses key head h // (Hq / H). Both sides take the root of the scale, which keeps products in range.
    """
    if scale is None:
        scale = 1 / math.sqrt(q.shape[3] or 1)
    root = math.sqrt(abs(scale))
    keys = (k * root)[:, :, None].swapaxes(-1, -2)
    result: Tensor = _grouped(q * math.copysign(root, scale), k.shape[1]) @ keys
    return result.reshape(*q.shape[:3], k.shape[2])


def weighted(probabilities: Tensor, v: Tensor) -> Tensor:
    """``probabilities @ v``: (B, Hq, L, S), (B, H, S, Dv) -> (B, Hq, L, Dv), heads grouped as in `scores_of`."""
    result: Tensor = _grouped(probabilities, v.shape[1]) @ v[:, :, None]
    return result.reshape(*probabilities.shape[:3], v.shape[3])


def softmax(scores: Tensor) -> Tensor:
    """Over the last axis; 16-bit floats are computed in float32 and rounded once."""
    wide = scores.astype(working_dtype(scores), copy=False)
    powers = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    result: Tensor = powers / powers.sum(axis=-1, keepdims=True)
    return result.astype(scores.dtype, copy=False)


def _grouped(x: Tensor, groups: int) -> Tensor:
    """(B, Hq, L, X) -> (B, H, Hq / H, L, X)."""
    batch, heads, *rest = x.shape
    return x.reshape(batch, groups, heads // groups, *rest)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, scale: float, nan_to_zero: bool
) -> Tensor:
    """softmax(``query`` @ ``key`` * ``scale`` + ``mask``) @ ``value``, softmax over the last axis.

    query (..., L, E), key (..., E, S), value (..., S, V); the mask broadcasts into the scores or over them. A row that
    sees nothing, or NaN, has NaN for weights, or zeros with ``nan_to_zero``. 16-bit floats are rounded after each
    operator: scores may overflow.
    """
    kinds = [x.dtype for x in (query, key, value, mask) if x is not None]
    if len({*kinds}) != 1 or kinds[0] not in _PRECISIONS:
        raise TypeError(f"attention over {', '.join(map(str, kinds))}")
    if kinds[0].itemsize == 2:
        return attend_by_operators(query, key, value, mask, scale=scale, nan_to_zero=nan_to_zero)
    scores = np.matmul(query, key)
    if scale != 1:
        scores *= scores.dtype.type(scale)
    if mask is not None:
        scores = scores + mask if np.broadcast(scores, mask).shape != scores.shape else np.add(scores, mask, out=scores)
    if scores.size:
        scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    sums = scores.sum(-1, keepdims=True)
    scores /= sums
    if nan_to_zero and (unseeing := np.isnan(sums)).any():
        scores[np.broadcast_to(unseeing, scores.shape)] = 0
    result: Tensor = np.matmul(scores, value)
    return result


@in_float32
def _product(a: Tensor, b: Tensor) -> Tensor:
    result: Tensor = np.matmul(a, b)
    return result


@in_float32
def _times(x: Tensor, factor: float) -> Tensor:
    return x * np.float32(factor)


def attend_by_operators(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    scale: float,
    nan_to_zero: bool,
    product: Callable[[Tensor, Tensor], Tensor] = _product,
    softmax: Callable[[Tensor], Tensor] = softmax,
) -> Tensor:
    """`attend` of 16-bit floats, one operator after the other."""
    scores = product(query, key)
    if scale != 1:
        scores = _times(scores, scale)
    if mask is not None:
        scores = scores + mask
    weights = softmax(scores)
    if nan_to_zero:
        weights = np.where(np.isnan(weights), weights.dtype.type(0), weights)
    return product(weights, value)

"""What recognised steps run where no operator of the standard says it: readable, with few temporaries."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, scale: float, nan_to_zero: bool
) -> Tensor:
    """softmax(``query`` @ ``key`` * ``scale`` + ``mask``) @ ``value``, softmax over the last axis.

    query (..., L, E), key (..., E, S), value (..., S, V); the mask broadcasts into the scores or over them. A row that
    sees nothing, or NaN, has NaN for weights, or zeros with ``nan_to_zero``.
    """
    kinds = [x.dtype for x in (query, key, value, mask) if x is not None]
    if len({*kinds}) != 1 or kinds[0].kind != "f":
        raise TypeError(f"attention over {', '.join(map(str, kinds))}")
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


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """``x`` * cos + (the second half of its last axis, negated, before the first) * sin."""
    half = x.shape[-1] // 2
    turned = np.empty_like(x)
    np.negative(x[..., half:], out=turned[..., : x.shape[-1] - half])
    turned[..., x.shape[-1] - half :] = x[..., :half]
    result: Tensor = x * cos + turned * sin
    return result

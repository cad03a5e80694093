"""Inverse matrices, and the distances between rows of two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOAT64, microsoft_op
from onnxeval.values import shape_text

#: Differences that are held at a time.
_PART = 1 << 22


@microsoft_op("Inverse", "T", T=(FLOAT16, FLOAT32, FLOAT64))
@in_float32
def inverse(x: Tensor) -> Tensor:
    """The inverses of matrices (..., N, N). Raises ValueError where one has none. Source: com.microsoft.Inverse-1."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [..., N, N]")
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise ValueError("a matrix of the input has no inverse") from None


@microsoft_op("CDist", "TT", T=(FLOAT32, FLOAT64))
def cdist(a: Tensor, b: Tensor, *, metric: str = "sqeuclidean") -> Tensor:
    """(M, N), (K, N) -> (M, K): the distance of each row of the one from each of the other.

    Raises ValueError where shapes do not fit together and for metrics that need more than the rows.
    Source: com.microsoft.CDist-1.
    """
    if metric not in _METRICS:
        raise ValueError(f"metric {metric!r} is none of {', '.join(_METRICS)}")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(
            f"A and B have shapes {shape_text(a.shape)} and {shape_text(b.shape)}, expected [M, N] and [K, N]"
        )
    result = np.empty((len(a), len(b)), a.dtype)
    step = max(1, _PART // max(1, b.size))
    for start in range(0, len(a), step):
        result[start : start + step] = _METRICS[metric](a[start : start + step, np.newaxis], b)
    return result


def _cosine(x: Tensor, y: Tensor) -> Tensor:
    lengths = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    return np.asarray(1 - (x * y).sum(axis=-1) / lengths)


def _centred(x: Tensor) -> Tensor:
    return np.asarray(x - x.mean(axis=-1, keepdims=True))


#: Of rows (m, 1, N) and (K, N).
_METRICS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = MappingProxyType(
    {
        "euclidean": lambda x, y: np.sqrt(np.square(x - y).sum(axis=-1)),
        "sqeuclidean": lambda x, y: np.square(x - y).sum(axis=-1),
        "cityblock": lambda x, y: np.abs(x - y).sum(axis=-1),
        "chebyshev": lambda x, y: np.abs(x - y).max(axis=-1, initial=0),
        "braycurtis": lambda x, y: np.abs(x - y).sum(axis=-1) / np.abs(x + y).sum(axis=-1),
        "cosine": _cosine,
        "correlation": lambda x, y: _cosine(_centred(x), _centred(y)),
        "hamming": lambda x, y: np.mean(x != y, axis=-1),
    }
)

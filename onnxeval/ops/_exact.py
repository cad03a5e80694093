"""Exact products of matrices of 8-bit integers, each of which stands for its distance to a zero point.

They are left to the matrix product of floats, which is many times faster than that of integers: float32 holds whole
numbers up to 2^24 exactly, float64 those up to 2^53.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor

#: The greatest distance of an 8-bit integer to another of its type.
_FARTHEST = 255
_EXACT_IN_FLOAT32 = 1 << 24


def distances(x: Tensor, zero_point: Tensor | float | None) -> Tensor:
    """``x - zero_point`` of 8-bit integers, in float32."""
    if zero_point is None:
        return x.astype(np.float32)
    return np.subtract(x, zero_point, dtype=np.float32)


def right_factor(b: Tensor, zero_point: Tensor | None) -> Tensor:
    """Distances (..., K, N) to multiply others with.

    They are in float32 where it holds all sums of products with other distances, else in float64.
    """
    right = distances(b, zero_point)
    if right.shape[0 if right.ndim == 1 else -2] * _FARTHEST**2 > _EXACT_IN_FLOAT32:
        heaviest = np.abs(right).sum(axis=-2 if right.ndim > 1 else 0).max(initial=0)
        if heaviest * _FARTHEST > _EXACT_IN_FLOAT32:
            return right.astype(np.float64)
    return right


def wrapped(sums: Tensor) -> Tensor:
    """Exact sums in int32, which wrap around."""
    if sums.dtype == np.float64:
        sums = sums.astype(np.int64)
    return sums.astype(np.int32)

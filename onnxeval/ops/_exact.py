"""Exact products of matrices of 8-bit integers, each of which stands for its distance to a zero point.

They are left to the matrix product of floats, which is many times faster than that of integers: float32 holds whole
numbers up to 2^24 exactly, float64 those up to 2^53.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import DType, Tensor, integer_range

#: The greatest distance of an 8-bit integer to another of its type.
_FARTHEST = 255
_EXACT_IN_FLOAT32 = 1 << 24


def distances(x: Tensor, zero_point: Tensor | float | None) -> Tensor:
    """``x - zero_point`` of 8-bit integers, in float32."""
    if zero_point is None:
        return x.astype(np.float32)
    return np.subtract(x, zero_point, dtype=np.float32)


def right_factor(b: Tensor, zero_point: Tensor | None) -> Tensor:
    """Distances (..., K, N) to multiply others with, in a type that holds all sums of products exactly."""
    return summable(distances(b, zero_point), -2 if b.ndim > 1 else 0)


def summable(factors: Tensor, axis: int | tuple[int, ...]) -> Tensor:
    """Distances in float32 where that holds all sums along ``axis`` of products with others, else in float64."""
    if factors.size * _FARTHEST**2 > _EXACT_IN_FLOAT32:
        heaviest = np.abs(factors).sum(axis=axis).max(initial=0)
        if heaviest * _FARTHEST > _EXACT_IN_FLOAT32:
            return factors.astype(np.float64)
    return factors


def requantized(steps: Tensor, multiplier: Tensor, divisor: float, zero_point: int, dtype: DType) -> Tensor:
    """round(steps * multiplier / divisor) + zero_point in an integer type; the quotient is in float64, ties go to even.

    What is out of range saturates.
    """
    scaled = np.asarray(steps * multiplier)
    scaled /= divisor
    np.rint(scaled, out=scaled)
    scaled += zero_point
    return np.clip(scaled, *integer_range(dtype), out=scaled).astype(dtype)


def wrapped(sums: Tensor) -> Tensor:
    """Exact sums in int32, which wrap around."""
    if sums.dtype == np.float64:
        sums = sums.astype(np.int64)
    return sums.astype(np.int32)

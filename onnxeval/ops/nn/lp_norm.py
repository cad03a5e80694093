"""LpNormalization and MeanVarianceNormalization: to unit norm, or to zero mean and unit variance."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axes, normalise_axis
from onnxeval.ops._precision import in_float32
from onnxeval.ops.nn._moments import centred
from onnxeval.registry import op

# The function body of MeanVarianceNormalization adds this to the standard deviation; no attribute holds it.
_MVN_EPSILON = 1e-9


@op("LpNormalization", versions=(1, 22))
@in_float32
def lp_normalization(x: Tensor, *, axis: int, p: int) -> Tensor:
    """``x`` / (L1 or L2 norm along ``axis``); zero where the norm is. Source: LpNormalization-22."""
    if p not in (1, 2):
        raise ValueError(f"p {p} is neither 1 nor 2")
    axis = normalise_axis(axis, x.ndim)
    # The quotient does not change when x is scaled; by a power of two that is exact and keeps squares in range.
    largest = np.max(np.abs(x), axis=axis, keepdims=True, initial=0)
    _, exponent = np.frexp(np.where(np.isfinite(largest), largest, 1))
    near_one = np.ldexp(x, -exponent)
    if p == 1:
        norm = np.sum(np.abs(near_one), axis=axis, keepdims=True)
    else:
        norm = np.sqrt(np.sum(np.square(near_one), axis=axis, keepdims=True))
    result: Tensor = np.divide(near_one, norm, out=np.zeros_like(x), where=norm != 0)
    return result


@op("MeanVarianceNormalization", versions=(9, 13))
@in_float32
def mean_variance_normalization(x: Tensor, *, axes: tuple[int, ...]) -> Tensor:
    """(x - mean) / standard deviation over ``axes``, all of them where none are named; zero where x is constant.

    Source: MeanVarianceNormalization-13 and its function body.
    """
    deviation, _, variance = centred(x, normalise_axes(axes, x.ndim) or tuple(range(x.ndim)))
    return deviation / (np.sqrt(variance) + _MVN_EPSILON)

"""Softmax, LogSoftmax and Hardmax.

Before version 13 the input was flattened to a matrix at `axis` (1 by default) and whole rows were normalised; since
13 one axis is (the last by default).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op


@op("Softmax", versions=(13,))
@in_float32
def softmax(x: Tensor, *, axis: int) -> Tensor:
    """exp(x) over its sum along ``axis``. Source: Softmax-13."""
    below = _below_the_greatest(x, axis)
    raised: Tensor = np.exp(below, out=below)
    raised /= raised.sum(axis, keepdims=True)
    return raised


@op("LogSoftmax", versions=(13,))
@in_float32
def log_softmax(x: Tensor, *, axis: int) -> Tensor:
    """The logarithm of Softmax. Source: LogSoftmax-13."""
    below = _below_the_greatest(x, axis)
    below -= np.log(np.exp(below).sum(axis, keepdims=True))
    return below


@op("Hardmax", versions=(13,))
def hardmax(x: Tensor, *, axis: int) -> Tensor:
    """1 at the first of the greatest along ``axis`` (NaN is greatest), 0 elsewhere. Source: Hardmax-13."""
    axis = normalise_axis(axis, x.ndim)
    result = np.zeros_like(x)
    if x.size:
        np.put_along_axis(result, np.expand_dims(x.argmax(axis), axis), 1, axis)
    return result


def _below_the_greatest(x: Tensor, axis: int) -> Tensor:
    axis = normalise_axis(axis, x.ndim)
    result: Tensor = x - x.max(axis, keepdims=True, initial=-np.inf)
    return result


def _by_rows(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The kernel on (a_0 * ... * a_(axis-1), a_axis * ...), in the shape of the input."""

    def flattened(x: Tensor, *, axis: int) -> Tensor:
        axis = normalise_axis(axis, x.ndim)
        matrix = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
        return kernel(matrix, axis=1).reshape(x.shape)

    return flattened


for _name, _kernel in {"Softmax": softmax, "LogSoftmax": log_softmax, "Hardmax": hardmax}.items():
    op(_name, versions=(1, 11))(_by_rows(_kernel))

"""Activations made of pieces: the line for positive numbers, something smaller for negative ones.

Versions differ in types alone, but for the slope of PRelu: up to 6 it is one number or one a channel, since 7 it
broadcasts one way, from the back. NaN stays NaN, but ThresholdedRelu gives 0, as nothing is above a threshold.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._broadcast import one_way
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("Relu", versions=(1, 6, 13, 14))
def relu(x: Tensor) -> Tensor:
    """max(0, x). Source: Relu-14."""
    return np.maximum(x, np.zeros((), x.dtype))


@op("LeakyRelu", versions=(1, 6, 16))
@in_float32
def leaky_relu(x: Tensor, *, alpha: float) -> Tensor:
    """x, times ``alpha`` where it is negative. Source: LeakyRelu-16."""
    return _bent(x, np.array(alpha, x.dtype))


def _bent(x: Tensor, slope: Tensor) -> Tensor:
    """x, times the slope where it is negative."""
    if not np.isfinite(slope).all():
        return np.where(x < 0, slope * x, x)
    result: Tensor = np.minimum(x, 0) * slope  # the sum of both halves is quicker than a choice between them
    result += np.maximum(x, 0)
    return result


@op("PRelu", versions=(7, 9, 16))
@in_float32
def parametric_relu(x: Tensor, slope: Tensor) -> Tensor:
    """x, times ``slope`` where it is negative. Raises ValueError where slope does not fit into x. Source: PRelu-16."""
    one_way(slope, x.shape, name="slope")
    return _bent(x, slope)


@op("PRelu", versions=(1, 6))
def parametric_relu_by_channel(x: Tensor, slope: Tensor) -> Tensor:
    """PRelu whose slope is one number, one a channel (the second axis), or of x's shape. Source: PRelu-6."""
    if slope.size == 1:
        slope = slope.reshape(())
    elif slope.ndim == 1 and x.ndim >= 2 and slope.shape[0] == x.shape[1]:
        slope = slope.reshape(-1, *(1,) * (x.ndim - 2))
    elif slope.shape != x.shape:
        raise ValueError(f"slope of shape {shape_text(slope.shape)} is not one a channel of {shape_text(x.shape)}")
    return parametric_relu(x, slope)


@op("ThresholdedRelu", versions=(10, 22))
@in_float32
def thresholded_relu(x: Tensor, *, alpha: float) -> Tensor:
    """Keep x where it is above ``alpha``, else 0. Source: ThresholdedRelu-22."""
    return np.where(x > alpha, x, x.dtype.type(0))


@op("Elu", versions=(1, 6, 22))
@in_float32
def elu(x: Tensor, *, alpha: float) -> Tensor:
    """x, or ``alpha`` (exp(x) - 1) where it is negative. Source: Elu-22."""
    result = np.expm1(np.minimum(x, 0))
    result *= alpha
    return np.where(x < 0, result, x)  # never a sum: ``alpha`` times 0 may be NaN


@op("Selu", versions=(1, 6, 22))
@in_float32
def selu(x: Tensor, *, alpha: float, gamma: float) -> Tensor:
    """``gamma`` times Elu. Version 1 has rounder constants as defaults. Source: Selu-22."""
    return gamma * elu(x, alpha=alpha)


@op("Celu", versions=(12, 28))
@in_float32
def celu(x: Tensor, *, alpha: float) -> Tensor:
    """max(0, x) + min(0, ``alpha`` (exp(x / ``alpha``) - 1)). Source: Celu-28."""
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0)


@op("HardSigmoid", versions=(1, 6, 22))
@in_float32
def hard_sigmoid(x: Tensor, *, alpha: float, beta: float) -> Tensor:
    """max(0, min(1, ``alpha`` x + ``beta``)). Source: HardSigmoid-22."""
    line = alpha * x
    line += beta
    return np.clip(line, 0, 1)


@op("HardSwish", versions=(14, 22))
@in_float32
def hard_swish(x: Tensor) -> Tensor:
    """The product of x and HardSigmoid(x) with alpha 1/6 and beta 1/2. Source: HardSwish-22."""
    return times_hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@in_float32
def times_hard_sigmoid(x: Tensor, *, alpha: float, beta: float) -> Tensor:
    """The product of x and HardSigmoid(x)."""
    result: Tensor = x * hard_sigmoid(x, alpha=alpha, beta=beta)
    return result

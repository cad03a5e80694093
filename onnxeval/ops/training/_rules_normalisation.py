"""Derivatives of Softmax, of normalisations and of losses, most of them through what defines them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from onnxeval.dtypes import dtype_of
from onnxeval.ops._axes import normalise_axes, normalise_axis
from onnxeval.ops.training._algebra import (
    absolute,
    cast,
    equal,
    exponential,
    mean,
    reshape,
    root,
    total,
    where,
)
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._tape import Gradients, Node, Variable, apply, rule

# Softmax


@rule("Softmax", 13)
def _softmax(node: Node, g: Variable) -> Gradients:
    y, axis = node.output(), node.attributes["axis"]
    return (lambda: y * (g - total(g * y, [axis])),)


@rule("LogSoftmax", 13)
def _log_softmax(node: Node, g: Variable) -> Gradients:
    y, axis = node.output(), node.attributes["axis"]
    return (lambda: g - exponential(y) * total(g, [axis]),)


def _by_rows(op_type: str) -> Callable[..., Variable]:
    def rows(x: Variable, *, axis: int) -> Variable:
        first = normalise_axis(axis, x.ndim)
        matrix = reshape(x, (math.prod(x.shape[:first]), math.prod(x.shape[first:])))
        return reshape(apply(op_type, matrix, axis=1), x.shape)

    return rows


for _name in ("Softmax", "LogSoftmax"):
    definition(_name, 11)(_by_rows(_name))


# Normalisations


def _centred(x: Variable, axes: Sequence[int]) -> tuple[Variable, Variable, Variable]:
    """(x - mean, mean, variance) over axes, which stay with a size of 1."""
    average = mean(x, axes)
    deviation = x - average
    return deviation, average, mean(deviation * deviation, axes)


def _standardised(x: Variable, axes: Sequence[int], epsilon: float) -> Variable:
    deviation, _, variance = _centred(x, axes)
    return deviation / root(variance + epsilon)


def _by_channel(parameter: Variable, x: Variable) -> Variable:
    """(C) -> (C, 1, ..., 1), to go with (N, C, D1, ..., Dn)."""
    return reshape(parameter, (parameter.size, *(1,) * (x.ndim - 2)))


@definition("LayerNormalization", 17)
def _layer_normalization(
    x: Variable, scale: Variable, bias: Variable | None, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Variable, Variable, Variable]:
    axes = range(normalise_axis(axis, x.ndim), x.ndim)
    deviation, average, variance = _centred(cast(x, dtype_of(stash_type)), axes)
    inverse = 1 / root(variance + epsilon)
    result = cast(deviation * inverse, x.dtype) * scale
    return result if bias is None else result + bias, average, inverse


@definition("RMSNormalization", 23)
def _rms_normalization(x: Variable, scale: Variable, *, axis: int, epsilon: float, stash_type: int) -> Variable:
    values = cast(x, dtype_of(stash_type))
    size = root(mean(values * values, range(normalise_axis(axis, x.ndim), x.ndim)) + epsilon)
    return cast(cast(values / size, x.dtype), scale.dtype) * scale


@definition("InstanceNormalization", 22)
def _instance_normalization(x: Variable, scale: Variable, bias: Variable, *, epsilon: float) -> Variable:
    return _standardised(x, range(2, x.ndim), epsilon) * _by_channel(scale, x) + _by_channel(bias, x)


@definition("GroupNormalization", 21)
def _group_normalization(
    x: Variable, scale: Variable, bias: Variable, *, num_groups: int, epsilon: float, stash_type: int
) -> Variable:
    groups = cast(_grouped(x, num_groups), dtype_of(stash_type))
    normal = reshape(cast(_standardised(groups, (2,), epsilon), x.dtype), x.shape)
    return normal * _by_channel(scale, x) + _by_channel(bias, x)


@definition("GroupNormalization", 18)
def _group_normalization_per_group(
    x: Variable, scale: Variable, bias: Variable, *, num_groups: int, epsilon: float
) -> Variable:
    groups = _grouped(x, num_groups)
    normal = _standardised(groups, (2,), epsilon)
    return reshape(normal * _by_channel(scale, groups) + _by_channel(bias, groups), x.shape)


def _grouped(x: Variable, num_groups: int) -> Variable:
    batch = x.shape[0]
    return reshape(x, (batch, num_groups, x.size // (batch * num_groups)))


@definition("MeanVarianceNormalization", 13)
def _mean_variance_normalization(x: Variable, *, axes: tuple[int, ...]) -> Variable:
    deviation, _, variance = _centred(x, normalise_axes(axes, x.ndim) or range(x.ndim))
    return deviation / (root(variance) + 1e-9)  # as in its function body


@definition("LpNormalization", 22)
def _lp_normalization(x: Variable, *, axis: int, p: int) -> Variable:
    sums = total(absolute(x) if p == 1 else x * x, [axis])
    nothing = equal(sums, 0)
    norm = where(nothing, 1, sums)
    return where(nothing, 0, x / (norm if p == 1 else root(norm)))

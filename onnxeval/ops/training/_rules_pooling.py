"""Derivatives of pools, and of LRN, which looks through windows too.

Of equal maxima in a window the first has the gradient, of a whole plane all share it evenly. A norm has the
derivative 0 at 0.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from onnxeval.ops._windows import spatial_axes, windows_of
from onnxeval.ops.training._algebra import absolute, equal, filled, integers, mean, power, reshape, total, where
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._rules_convolution import Geometry
from onnxeval.ops.training._tape import Variable, apply, apply_all


def _sums(x: Variable, geometry: Geometry) -> Variable:
    """(N, C, *sizes) -> (N, C, *counts): the sum of what each window sees."""
    planes = reshape(x, (x.shape[0] * x.shape[1], 1, *geometry.sizes))
    ones = filled(x, 1, (1, 1, *geometry.kernel))
    return reshape(geometry.correlate(planes, ones), (*x.shape[:2], *geometry.counts))


@definition("AveragePool", 22)
def _average_pool(x: Variable, *, count_include_pad: int = 0, **geometry: Any) -> Variable:
    windows = windows_of(x.shape[2:], **geometry)
    counted = [w.padded() if count_include_pad else w.seen() for w in windows]
    divisors = reduce(np.multiply.outer, [count.astype(x.dtype) for count in counted])
    return _sums(x, Geometry.of(windows)) / x.tape.constant(np.asarray(divisors))


@definition("GlobalAveragePool", 22)
def _global_average_pool(x: Variable) -> Variable:
    return mean(x, spatial_axes(x.value))


@definition("MaxPool", 22)
def _max_pool(x: Variable, **geometry: Any) -> Variable:
    _, places = apply_all("MaxPool", x, **{**geometry, "storage_order": 0, "n_outputs": 2})
    elements = reshape(x, (x.size,))
    return reshape(apply("Gather", elements, places, axis=0), places.shape)


@definition("GlobalMaxPool", 22)
def _global_max_pool(x: Variable) -> Variable:
    return apply("ReduceMax", x, integers(spatial_axes(x.value)), keepdims=1, noop_with_empty_axes=0)


@definition("LpPool", 22, 1)
def _lp_pool(x: Variable, *, p: float, **geometry: Any) -> Variable:
    return _root(_sums(power(absolute(x), p), Geometry.of(windows_of(x.shape[2:], **geometry))), p)


@definition("GlobalLpPool", 22, 1)
def _global_lp_pool(x: Variable, *, p: float) -> Variable:
    return _root(total(power(absolute(x), p), spatial_axes(x.value)), p)


def _root(sums: Variable, p: float) -> Variable:
    nothing = equal(sums, 0)
    return where(nothing, 0, power(where(nothing, 1, sums), 1 / p))


@definition("LRN", 13)
def _lrn(x: Variable, *, size: int, alpha: float, beta: float, bias: float) -> Variable:
    batch, channels = x.shape[:2]
    rest = int(np.prod(x.shape[2:]))
    over_channels = Geometry(
        sizes=(channels, rest),
        kernel=(size, 1),
        counts=(channels, rest),
        strides=(1, 1),
        dilations=(1, 1),
        begins=((size - 1) // 2, 0),
    )
    squares = reshape(x * x, (batch, 1, channels, rest))
    energy = reshape(_sums(squares, over_channels), x.shape)
    return x / power(energy * (alpha / size) + bias, beta)

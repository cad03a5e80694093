"""ConvInteger and QLinearConv over one or two axes, with constant weights, exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import DType, Tensor, integer_range
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import EIGHT_BITS, contiguous, is_bytes
from onnxeval.fast._planes import geometry, planar
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.contrib.qlinear_conv import qlinear_conv as any_layout_conv
from onnxeval.ops.nn._correlate import conv_windows
from onnxeval.ops.nn.conv_integer import conv_integer, qlinear_conv
from onnxeval.registry import Kernel

#: Products of distances whose sum has 32 bits.
_MOST_DEPTH = 33025
_FARTHEST = 255**2
#: Attributes that a node of com.microsoft may leave out.
_NO_GEOMETRY: Mapping[str, Any] = {
    "auto_pad": "NOTSET",
    "channels_last": 0,
    "dilations": None,
    "group": 1,
    "kernel_shape": None,
    "pads": None,
    "strides": None,
}
_MOST_PLANS = 64
_MOST_GEOMETRY = 2**31 - 1


class Target(NamedTuple):
    """What becomes of the sums: integers of 8 bits, from ``lowest`` to ``highest``."""

    dtype: DType
    zero: int
    lowest: int
    highest: int


class _Plan(NamedTuple):
    """What the shape of an input decides."""

    planes: tuple[int, ...]  # that shape, with two spatial axes
    counts: tuple[int, ...]  # the result's spatial sizes
    geometry: tuple[int, ...]  # strides, dilations and the padding before, of two axes


class IntegerConvolution:
    """Convolutions with packed weights, to int32 or, with a target, to 8 bits."""

    def __init__(self, weights: Tensor, filters: Any, attributes: Mapping[str, Any], target: Target | None) -> None:
        kernels = native()
        assert kernels is not None
        self.run = kernels.convolve_integers
        self.weights, self.filters, self.attributes = weights, filters, attributes
        self.dtype: DType = np.dtype(np.int32) if target is None else target.dtype
        self.numbers = (0, 0, 0) if target is None else target[1:]
        self.plans: dict[tuple[int, ...], _Plan | None] = {}

    def __call__(self, x: Tensor, x_zero: Tensor | None, allocate: Allocate) -> Tensor | None:
        """The result; None where this is for the readable kernel."""
        if not is_bytes(x) or x.ndim != self.weights.ndim or not x.size:
            return None
        if x_zero is not None and (x_zero.size != 1 or x_zero.dtype != x.dtype):
            return None
        if x.shape in self.plans:
            plan = self.plans[x.shape]
        else:
            plan = self._plan_for(x)
            if len(self.plans) < _MOST_PLANS:
                self.plans[x.shape] = plan
        if plan is None:
            return None
        result = allocate((x.shape[0], self.weights.shape[0], *plan.counts), self.dtype)
        planes = contiguous(x).reshape(plan.planes)
        self.run(planes, x_zero, self.filters, planar(result), *self.numbers, *plan.geometry)
        return result

    def _plan_for(self, x: Tensor) -> _Plan | None:
        windows = conv_windows(x, self.weights, **self.attributes)
        numbers = geometry(windows)
        counts = tuple(axis.number for axis in windows)
        reach = math.prod(axis.number * axis.stride + axis.dilation * axis.kernel for axis in windows)
        if min(numbers[:4]) < 1 or min(numbers) < 0 or max(numbers) > _MOST_GEOMETRY or not all(counts):
            return None
        # What lies around the input is copied with it: no more of it than there is of both input and result
        if reach > 16 * (math.prod(x.shape[2:]) + math.prod(counts)) + (1 << 16):
            return None
        planes = (*x.shape[:2], 1, x.shape[2]) if len(windows) == 1 else x.shape
        return _Plan(planes, counts, numbers)


def packed_filters(
    weights: Tensor | None,
    zero_point: Tensor | None,
    attributes: Mapping[str, Any],
    bias: Tensor | None = None,
    multiplier: Tensor | None = None,
    divisor: float = 1.0,
) -> Any:
    """Weights (M, C / group, *kernel) as the compiled kernel wants them; None where it does not take them.

    The zero point is one number or one a map, the bias and the multiplier are vectors of M.
    """
    kernels = native()
    assert kernels is not None
    if weights is None or weights.dtype not in EIGHT_BITS or weights.ndim not in (3, 4) or not weights.size:
        return None
    group = attributes["group"]
    maps, depth = weights.shape[0], math.prod(weights.shape[1:])
    if depth > _MOST_DEPTH or maps % group:
        return None
    zeros, biases = np.zeros(maps, np.int32), np.zeros(maps, np.int32)
    if zero_point is not None:
        if zero_point.dtype != weights.dtype or (zero_point.size != 1 and zero_point.shape != (maps,)):
            return None
        zeros += zero_point.reshape(-1).astype(np.int32)
    if bias is not None:
        if bias.dtype != np.int32 or bias.shape != (maps,):
            return None
        if int(np.abs(bias.astype(np.int64)).max()) + depth * _FARTHEST >= 2**31:
            return None
        biases += bias
    steps = (*_steps(attributes["strides"], weights.ndim), *_steps(attributes["dilations"], weights.ndim))
    if len(steps) != 4 or min(steps) < 1 or max(steps) > _MOST_GEOMETRY:
        return None
    return kernels.IntegerFilters(planar(contiguous(weights)), group, steps, zeros, biases, multiplier, divisor)


def _steps(given: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Strides or dilations of two spatial axes."""
    steps = (1,) * (rank - 2) if given is None else tuple(given)
    return (1, *steps) if rank == 3 else steps


@replaces(conv_integer)
def bind_conv_integer(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """ConvInteger whose weights and their zero points are constant."""
    weights, zero_point = constants[1], constants[3] if len(constants) > 3 else None
    filters = packed_filters(weights, zero_point, attributes)
    if filters is None or weights is None:
        return None
    convolve = IntegerConvolution(weights, filters, attributes, None)

    @replayable
    def convolved(
        x: Tensor,
        w: Tensor,
        x_zero_point: Tensor | None,
        w_zero_point: Tensor | None,
        *,
        allocate: Allocate,
        **given: Any,
    ) -> Tensor:
        result = convolve(x, x_zero_point, allocate) if w is weights and w_zero_point is zero_point else None
        if result is None:
            return conv_integer(x, w, x_zero_point, w_zero_point, allocate=allocate, **given)
        return result

    return convolved


@replaces(qlinear_conv)
def bind_qlinear_conv(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """QLinearConv of which all but the input is constant."""
    convolve = _requantizing(constants, attributes)
    return None if convolve is None else replayable(_QLinearConv(convolve, tuple(constants), qlinear_conv))


@replaces(any_layout_conv)
def bind_any_layout_conv(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """The same of com.microsoft, with channels first."""
    geometry = {**_NO_GEOMETRY, **attributes}
    if geometry.pop("channels_last"):
        return None
    convolve = _requantizing(constants, geometry)
    return None if convolve is None else replayable(_QLinearConv(convolve, tuple(constants), any_layout_conv))


class _QLinearConv:
    """QLinearConv with the constants that it was bound with."""

    def __init__(self, convolve: IntegerConvolution, constants: tuple[Tensor | None, ...], readable: Kernel) -> None:
        self.convolve, self.constants, self.readable = convolve, constants, readable

    def __call__(self, *inputs: Tensor | None, allocate: Allocate, **given: Any) -> Tensor:
        result = None
        if all(value is known for value, known in zip(inputs[1:], self.constants[1:], strict=False)):
            x, x_zero_point = inputs[0], inputs[2]
            assert x is not None
            result = self.convolve(x, x_zero_point, allocate)
        if result is None:
            whole: Tensor = self.readable(*inputs, allocate=allocate, **given)
            return whole
        return result


def _requantizing(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> IntegerConvolution | None:
    """The convolution of a QLinearConv; None where a constant is not known, or not one that makes sense."""
    x_scale, x_zero, weights, w_scale, w_zero, y_scale, y_zero = constants[1:8]
    bias = constants[8] if len(constants) > 8 else None
    if x_scale is None or x_zero is None or w_zero is None or y_zero is None or weights is None:
        return None
    if w_scale is None or y_scale is None or y_zero.dtype not in EIGHT_BITS or y_zero.size != 1:
        return None
    multiplier = multipliers(x_scale, w_scale, y_scale, weights.shape[0])
    if multiplier is None or x_zero.size != 1 or (w_zero.size != w_scale.size and w_zero.size != 1):
        return None
    filters = packed_filters(weights, w_zero, attributes, bias, multiplier, float(y_scale.item()))
    if filters is None:
        return None
    target = Target(y_zero.dtype, int(y_zero.item()), *integer_range(y_zero.dtype))
    return IntegerConvolution(weights, filters, attributes, target)


def multipliers(left: Tensor, right: Tensor, divisor: Tensor, count: int) -> Tensor | None:
    """The products of two scales for each of ``count``, in float64.

    None where a quotient of them and the divisor is out of range.
    """
    if left.size != 1 or divisor.size != 1 or (right.size != 1 and right.shape != (count,)):
        return None
    if not all(scale.dtype == np.float32 for scale in (left, right, divisor)) or not divisor.item():
        return None
    factors = left.item() * right.astype(np.float64).reshape(-1)
    result = np.ascontiguousarray(np.broadcast_to(factors, (count,)))
    with np.errstate(all="ignore"):
        quotients = (result / divisor.item()).astype(np.float32)
    return result if np.isfinite(quotients).all() and np.isfinite(divisor.item()) else None

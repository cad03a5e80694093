"""Integers that stand for multiples of a scale, counted from a zero point, and floats that become such integers."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import DType, Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops._scalar import scalar

EIGHT_BITS: tuple[DType, ...] = (np.dtype(np.uint8), np.dtype(np.int8))


_TINY = np.finfo(np.float32).smallest_subnormal


def distances(x: Tensor, zero_point: Tensor | float | None) -> Tensor:
    """``x - zero_point`` in float64, which holds sums of 2^35 products of such distances exactly."""
    exact = x.astype(np.float64)
    return exact if zero_point is None else exact - zero_point


def dequantized(x: Tensor, scale: Tensor, zero_point: Tensor | None, *, name: str) -> Tensor:
    """What ``x`` stands for, in float32 as DequantizeLinear has it.

    Raises ValueError where the scale or the zero point of the tensor called ``name`` is not one number.
    """
    steps = x.astype(np.float32)
    if zero_point is not None:
        steps -= np.float32(scalar(zero_point, name=f"{name}_zero_point"))
    return np.asarray(steps * np.float32(scalar(scale, name=f"{name}_scale")))


def quantized(x: Tensor, scale: Tensor, zero_point: Tensor | None, dtype: DType, *, name: str) -> Tensor:
    """round(x / scale) + zero_point in ``dtype``, as QuantizeLinear has it.

    The quotient is that of the type of ``x``. Ties round to even, what is out of range saturates, NaN becomes 0.
    Raises ValueError where the scale or the zero point of the tensor called ``name`` is not one number.
    """
    steps = np.rint(np.asarray(x / x.dtype.type(scalar(scale, name=f"{name}_scale"))))
    if zero_point is not None:
        steps = steps + x.dtype.type(scalar(zero_point, name=f"{name}_zero_point"))
    return convert(np.asarray(steps), dtype)


def dynamically_quantized(x: Tensor, axis: tuple[int, ...] | None = None) -> tuple[Tensor, Tensor]:
    """float32 -> how many steps of a scale each element is, and the scale: the range of ``x`` and 0 has 255 of them.

    Both are float32. There is one scale for each place outside the axes; by default there is one.
    Source: DynamicQuantizeLinear-11.
    """
    low = np.minimum.reduce(x, axis, keepdims=True, initial=0)
    high = np.maximum.reduce(x, axis, keepdims=True, initial=0)
    scale = (high - low) / np.float32(255)
    divisor = np.maximum(scale, _TINY)  # of nothing but zeros, the scale is 0, and so are the steps
    zero_point = np.minimum(np.rint(-low / divisor), np.float32(255))
    steps = x / divisor
    np.rint(steps, out=steps)
    return np.clip(steps, -zero_point, 255 - zero_point, out=steps), scale

"""QuantizeLinear and DequantizeLinear: numbers as multiples of a scale, in few bits.

Per-axis scales arrived in version 13, float 8 and ``saturate`` in 19, blocks and ``output_dtype`` of QuantizeLinear in
21, ``precision`` and ``output_dtype`` of DequantizeLinear in 23.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import FLOAT8E8M0, DType, Tensor, dtype_of, integer_range, is_float, is_integer, name_of
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._cast import convert
from onnxeval.registry import op

_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)


@op("QuantizeLinear", versions=(13, 19, 21, 23, 24, 25, 28))
def quantize_linear(
    x: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor | None,
    *,
    axis: int,
    saturate: int = 1,
    output_dtype: int = 0,
    block_size: int = 0,
    precision: int = 0,
) -> Tensor:
    """saturate(round(x / y_scale) + y_zero_point), of the shape of ``x``; ties round to even.

    The scale and the zero point are of one shape: a scalar, a vector along ``axis``, or the shape of ``x`` with
    ceil(size / block_size) on ``axis``. The output is of type ``output_dtype``, else that of the zero point, else
    uint8; float types round to themselves, and ``saturate`` is that of Cast. The division is done in ``precision``,
    else in the type of the scale, in float32 where that is float8e8m0. NaN becomes 0 in an integer type.

    ValueError where shapes or types do not fit. Source: QuantizeLinear-28.
    """
    target = _quantized_type(y_zero_point, output_dtype)
    scale, zero_point = _spread(x, y_scale, y_zero_point, axis, block_size)
    steps = np.asarray(_divided(x, scale, dtype_of(precision) if precision else y_scale.dtype))
    if is_integer(target):
        np.rint(steps, out=steps)
    if zero_point is not None:
        steps += convert(zero_point, steps.dtype)
    if is_integer(target):
        np.clip(steps, *integer_range(target), out=steps)
    return convert(steps, target, saturate=bool(saturate))


@op("QuantizeLinear", versions=(10,))
def quantize_by_a_scalar(x: Tensor, y_scale: Tensor, y_zero_point: Tensor | None) -> Tensor:
    """As `quantize_linear`, with a scalar scale. Source: QuantizeLinear-10."""
    _require_scalar(y_scale)
    return quantize_linear(x, y_scale, y_zero_point, axis=0)


@op("DequantizeLinear", versions=(13, 19, 21, 23, 24, 25, 28))
def dequantize_linear(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    *,
    axis: int,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    """(x - x_zero_point) * x_scale, of the shape of ``x``.

    Scale and zero point are as for `quantize_linear`; int32 has no zero point but 0. The output is of type
    ``output_dtype``, else that of the scale; the product is computed in float32 and rounded to it once.

    ValueError where shapes or types do not fit. Source: DequantizeLinear-28.
    """
    target = dtype_of(output_dtype) if output_dtype else x_scale.dtype
    if target == FLOAT8E8M0:
        raise ValueError("a scale of type float8e8m0 needs an output_dtype, which is not given")
    scale, zero_point = _spread(x, x_scale, x_zero_point, axis, block_size)
    steps = x
    if zero_point is not None:
        if x.dtype == np.int32 and np.any(zero_point):
            raise ValueError("int32 has no zero point but 0")
        exact = _FLOAT32 if is_float(x.dtype) else np.dtype(np.int32)
        steps = convert(x, exact) - convert(zero_point, exact)
    return convert(convert(steps, _FLOAT32) * convert(scale, _FLOAT32), target)


@op("DequantizeLinear", versions=(10,))
def dequantize_by_a_scalar(x: Tensor, x_scale: Tensor, x_zero_point: Tensor | None) -> Tensor:
    """As `dequantize_linear`, with a scalar scale. Source: DequantizeLinear-10."""
    _require_scalar(x_scale)
    return dequantize_linear(x, x_scale, x_zero_point, axis=0)


def _require_scalar(scale: Tensor) -> None:
    if scale.size != 1:
        raise ValueError(f"the scale is of shape {list(scale.shape)}, expected a scalar before opset 13")


def _quantized_type(zero_point: Tensor | None, output_dtype: int) -> DType:
    if zero_point is None:
        target = dtype_of(output_dtype) if output_dtype else np.dtype(np.uint8)
        widest = 2 if is_integer(target) else 1
        if target.itemsize > widest or target in (np.bool_, FLOAT8E8M0):
            raise ValueError(f"output_dtype {name_of(target)} is not a quantized type")
        return target
    if output_dtype and dtype_of(output_dtype) != zero_point.dtype:
        raise ValueError(
            f"output_dtype is {name_of(dtype_of(output_dtype))}, the zero point {name_of(zero_point.dtype)}"
        )
    return zero_point.dtype


def _spread(
    x: Tensor, scale: Tensor, zero_point: Tensor | None, axis: int, block_size: int
) -> tuple[Tensor, Tensor | None]:
    """The scale and the zero point as tensors that broadcast to ``x``."""
    if zero_point is not None and zero_point.shape != scale.shape and not zero_point.size == scale.size == 1:
        raise ValueError(f"the zero point is of shape {list(zero_point.shape)}, the scale {list(scale.shape)}")
    spread = _spread_one(scale, x.shape, axis, block_size)
    return spread, None if zero_point is None else _spread_one(zero_point, x.shape, axis, block_size)


def _spread_one(parameter: Tensor, shape: tuple[int, ...], axis: int, block_size: int) -> Tensor:
    if block_size < 0:
        raise ValueError(f"block_size {block_size} is negative")
    if block_size and parameter.ndim == len(shape) > 0:
        along = normalise_axis(axis, len(shape))
        size = shape[along]
        blocks = (*shape[:along], -(-size // block_size), *shape[along + 1 :])
        if parameter.shape != blocks:
            raise ValueError(
                f"the scale is of shape {list(parameter.shape)}, blocks of {block_size} make {list(blocks)}"
            )
        repeated = parameter.repeat(min(block_size, size), axis=along)
        return repeated[(slice(None),) * along + (slice(size),)]
    if parameter.ndim <= 1 and parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim != 1:
        raise ValueError(f"the scale is of shape {list(parameter.shape)} for {list(shape)} and block_size {block_size}")
    along = normalise_axis(axis, len(shape))
    if parameter.size != shape[along]:
        raise ValueError(f"the scale has {parameter.size} elements, axis {along} of the tensor {shape[along]}")
    return parameter.reshape(-1, *(1,) * (len(shape) - 1 - along))


def _divided(x: Tensor, scale: Tensor, precision: DType) -> Tensor:
    """The quotient rounded to ``precision``, as float32 or float64."""
    if is_integer(precision):
        return convert(x, _FLOAT64) / convert(scale, _FLOAT64)
    if precision == FLOAT8E8M0:
        precision = _FLOAT32
    wide = _FLOAT64 if precision == _FLOAT64 else _FLOAT32
    dividend, divisor = (convert(convert(operand, precision), wide) for operand in (x, scale))
    return convert(convert(dividend / divisor, precision), wide)

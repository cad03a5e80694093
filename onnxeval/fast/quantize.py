"""QuantizeLinear and DequantizeLinear between float32 and 8 bits, in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor, dtype_of
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import EIGHT_BITS, FLOAT32, contiguous, is_bytes, is_float32
from onnxeval.fast.engine import native
from onnxeval.ops.contrib import quantize_linear as contrib
from onnxeval.ops.quantization.linear import (
    dequantize_by_a_scalar,
    dequantize_linear,
    quantize_by_a_scalar,
    quantize_linear,
)
from onnxeval.registry import Kernel

_UINT8 = np.dtype(np.uint8)


def _bind_quantize(readable: Kernel) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel | None]:
    def bind(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
        kernels = native()
        assert kernels is not None
        asked = attributes.get("output_dtype", 0)
        target = dtype_of(asked) if asked else None
        precision = attributes.get("precision", 0)
        axis = attributes.get("axis", 1)
        if precision and dtype_of(precision) != FLOAT32:
            return None

        @replayable
        def quantized(x: Tensor, y_scale: Tensor, y_zero_point: Tensor | None = None, **given: Any) -> Tensor:
            dtype = target or _UINT8 if y_zero_point is None else y_zero_point.dtype
            layout = layout_of(x.shape, y_scale, y_zero_point, axis)
            fits = dtype in EIGHT_BITS and target in (None, dtype) and is_float32(x) and is_float32(y_scale)
            if layout is None or not fits:
                return readable(x, y_scale, y_zero_point, **given)  # type: ignore[no-any-return]
            result = empty(x.shape, dtype)
            kernels.quantize_rows(contiguous(x), result, contiguous(y_scale), y_zero_point, *layout)
            return result

        return quantized

    return bind


def _bind_dequantize(readable: Kernel) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel | None]:
    def bind(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
        kernels = native()
        assert kernels is not None
        asked = attributes.get("output_dtype", 0)
        axis = attributes.get("axis", 1)
        if asked and dtype_of(asked) != FLOAT32:
            return None

        @replayable
        def dequantized(x: Tensor, x_scale: Tensor, x_zero_point: Tensor | None = None, **given: Any) -> Tensor:
            layout = layout_of(x.shape, x_scale, x_zero_point, axis)
            known = x_zero_point is None or x_zero_point.dtype == x.dtype
            if layout is None or not (known and is_bytes(x) and is_float32(x_scale)):
                return readable(x, x_scale, x_zero_point, **given)  # type: ignore[no-any-return]
            result = empty(x.shape, np.float32)
            kernels.dequantize_rows(contiguous(x), result, contiguous(x_scale), x_zero_point, *layout)
            return result

        return dequantized

    return bind


_QUANTIZE: tuple[Kernel, ...] = (quantize_linear, quantize_by_a_scalar, contrib.quantize_linear)
_DEQUANTIZE: tuple[Kernel, ...] = (dequantize_linear, dequantize_by_a_scalar, contrib.dequantize_linear)
for _kernel in _QUANTIZE:
    replaces(_kernel)(_bind_quantize(_kernel))
for _kernel in _DEQUANTIZE:
    replaces(_kernel)(_bind_dequantize(_kernel))


def layout_of(
    shape: tuple[int, ...], scale: Tensor, zero_point: Tensor | None, axis: int
) -> tuple[int, int, bool] | None:
    """Rows, their length, and whether scales go along them; None where it is not one number nor along an axis."""
    size = math.prod(shape)
    if not size or scale.ndim > 1 or (zero_point is not None and zero_point.size != scale.size):
        return None
    if zero_point is not None and (zero_point.ndim > 1 or not zero_point.flags.c_contiguous):
        return None
    if scale.size == 1:
        return 1, size, False
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis < len(shape) or scale.size != shape[axis]:
        return None
    inner = math.prod(shape[axis + 1 :])
    return (size // inner, inner, False) if inner > 1 else (size // shape[axis], shape[axis], True)

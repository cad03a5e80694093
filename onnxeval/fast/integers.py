"""Products of 8-bit integers with constant weights, exact, by the instructions that processors have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces
from onnxeval.fast._checks import contiguous, is_float32, known_float32
from onnxeval.fast.engine import native
from onnxeval.ops.contrib.dynamic_quantize import dynamic_quantize_matmul, matmul_integer_to_float
from onnxeval.ops.math.quantized_matmul import matmul_integer
from onnxeval.registry import Kernel

EIGHT_BITS = (np.dtype(np.int8), np.dtype(np.uint8))


def packed_integers(weights: Tensor | None, zero_point: Tensor | None) -> Any:
    """(K, N) weights as the compiled kernels want them; None where they are not constant matrices of 8-bit integers.

    The zero point is one number or one a column.
    """
    kernels = native()
    assert kernels is not None
    if weights is None or weights.dtype not in EIGHT_BITS or weights.ndim != 2 or not weights.size:
        return None
    zeros = np.zeros(weights.shape[1], np.int32)
    if zero_point is not None:
        if zero_point.dtype != weights.dtype or zero_point.size not in (1, weights.shape[1]) or zero_point.ndim > 1:
            return None
        zeros += zero_point.reshape(-1).astype(np.int32)
    return kernels.Integers(contiguous(weights), zeros)


@replaces(matmul_integer)
def bind_matmul_integer(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """MatMulInteger with one zero point for all of the left factor."""
    kernels = native()
    assert kernels is not None
    if len(constants) > 3 and constants[3] is not None:
        packed = packed_integers(constants[1], constants[3])
    else:
        packed = packed_integers(constants[1], None)
    if packed is None:
        return None
    weights, known_zero = constants[1], constants[3] if len(constants) > 3 else None
    assert weights is not None

    def multiplied(
        a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None, **given: Any
    ) -> Tensor:
        fits = a.dtype in EIGHT_BITS and a.ndim >= 2 and a.size and a.shape[-1] == weights.shape[0]
        if not fits or b_zero_point is not known_zero or (a_zero_point is not None and a_zero_point.size != 1):
            return matmul_integer(a, b, a_zero_point, b_zero_point, **given)
        rows = contiguous(a).reshape(-1, a.shape[-1])
        zeros = np.full(len(rows), 0 if a_zero_point is None else a_zero_point.item(), np.int32)
        result = np.empty((*a.shape[:-1], weights.shape[1]), np.int32)
        kernels.multiply_integers(rows, zeros, packed, result, 0.0, None, None)
        return result

    return multiplied


@replaces(dynamic_quantize_matmul)
def bind_dynamic_quantize_matmul(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """DynamicQuantizeMatMul whose other operands are constant."""
    multiply = _scaled(constants[1], constants[2], *(*constants[3:], None, None)[:2])
    if multiply is None:
        return None

    def multiplied(a: Tensor, *rest: Any, **given: Any) -> Tensor:
        codes = dynamically_quantized(a) if is_float32(a) and a.size else None
        result = None if codes is None else multiply(codes[0], codes[1], codes[2], rest[-1])
        return dynamic_quantize_matmul(a, *rest, **given) if result is None else result

    return multiplied


@replaces(matmul_integer_to_float)
def bind_matmul_integer_to_float(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """MatMulIntegerToFloat with one scale and zero point for all of the left factor, all else constant."""
    multiply = _scaled(constants[1], constants[3], *(*constants[5:], None, None)[:2])
    if multiply is None:
        return None

    def multiplied(a: Tensor, b: Tensor, a_scale: Tensor, *rest: Any, **given: Any) -> Tensor:
        zero = rest[1]
        one = a_scale.size == 1 and is_float32(a_scale) and (zero is None or zero.size == 1)
        origin = 0 if zero is None or not one else int(zero.item())
        result = multiply(a, float(a_scale.item()), origin, rest[-1]) if one else None
        return matmul_integer_to_float(a, b, a_scale, *rest, **given) if result is None else result

    return multiplied


def _scaled(
    weights: Tensor | None, scale: Tensor | None, zero_point: Tensor | None, bias: Tensor | None
) -> Callable[[Tensor, float, int, Tensor | None], Tensor | None] | None:
    """What multiplies bytes, their scale and zero point with constant weights, and adds the bias that it is given.

    It gives None where that is for the readable kernel.
    """
    kernels = native()
    assert kernels is not None
    packed = packed_integers(weights, zero_point)
    if packed is None or weights is None or scale is None or not known_float32(scale) or scale.ndim > 1:
        return None
    depth, width = weights.shape
    if scale.size not in (1, width) or (bias is not None and not (known_float32(bias) and bias.shape == (width,))):
        return None
    scales = np.ascontiguousarray(np.broadcast_to(scale, (width,)))

    def multiply(a: Tensor, a_scale: float, a_zero: int, added: Tensor | None) -> Tensor | None:
        if a.dtype not in EIGHT_BITS or a.ndim < 2 or not a.size or a.shape[-1] != depth or added is not bias:
            return None
        rows = contiguous(a).reshape(-1, depth)
        result = np.empty((*a.shape[:-1], width), np.float32)
        zeros = np.full(len(rows), a_zero, np.int32)
        kernels.multiply_integers(rows, zeros, packed, result, a_scale, scales, added)
        return result

    return multiply


def dynamically_quantized(x: Tensor) -> tuple[Tensor, float, int] | None:
    """Bytes, their scale and zero point; None where there is no scale."""
    low, high = min(np.float32(0), x.min()), max(np.float32(0), x.max())
    scale = np.float32((high - low) / np.float32(255))
    if not (0 < scale < np.inf):
        return None
    zero = np.rint(-low / scale)
    steps = np.rint(x / scale)
    steps += zero
    return np.clip(steps, 0, 255).astype(np.uint8), float(scale), int(zero)

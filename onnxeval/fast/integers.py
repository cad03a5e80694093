"""Products of 8-bit integers with constant weights, exact, by the instructions that processors have for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import EIGHT_BITS, contiguous, is_float32, known_float32
from onnxeval.fast._shared import shared
from onnxeval.fast.engine import native
from onnxeval.ops.contrib.dynamic_quantize import (
    dynamic_quantize_matmul,
    dynamic_quantize_matmul_of_tanh,
    matmul_integer_to_float,
)
from onnxeval.ops.math.quantized_matmul import matmul_integer
from onnxeval.ops.quantization.dynamic import dynamic_quantize_linear
from onnxeval.registry import Kernel


class PackedIntegers:
    """(K, N) weights as the compiled kernels want them; ``matrix`` is None for all but 8-bit integers.

    The zero point is one number or one a column.
    """

    def __init__(self, weights: Tensor, zero_point: Tensor | None) -> None:
        self.constants = weights, zero_point
        self.matrix: Any = None
        kernels = native()
        assert kernels is not None
        if weights.dtype not in EIGHT_BITS or weights.ndim != 2 or not weights.size:
            return
        zeros = np.zeros(weights.shape[1], np.int32)
        if zero_point is not None:
            if zero_point.dtype != weights.dtype or zero_point.size not in (1, weights.shape[1]) or zero_point.ndim > 1:
                return
            zeros += zero_point.reshape(-1).astype(np.int32)
        self.matrix = kernels.Integers(contiguous(weights), zeros)


@replaces(dynamic_quantize_linear)
def bind_dynamic_quantize_linear(_: Sequence[Tensor | None], __: Mapping[str, Any]) -> Kernel:
    """DynamicQuantizeLinear."""
    kernels = native()
    assert kernels is not None

    @replayable
    def quantized(x: Tensor) -> tuple[Tensor, ...]:
        if not (is_float32(x) and x.size and x.ndim):
            return dynamic_quantize_linear(x)
        codes, scale, zero = empty(x.shape, np.uint8), empty((), np.float32), empty((), np.uint8)
        kernels.quantize(_side_by_side(x), codes, scale, zero)
        return codes, scale, zero

    return quantized


@replaces(matmul_integer)
def bind_matmul_integer(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """MatMulInteger with one zero point for all of the left factor."""
    kernels = native()
    assert kernels is not None
    weights, known_zero = constants[1], constants[3] if len(constants) > 3 else None
    packed = None if weights is None else shared(PackedIntegers, weights, known_zero)
    if weights is None or packed is None or packed.matrix is None:
        return None
    depth, width = weights.shape

    @replayable
    def multiplied(
        a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None, **given: Any
    ) -> Tensor:
        if b_zero_point is not known_zero or not _has_rows(a, depth) or not _is_one(a_zero_point, a):
            return matmul_integer(a, b, a_zero_point, b_zero_point, **given)
        result = empty((*a.shape[:-1], width), np.int32)
        rows = contiguous(a).reshape(-1, depth)
        kernels.multiply_integers(rows, None, a_zero_point, packed.matrix, result, None, None)
        return result

    return multiplied


@replaces(dynamic_quantize_matmul)
def bind_dynamic_quantize_matmul(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """DynamicQuantizeMatMul whose other operands are constant."""
    weights = _ScaledWeights.of(*constants[1:])
    if weights is None:
        return None

    @replayable
    def multiplied(a: Tensor, b: Tensor, b_scale: Tensor, *rest: Any) -> Tensor:
        if not (is_float32(a) and a.size and a.ndim >= 2 and a.shape[-1] == weights.depth and weights.are_with(*rest)):
            return dynamic_quantize_matmul(a, b, b_scale, *rest)
        return weights.times(a, None, is_tanh=False)

    return multiplied


@replaces(dynamic_quantize_matmul_of_tanh)
def bind_dynamic_quantize_matmul_of_tanh(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """The tangent of one tensor or of a sum of two, quantized as it is computed: it has no memory of its own."""
    weights = _ScaledWeights.of(*constants[2:])
    if weights is None:
        return None

    @replayable
    def multiplied(x: Tensor, added: Tensor | None, b: Tensor, b_scale: Tensor, *rest: Any) -> Tensor:
        last = (weights.depth,)
        fits = is_float32(x) and x.size and x.shape[-1:] == last and weights.are_with(*rest)
        if added is None and fits and x.ndim >= 2:
            return weights.times(x, None, is_tanh=True)
        if added is not None and fits and is_float32(added) and added.size and added.shape[-1:] == last:
            with suppress(ValueError):  # the readable kernel says why they do not fit
                shape = np.broadcast_shapes(x.shape, added.shape)
                if len(shape) >= 2:
                    return weights.times(np.broadcast_to(x, shape), np.broadcast_to(added, shape), is_tanh=True)
        return dynamic_quantize_matmul_of_tanh(x, added, b, b_scale, *rest)

    return multiplied


@replaces(matmul_integer_to_float)
def bind_matmul_integer_to_float(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """MatMulIntegerToFloat with one scale and zero point for all of the left factor, all else constant."""
    kernels = native()
    assert kernels is not None
    weights = _ScaledWeights.of(constants[1], constants[3], *constants[5:])
    if weights is None:
        return None

    @replayable
    def multiplied(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, *rest: Any) -> Tensor:
        a_zero = rest[0] if rest else None
        fits = _has_rows(a, weights.depth) and _is_one(a_zero, a) and weights.are_with(*rest[1:])
        if not fits or a_scale.size != 1 or not is_float32(a_scale):
            return matmul_integer_to_float(a, b, a_scale, b_scale, *rest)
        result = empty((*a.shape[:-1], weights.width), np.float32)
        rows = contiguous(a).reshape(-1, weights.depth)
        kernels.multiply_integers(rows, a_scale, a_zero, weights.packed.matrix, result, weights.scales, weights.bias)
        return result

    return multiplied


class _ScaledWeights(NamedTuple):
    """Constant weights of 8 bits, packed, with a scale for each column and what is added to it."""

    packed: PackedIntegers
    scales: Tensor
    zero_point: Tensor | None
    bias: Tensor | None
    depth: int
    width: int

    @classmethod
    def of(
        cls,
        weights: Tensor | None,
        scale: Tensor | None,
        zero_point: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> _ScaledWeights | None:
        """None where they are not constant, or not as the compiled kernels want them."""
        if weights is None or scale is None or weights.ndim != 2 or not known_float32(scale) or scale.ndim > 1:
            return None
        depth, width = weights.shape
        if scale.size not in (1, width) or (
            bias is not None and not (known_float32(bias) and bias.shape == (width,) and bias.flags.c_contiguous)
        ):
            return None
        packed = shared(PackedIntegers, weights, zero_point)
        if packed.matrix is None:
            return None
        scales = np.ascontiguousarray(np.broadcast_to(scale, (width,)))
        return cls(packed, scales, zero_point, bias, depth, width)

    def are_with(self, zero_point: Tensor | None = None, bias: Tensor | None = None) -> bool:
        """Whether a node has no other zero point and bias than these, computed ones for example."""
        return zero_point is self.zero_point and bias is self.bias

    def times(self, x: Tensor, added: Tensor | None, *, is_tanh: bool) -> Tensor:
        """Rows of floats, quantized together, times the weights."""
        kernels = native()
        assert kernels is not None
        result = empty((*x.shape[:-1], self.width), np.float32)
        kernels.multiply_quantized(
            _side_by_side(x),
            None if added is None else _side_by_side(added),
            is_tanh,
            self.packed.matrix,
            result,
            self.scales,
            self.bias,
        )
        return result


def _has_rows(a: Tensor, depth: int) -> bool:
    return a.dtype in EIGHT_BITS and a.ndim >= 2 and a.shape[-1] == depth and a.size > 0


def _is_one(zero_point: Tensor | None, a: Tensor) -> bool:
    return zero_point is None or (zero_point.size == 1 and zero_point.dtype == a.dtype)


def _side_by_side(x: Tensor) -> Tensor:
    """With the elements of the last axis side by side."""
    return x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else contiguous(x)

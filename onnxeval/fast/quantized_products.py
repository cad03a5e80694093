"""QLinearMatMul and QGemm with constant weights: exact sums, and integers of 8 bits from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import EIGHT_BITS, contiguous, is_bytes
from onnxeval.fast._shared import shared
from onnxeval.fast.engine import native
from onnxeval.fast.integer_convolutions import multipliers
from onnxeval.fast.integers import PackedIntegers
from onnxeval.ops.contrib.quantized_gemm import qgemm
from onnxeval.ops.math.quantized_matmul import qlinear_matmul
from onnxeval.registry import Kernel

#: Products of distances whose sum has 32 bits.
_MOST_DEPTH = 33025
_FARTHEST = 255**2


class _Product:
    """Rows of integers times packed weights, to 8 bits."""

    def __init__(
        self,
        weights: Tensor,
        scales: tuple[Tensor, Tensor, Tensor],
        zeros: tuple[Tensor, Tensor, Tensor],
        bias: Tensor | None,
    ) -> None:
        kernels = native()
        assert kernels is not None
        self.kernels = kernels
        self.depth, self.width = weights.shape
        self.packed = shared(PackedIntegers, weights, zeros[1])
        self.multiplier = multipliers(*scales, self.width)
        self.divisor = float(scales[2].item())
        self.zero, self.target = zeros[0], (int(zeros[2].item()), zeros[2].dtype)
        self.bias = bias
        if self.multiplier is not None:
            self.factor = (self.multiplier / self.divisor).astype(np.float32)

    @property
    def is_possible(self) -> bool:
        """Whether the kernels take all of this."""
        return self.packed.matrix is not None and self.multiplier is not None

    def __call__(self, a: Tensor) -> Tensor | None:
        """The product; None where it is for the readable kernel."""
        if not is_bytes(a) or a.dtype != self.zero.dtype or a.ndim < 2 or not a.size or a.shape[-1] != self.depth:
            return None
        rows = contiguous(a).reshape(-1, self.depth)
        sums = empty((len(rows), self.width), np.int32)
        result = empty((*a.shape[:-1], self.width), self.target[1])
        self.kernels.multiply_integers(rows, None, self.zero, self.packed.matrix, sums, None, None)
        self.kernels.requantize(sums, result, self.bias, self.multiplier, self.factor, self.divisor, self.target[0])
        return result


def _product(
    weights: Tensor | None,
    scales: Sequence[Tensor | None],
    zeros: Sequence[Tensor | None],
    bias: Tensor | None = None,
) -> _Product | None:
    """What multiplies by constants; None where one is not known, or not one that the kernels take."""
    a_scale, b_scale, y_scale = scales
    a_zero, b_zero, y_zero = zeros
    if weights is None or a_scale is None or b_scale is None or y_scale is None or weights.ndim != 2:
        return None
    if a_zero is None or b_zero is None or y_zero is None or not 0 < weights.shape[0] <= _MOST_DEPTH:
        return None
    if any(zero.dtype not in EIGHT_BITS for zero in zeros if zero is not None):
        return None
    if a_zero.size != 1 or y_zero.size != 1 or (b_zero.size != b_scale.size and b_zero.size != 1):
        return None
    if bias is not None and int(np.abs(bias.astype(np.int64)).max()) + len(weights) * _FARTHEST >= 2**31:
        return None
    product = _Product(weights, (a_scale, b_scale, y_scale), (a_zero, b_zero, y_zero), bias)
    return product if product.is_possible else None


@replaces(qlinear_matmul)
def bind_qlinear_matmul(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """QLinearMatMul of which all but the left factor is constant, which has one scale."""
    scales, zeros = [constants[place] for place in (1, 4, 6)], [constants[place] for place in (2, 5, 7)]
    product = _product(constants[3], scales, zeros)
    if product is None:
        return None

    @replayable
    def multiplied(*inputs: Tensor, **given: Any) -> Tensor:
        same = all(value is known for value, known in zip(inputs[1:], constants[1:], strict=True))
        result = product(inputs[0]) if same else None
        return qlinear_matmul(*inputs, **given) if result is None else result

    return multiplied


@replaces(qgemm)
def bind_qgemm(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """QGemm of a matrix with constant weights, to 8 bits."""
    given = [*constants, *[None] * (9 - len(constants))]
    weights, bias = given[3], given[6]
    if attributes.get("transA", 0) or attributes.get("alpha", 1.0) != 1 or weights is None or weights.ndim != 2:
        return None
    if attributes.get("transB", 0):
        weights = np.ascontiguousarray(weights.T)
    if bias is not None and (bias.dtype != np.int32 or bias.shape != weights.shape[1:]):
        return None
    bias = None if bias is None else contiguous(bias)
    product = _product(weights, (given[1], given[4], given[7]), (given[2], given[5], given[8]), bias)
    readable: Kernel = qgemm
    if product is None:
        return None

    @replayable
    def multiplied(*inputs: Tensor | None, **options: Any) -> Tensor:
        same = all(value is known for value, known in zip(inputs[1:], constants[1:], strict=True))
        a = inputs[0]
        result = product(a) if same and a is not None and a.ndim == 2 else None
        return readable(*inputs, **options) if result is None else result

    return multiplied

"""Matrix products of float32: the right factor is packed once where it is constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces
from onnxeval.fast._checks import contiguous, is_float32, known_float32
from onnxeval.fast.activations import IDENTITY
from onnxeval.fast.engine import native
from onnxeval.ops.math.matmul import gemm, matmul
from onnxeval.registry import Kernel


@replaces(matmul)
def bind_matmul(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """MatMul of two stacks of matrices."""
    kernels = native()
    assert kernels is not None
    weights = constants[1]
    multiply = kernels.multiply
    if weights is not None and known_float32(weights) and weights.ndim == 2 and weights.size:
        packed = kernels.Matrix(weights)
        depth, width = weights.shape

        def by_packed(a: Tensor, b: Tensor) -> Tensor:
            if not is_float32(a) or a.ndim < 2 or a.shape[-1] != depth or not a.size:
                return matmul(a, b)
            result = np.empty((*a.shape[:-1], width), np.float32)
            multiply(a, packed, result, None, None, None, *IDENTITY)
            return result

        return by_packed

    def of_any(a: Tensor, b: Tensor) -> Tensor:
        if not (is_float32(a) and is_float32(b)) or a.ndim < 2 or b.ndim < 2 or not (a.size and b.size):
            return matmul(a, b)
        if a.shape[-1] != b.shape[-2]:
            return matmul(a, b)
        try:
            stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError:
            return matmul(a, b)
        result = np.empty((*stack, a.shape[-2], b.shape[-1]), np.float32)
        multiply(a, b, result, None, None, None, *IDENTITY)
        return result

    return of_any


@replaces(gemm)
def bind_gemm(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """Gemm: ``beta`` C is added where the product is stored."""
    kernels = native()
    assert kernels is not None
    weights = constants[1]
    packed = None
    if weights is not None and known_float32(weights) and weights.ndim == 2 and weights.size:
        packed = kernels.Matrix(weights.T if attributes["transB"] else weights)
    multiply = kernels.multiply

    def product(
        a: Tensor, b: Tensor, c: Tensor | None, *, alpha: float, beta: float, transA: int, transB: int
    ) -> Tensor:
        fits = is_float32(a) and is_float32(b) and a.ndim == 2 == b.ndim and alpha == 1 and a.size and b.size
        if not fits or not (c is None or is_float32(c)):
            return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
        left, right = a.T if transA else a, b.T if transB else b
        shape = (left.shape[0], right.shape[1])
        by_row = by_column = residual = None
        if c is not None:
            added = c if beta == 1 else c * np.float32(beta)
            if added.shape in ((shape[1],), (1, shape[1])):
                by_column = contiguous(added)
            elif added.shape == (shape[0], 1):
                by_row = contiguous(added)
            elif added.shape == shape:
                residual = contiguous(added)
        if left.shape[1] != right.shape[0] or (c is not None and by_row is by_column is residual):
            return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
        result = np.empty(shape, np.float32)
        multiply(left, packed or right, result, by_row, by_column, residual, *IDENTITY)
        return result

    return product

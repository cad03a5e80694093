"""Matrix products of float32: the right factor is packed once where it is constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32, known_float32
from onnxeval.fast._shared import shared
from onnxeval.fast.activations import IDENTITY, Activation
from onnxeval.fast.engine import native
from onnxeval.ops.math.matmul import gemm, matmul
from onnxeval.registry import Kernel

#: Fewer rows are multiplied in another way, in which sums of packed and of other factors differ in their last bits.
_FEW_ROWS = 4
#: Bytes of a factor that few rows stream from memory as it is: a second copy would double what a run takes.
_STREAMED = 1 << 24


class _Constant:
    """A constant right factor, packed when many rows meet it for the second time: for one run it does not pay."""

    def __init__(self, weights: Tensor) -> None:
        self.weights = weights
        self.factor = weights
        self._is_met = False
        self._packed: Any = None

    def ready_for(self, rows: int) -> Any:
        """What is to be multiplied with."""
        if rows < _FEW_ROWS and self.factor.nbytes >= _STREAMED:
            return self.factor
        if self._packed is None:
            if rows >= _FEW_ROWS and not self._is_met:
                self._is_met = True
                return self.factor
            self._packed = _kernels().Matrix(self.factor)
        return self._packed


class _Transposed(_Constant):
    """The same of the transpose of constant weights."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__(weights)
        self.factor = weights.T


class MatrixProduct:
    """MatMul, with what may be added to it and applied before it is stored."""

    has_columns = True

    def __init__(self, constants: Sequence[Tensor | None], *_: object) -> None:
        self.kernels = _kernels()
        self.width: int | None = None  # of packed weights
        weights = constants[1]
        if weights is not None and known_float32(weights) and weights.ndim == 2 and weights.size:
            self.packed = shared(_Constant, weights)
            self.depth, self.width = weights.shape

    def __call__(
        self,
        a: Tensor,
        b: Tensor,
        *,
        bias: Tensor | None = None,
        residual: Tensor | None = None,
        activation: Activation = IDENTITY,
    ) -> Tensor | None:
        """The result, with a bias (N,) and a residual of its shape; None where this is for the readable kernels."""
        if not is_float32(a) or a.ndim < 2 or not a.size:
            return None
        if self.width is not None:
            if a.shape[-1] != self.depth:
                return None
            shape, right = (*a.shape[:-1], self.width), self.packed.ready_for(a.size // self.depth)
        else:
            if not is_float32(b) or b.ndim < 2 or not b.size or a.shape[-1] != b.shape[-2]:
                return None
            stack = a.shape[:-2]
            if stack != b.shape[:-2]:
                try:
                    stack = np.broadcast_shapes(stack, b.shape[:-2])
                except ValueError:
                    return None
            shape, right = (*stack, a.shape[-2], b.shape[-1]), b
        added = _checked(bias, shape[-1:]), _checked(residual, shape)
        if added[0] is _MISFIT or added[1] is _MISFIT:
            return None
        result = empty(shape, np.float32)
        self.kernels.multiply(a, right, result, None, *added, *activation)
        return result


class GeneralProduct:
    """Gemm, with what may be added to it and applied before it is stored."""

    has_columns = True

    def __init__(self, constants: Sequence[Tensor | None], attributes: Mapping[str, Any], *_: object) -> None:
        self.kernels = _kernels()
        self.packed: _Constant | None = None
        weights = constants[1]
        if weights is not None and known_float32(weights) and weights.ndim == 2 and weights.size:
            self.packed = shared(_Transposed if attributes["transB"] else _Constant, weights)

    def __call__(
        self,
        a: Tensor,
        b: Tensor,
        c: Tensor | None,
        *,
        alpha: float,
        beta: float,
        transA: int,
        transB: int,
        bias: Tensor | None = None,
        residual: Tensor | None = None,
        activation: Activation = IDENTITY,
    ) -> Tensor | None:
        """The result, with a bias (N,) and a residual of its shape; None where this is for the readable kernels."""
        fits = is_float32(a) and is_float32(b) and a.ndim == 2 == b.ndim and alpha == 1 and a.size and b.size
        if not fits or not (c is None or is_float32(c)) or (c is not None and bias is not None):
            return None
        left, right = a.T if transA else a, b.T if transB else b
        if left.shape[1] != right.shape[0]:
            return None
        shape = (left.shape[0], right.shape[1])
        by_row = None
        if c is not None:
            added = c if beta == 1 else c * np.float32(beta)
            if added.shape in ((shape[1],), (1, shape[1])):
                bias = added.reshape(shape[1])
            elif added.shape == (shape[0], 1):
                by_row = contiguous(added)
            elif added.shape == shape and residual is None:
                residual = added
            else:
                return None
        given = _checked(bias, shape[-1:]), _checked(residual, shape)
        if given[0] is _MISFIT or given[1] is _MISFIT:
            return None
        result = empty(shape, np.float32)
        if self.packed is not None:
            right = self.packed.ready_for(len(left))
        self.kernels.multiply(left, right, result, by_row, *given, *activation)
        return result

    def scaled(
        self, a: Tensor, b: Tensor, c: Tensor | None, *, alpha: float, beta: float, transA: int, transB: int
    ) -> Tensor | None:
        """The result for an ``alpha`` that is not one: the compiled product, scaled; None where it cannot be."""
        if alpha == 1 or not (c is None or is_float32(c)):
            return None
        result = self(a, b, None, alpha=1.0, beta=1.0, transA=transA, transB=transB)
        if result is None or (c is not None and not _broadcasts(c.shape, result.shape)):
            return None
        self.kernels.interrupt()  # what follows is no call of a compiled kernel
        result *= np.float32(alpha)
        if c is not None:
            result += c if beta == 1 else c * np.float32(beta)
        return result


PRODUCTS = {matmul: MatrixProduct, gemm: GeneralProduct}


@replaces(matmul)
def bind_matmul(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
    """MatMul of two stacks of matrices."""
    product = MatrixProduct(constants, attributes)

    @replayable
    def multiplied(a: Tensor, b: Tensor) -> Tensor:
        result = product(a, b)
        return matmul(a, b) if result is None else result

    return multiplied


@replaces(gemm)
def bind_gemm(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
    """Gemm: ``beta`` C is added where the product is stored."""
    product = GeneralProduct(constants, attributes)

    @replayable
    def multiplied(a: Tensor, b: Tensor, c: Tensor | None, **given: Any) -> Tensor:
        result = product(a, b, c, **given)
        if result is None:
            result = product.scaled(a, b, c, **given)
        return gemm(a, b, c, **given) if result is None else result

    return multiplied


def _kernels() -> ModuleType:
    kernels = native()
    assert kernels is not None
    return kernels


#: What `_checked` gives for what the compiled kernel cannot add.
_MISFIT = np.empty(0, np.float32)


def _broadcasts(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether a tensor of the first shape can be added to one of the second, which keeps its shape."""
    sizes = zip(reversed(shape), reversed(into), strict=False)
    return len(shape) <= len(into) and all(size in (1, wanted) for size, wanted in sizes)


def _checked(extra: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    """What is added, contiguous; None where nothing is."""
    if extra is None:
        return None
    return contiguous(extra) if is_float32(extra) and extra.shape == shape else _MISFIT

"""MatMul and Gemm.

Integers wrap around like their type. In versions 1 and 6 Gemm's C has the shape of the product unless
`broadcast` is set; it broadcasts one way since 7 and may be absent since 11.
"""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor, is_float, is_integer, name_of
from onnxeval.ops._broadcast import common_shape, one_way
from onnxeval.ops._precision import in_float32
from onnxeval.ops._products import times_transposed
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("MatMul", versions=(1, 9, 13))
@in_float32
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N), as numpy.matmul.

    A vector is one row on the left, one column on the right. Raises ValueError where the ranks
    or shapes do not fit. Source: MatMul-13.
    """
    if not a.ndim or not b.ndim:
        raise ValueError(f"a matrix product needs tensors of rank 1 at least, got {a.ndim} and {b.ndim}")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        shapes = f"{shape_text(a.shape)} and {shape_text(b.shape)}"
        raise ValueError(f"shapes {shapes} do not multiply: {a.shape[-1]} columns meet {inner} rows")
    common_shape(a.shape[:-2], b.shape[:-2], what="the stacks of matrices")
    if a.ndim > 2 == b.ndim:  # all rows of a stack in one product
        rows: Tensor = np.matmul(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b)
        return rows.reshape(*a.shape[:-1], b.shape[1])
    result: Tensor = np.matmul(a, b)
    return result


@op("Gemm", versions=(7, 9, 11, 13))
@in_float32
def gemm(a: Tensor, b: Tensor, c: Tensor | None, *, alpha: float, beta: float, transA: int, transB: int) -> Tensor:
    """``alpha`` A' B' + ``beta`` C of shape (M, N), where a prime transposes if transA or transB is set.

    Raises ValueError where A or B is no matrix, where C does not broadcast to (M, N), and where a factor of integers is
    no whole number. Source: Gemm-13.
    """
    for name, matrix in (("A", a), ("B", b)):
        if matrix.ndim != 2:
            raise ValueError(f"{name} has rank {matrix.ndim}, expected 2")
    left, right = a.T if transA else a, b.T if transB else b
    fits = transB and is_float(a.dtype) and left.shape[1] == right.shape[0]
    product = _scaled(times_transposed(left, b) if fits else matmul(left, right), alpha, name="alpha")
    if c is None:
        return product
    one_way(c, product.shape, name="C")
    product += _scaled(c, beta, name="beta")
    return product


@op("Gemm", versions=(1, 6))
def gemm_broadcast(
    a: Tensor, b: Tensor, c: Tensor, *, alpha: float, beta: float, transA: int, transB: int, broadcast: int
) -> Tensor:
    """Gemm whose C has the shape (M, N), unless ``broadcast`` is set. Source: Gemm-6."""
    result: Tensor = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    if not broadcast and c.shape != result.shape:
        shapes = f"{shape_text(c.shape)}, expected {shape_text(result.shape)}"
        raise ValueError(f"C has shape {shapes}, as broadcast is 0")
    return result


def _scaled(x: Tensor, factor: float, *, name: str) -> Tensor:
    if factor == 1:
        return x
    if is_integer(x.dtype) and not factor.is_integer():
        raise ValueError(f"{name} {factor} is not a whole number, as {name_of(x.dtype)} needs")
    multiplier = int(factor) % 2**64 if is_integer(x.dtype) else factor
    result: Tensor = x * np.array(multiplier).astype(x.dtype)
    return result

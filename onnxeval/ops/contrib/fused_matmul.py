"""Matrix products with what onnxruntime fuses into them: transposes, factors and an activation."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._curves import activated
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOATS_AND_DOUBLE, NUMBERS, microsoft_op


@microsoft_op("FusedMatMul", "TT", T=FLOATS_AND_DOUBLE)
@in_float32
def fused_matmul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    """``alpha`` A' B' as numpy.matmul, where a prime moves axes as the flags say; a vector keeps its own.

    ``transBatch`` takes the first axis in between the last two: (M, ..., K) becomes (..., M, K). ``trans`` then
    swaps the last two. Source: com.microsoft.FusedMatMul-1.
    """
    product: Tensor = standard("math", "MatMul", 13)(_moved(a, transA, transBatchA), _moved(b, transB, transBatchB))
    return product if alpha == 1 else product * product.dtype.type(alpha)


@microsoft_op("TransposeMatMul", "TT", T=FLOATS_AND_DOUBLE)
def transpose_matmul(a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Tensor:
    """`fused_matmul` under its older name. Source: com.microsoft.TransposeMatMul-1."""
    return fused_matmul(a, b, alpha=alpha, transA=transA, transB=transB)


@microsoft_op("FusedMatMulActivation", "TT", T=FLOATS_AND_DOUBLE)
@in_float32
def fused_matmul_activation(
    a: Tensor,
    b: Tensor,
    *,
    activation: str,
    activation_alpha: float | None = None,
    activation_axis: int | None = None,  # noqa: ARG001  for activations of whole rows, of which there are none here
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    """The activation of a `fused_matmul`. Source: com.microsoft.FusedMatMulActivation-1."""
    product = fused_matmul(
        a, b, alpha=alpha, transA=transA, transB=transB, transBatchA=transBatchA, transBatchB=transBatchB
    )
    return activated(
        product, activation, {"alpha": activation_alpha, "beta": activation_beta, "gamma": activation_gamma}
    )


@microsoft_op("FusedGemm", "TTT", T=NUMBERS)
@in_float32
def fused_gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """The activation of Gemm: ``alpha`` A' B' + ``beta`` C. Source: com.microsoft.FusedGemm-1."""
    y = standard("math", "Gemm", 13)(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return activated(y, activation, {"alpha": activation_alpha, "beta": activation_beta, "gamma": activation_gamma})


def _moved(x: Tensor, trans: int, trans_batch: int) -> Tensor:
    if x.ndim < 2:
        return x
    if trans_batch:
        x = np.moveaxis(x, 0, -2)
    return x.swapaxes(-1, -2) if trans else x

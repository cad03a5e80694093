"""Products of integers: QGemm, MatMulInteger16, MulInteger."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, is_signed
from onnxeval.ops._broadcast import one_way
from onnxeval.ops._quantized import by_column
from onnxeval.ops._scalar import scalar
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS, distances, quantized
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT32, INT32, microsoft_op
from onnxeval.values import shape_text

_SIXTEEN_BITS = (np.dtype(np.int16), np.dtype(np.uint16))


@microsoft_op("QGemm", "AFABFBIFY", A=EIGHT_BITS, B=EIGHT_BITS, Y=EIGHT_BITS, F=(FLOAT32,), I=(INT32,))
def qgemm(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    c: Tensor | None,
    y_scale: Tensor | None,
    y_zero_point: Tensor | None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """``alpha`` A' B' + C of shape (M, N), where a prime transposes if transA or transB is set.

    C counts in steps of ``alpha`` a_scale b_scale and broadcasts to (M, N). The scale and the zero point of B are one
    number or one a column. The result is quantized in the type of ``y_zero_point``, float32 without ``y_scale`` and
    ``y_zero_point``. The sums are exact. Source: com.microsoft.QGemm-1.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"A has shape {shape_text(a.shape)} and B {shape_text(b.shape)}, expected matrices")
    left = distances(a.T if transA else a, scalar(a_zero_point, name="a_zero_point"))
    right = b.T if transB else b
    sums = standard("math", "MatMul", 13)(left, distances(right, by_column(b_zero_point, right, name="b_zero_point")))
    if c is not None:
        one_way(c, sums.shape, name="C")
        sums = sums + c
    step = alpha * float(scalar(a_scale, name="a_scale")) * by_column(b_scale, right, name="b_scale").astype(float)
    if y_scale is None or y_zero_point is None:
        if y_scale is not y_zero_point:
            raise ValueError("y_scale and y_zero_point are given without each other")
        return np.asarray((sums * step).astype(np.float32))
    return quantized(sums * step, y_scale, y_zero_point, y_zero_point.dtype, name="y")


@microsoft_op("MatMulInteger16", "AB", A=_SIXTEEN_BITS, B=_SIXTEEN_BITS)
def matmul_integer16(a: Tensor, b: Tensor) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N) in int32, in uint32 where both are unsigned; sums beyond it wrap around.

    Source: com.microsoft.MatMulInteger16-1.
    """
    exact = standard("math", "MatMul", 13)(a.astype(np.int64), b.astype(np.int64))
    unsigned = not (is_signed(a.dtype) or is_signed(b.dtype))
    return np.asarray(exact.astype(np.uint32 if unsigned else np.int32))


@microsoft_op("MulInteger", "TTTT", T=EIGHT_BITS)
def mul_integer(a: Tensor, a_zero_point: Tensor | None, b: Tensor, b_zero_point: Tensor | None) -> Tensor:
    """(A - a_zero_point) (B - b_zero_point) in int32; A and B broadcast together.

    Source: com.microsoft.MulInteger-1.
    """
    left, right = a.astype(np.int32), b.astype(np.int32)
    if a_zero_point is not None:
        left -= np.int32(scalar(a_zero_point, name="A_zero_point"))
    if b_zero_point is not None:
        right -= np.int32(scalar(b_zero_point, name="B_zero_point"))
    return left * right

"""MatMulInteger and QLinearMatMul. Version 21 of the latter adds float 8 and scales of 16 bits."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, is_integer
from onnxeval.ops._cast import convert
from onnxeval.ops._quantized import by_column, by_row
from onnxeval.ops._scalar import scalar
from onnxeval.ops.math.matmul import matmul
from onnxeval.registry import op


@op("MatMulInteger", versions=(10,))
def matmul_integer(a: Tensor, b: Tensor, a_zero_point: Tensor | None, b_zero_point: Tensor | None) -> Tensor:
    """(A - a_zero_point) (B - b_zero_point) in int32, exact but that it wraps around beyond 32 bits.

    A zero point is one number, one a row of A, or one a column of B. Source: MatMulInteger-10.
    """
    left, right = a.astype(np.float64), b.astype(np.float64)
    if a_zero_point is not None:
        left -= by_row(a_zero_point, a, name="a_zero_point").astype(np.float64)
    if b_zero_point is not None:
        right -= by_column(b_zero_point, b, name="b_zero_point").astype(np.float64)
    # float64 holds sums of products of 9 bits without an error up to 2^35 of them.
    exact: Tensor = matmul(left, right)
    return exact.astype(np.int64).astype(np.int32)


@op("QLinearMatMul", versions=(10, 21))
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Tensor:
    """The product of two quantized matrices, quantized: round(A B / y_scale) + y_zero_point, halves to even.

    Scales and zero points of A are one number or one a row, those of B one number or one a column; those of the result
    are one number. The result saturates, in the type of ``y_zero_point``. Source: QLinearMatMul-21.
    """
    left = a.astype(np.float64) - by_row(a_zero_point, a, name="a_zero_point").astype(np.float64)
    right = b.astype(np.float64) - by_column(b_zero_point, b, name="b_zero_point").astype(np.float64)
    product: Tensor = matmul(left, right)
    scale_of_a = by_row(a_scale, a, name="a_scale").astype(np.float64)
    scale_of_b = by_column(b_scale, b, name="b_scale").astype(np.float64)
    steps = (product * (scale_of_a * scale_of_b)).reshape(product.shape) / float(scalar(y_scale, name="y_scale"))
    if is_integer(y_zero_point.dtype):
        steps = np.rint(steps)
    return convert(np.asarray(steps + float(scalar(y_zero_point, name="y_zero_point"))), y_zero_point.dtype)

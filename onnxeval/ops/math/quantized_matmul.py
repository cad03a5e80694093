"""MatMulInteger and QLinearMatMul. Version 21 of the latter adds float 8 and scales of 16 bits."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, is_integer
from onnxeval.ops._cast import convert
from onnxeval.ops._exact import distances, requantized, wrapped
from onnxeval.ops._quantized import by_column, by_row, factor_of
from onnxeval.ops._scalar import scalar
from onnxeval.ops.math.matmul import matmul
from onnxeval.registry import op, prepared_by


@op("MatMulInteger", versions=(10,))
@prepared_by(factor_of)
def matmul_integer(
    a: Tensor,
    b: Tensor,
    a_zero_point: Tensor | None,
    b_zero_point: Tensor | None,
    *,
    prepared: Tensor | None = None,
) -> Tensor:
    """(A - a_zero_point) (B - b_zero_point) in int32, exact but that it wraps around beyond 32 bits.

    A zero point is one number, one a row of A, or one a column of B. Source: MatMulInteger-10.
    """
    right = factor_of(b, b_zero_point) if prepared is None else prepared
    left = distances(a, None if a_zero_point is None else by_row(a_zero_point, a, name="a_zero_point"))
    return wrapped(matmul(left.astype(right.dtype, copy=False), right))


@op("QLinearMatMul", versions=(10, 21))
@prepared_by(factor_of)
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    *,
    prepared: Tensor | None = None,
) -> Tensor:
    """The product of two quantized matrices, quantized: round(A B / y_scale) + y_zero_point, halves to even.

    Scales and zero points of A are one number or one a row, those of B one number or one a column; those of the result
    are one number. The result saturates, in the type of ``y_zero_point``. Source: QLinearMatMul-21.
    """
    if is_integer(b.dtype):
        right = factor_of(b, b_zero_point) if prepared is None else prepared
        left = distances(a, by_row(a_zero_point, a, name="a_zero_point")).astype(right.dtype, copy=False)
    else:
        left = a.astype(np.float64) - by_row(a_zero_point, a, name="a_zero_point").astype(np.float64)
        right = b.astype(np.float64) - by_column(b_zero_point, b, name="b_zero_point").astype(np.float64)
    product: Tensor = matmul(left, right)
    scale_of_a = by_row(a_scale, a, name="a_scale").astype(np.float64)
    scale_of_b = by_column(b_scale, b, name="b_scale").astype(np.float64)
    factor, divisor = scale_of_a * scale_of_b, float(scalar(y_scale, name="y_scale"))
    zero_point = scalar(y_zero_point, name="y_zero_point")
    if is_integer(y_zero_point.dtype) and np.isfinite(factor).all() and np.isfinite(divisor) and divisor:
        codes = requantized(product, factor, divisor, zero_point, y_zero_point.dtype)
        return codes.reshape(product.shape)
    steps = (product * factor).reshape(product.shape) / divisor
    if is_integer(y_zero_point.dtype):
        steps = np.rint(steps)
    return convert(np.asarray(steps + float(zero_point)), y_zero_point.dtype)

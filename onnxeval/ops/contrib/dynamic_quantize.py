"""Products of quantized matrices whose result is float: DynamicQuantizeMatMul, MatMulIntegerToFloat."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops._exact import distances
from onnxeval.ops._quantized import by_column, by_row, factor_of
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS, dynamically_quantized
from onnxeval.ops.contrib._rational import rational_tanh
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, microsoft_op
from onnxeval.registry import prepared_by
from onnxeval.values import shape_text


@microsoft_op("DynamicQuantizeMatMul", "TQTQT", T=(FLOAT32,), Q=EIGHT_BITS)
@prepared_by(factor_of)
def dynamic_quantize_matmul(
    a: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor | None,
    bias: Tensor | None,
    *,
    prepared: Tensor | None = None,
) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N): A is quantized as a whole, the sums of products are exact.

    The scale and the zero point of B are one number or one a column, the bias has (N,).
    Source: com.microsoft.DynamicQuantizeMatMul-1.
    """
    left, scale = dynamically_quantized(a)
    right = factor_of(b, b_zero_point) if prepared is None else prepared
    return _scaled_product(left, scale.reshape(()), right, b_scale, bias)


@prepared_by(factor_of)
def dynamic_quantize_matmul_of_tanh(
    x: Tensor,
    added: Tensor | None,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor | None,
    bias: Tensor | None,
    *,
    prepared: Tensor | None = None,
) -> Tensor:
    """DynamicQuantizeMatMul of tanh(x), or of tanh(x + added), in float32: no operator, but nodes in a row.

    The tangent is quantized at once, so that nothing is seen of it but codes of 8 bits; its cheapest form will do.
    """
    total = x.copy() if added is None else x + added
    return dynamic_quantize_matmul(rational_tanh(total, total), b, b_scale, b_zero_point, bias, prepared=prepared)


@microsoft_op("MatMulIntegerToFloat", "ABTTABT", A=EIGHT_BITS, B=EIGHT_BITS, T=(FLOAT32, FLOAT16))
@prepared_by(factor_of)
def matmul_integer_to_float(
    a: Tensor,
    b: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    a_zero_point: Tensor | None,
    b_zero_point: Tensor | None,
    bias: Tensor | None,
    *,
    prepared: Tensor | None = None,
) -> Tensor:
    """(..., M, K) x (..., K, N) -> (..., M, N) of the type of the scales; the sums of products are exact.

    Scale and zero point of A are one number or (M, 1), one a row; a vector of them, which the text speaks of, belongs
    to no axis of a product. Those of B are one number or one a column, the bias has (N,).
    Source: com.microsoft.MatMulIntegerToFloat-1.
    """
    for name, parameter in (("a_scale", a_scale), ("a_zero_point", a_zero_point)):
        if parameter is not None and parameter.ndim == 1 and parameter.size != 1:
            raise ValueError(f"{name} of shape {shape_text(parameter.shape)} is neither one number nor (M, 1)")
    left = distances(a, None if a_zero_point is None else by_row(a_zero_point, a, name="a_zero_point"))
    right = factor_of(b, b_zero_point) if prepared is None else prepared
    return _scaled_product(left, by_row(a_scale, a, name="a_scale"), right, b_scale, bias)


def _scaled_product(
    left: Tensor, left_scale: Tensor, right: Tensor, right_scale: Tensor, bias: Tensor | None
) -> Tensor:
    """The sums times both scales, plus the bias, in float32 and in this order, as onnxruntime has it."""
    sums: Tensor = standard("math", "MatMul", 13)(left.astype(right.dtype, copy=False), right)
    scale = left_scale.astype(np.float32) * by_column(right_scale, right, name="b_scale").astype(np.float32)
    product = (sums.astype(np.float32, copy=False) * scale).reshape(sums.shape)
    if bias is not None:
        if bias.shape != right.shape[-1:]:
            raise ValueError(f"the bias has shape {shape_text(bias.shape)}, expected {shape_text(right.shape[-1:])}")
        product = product + bias
    return convert(np.asarray(product), right_scale.dtype)

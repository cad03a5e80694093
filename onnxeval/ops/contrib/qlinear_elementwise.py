"""QLinear operators that compute an element from the elements at its place: of numbers of 8 bits, to such numbers.

Each means: what the inputs stand for in float32, the operator on that, quantized by the scale and the zero point of
the output. Zero points that are not given are 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor, name_of
from onnxeval.ops.contrib._curves import sigmoid
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS, dequantized, quantized
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import BOOL, FLOAT32, MICROSOFT, microsoft_op
from onnxeval.registry import op


def _binary(operation: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def kernel(
        a: Tensor,
        a_scale: Tensor,
        a_zero_point: Tensor | None,
        b: Tensor,
        b_scale: Tensor,
        b_zero_point: Tensor | None,
        c_scale: Tensor,
        c_zero_point: Tensor | None,
    ) -> Tensor:
        """A and B broadcast together. Source: com.microsoft.QLinearAdd-1, QLinearMul-1."""
        left, right = dequantized(a, a_scale, a_zero_point, name="A"), dequantized(b, b_scale, b_zero_point, name="B")
        return quantized(operation(left, right), c_scale, c_zero_point, a.dtype, name="C")

    return kernel


for _op_type, _operation in {"QLinearAdd": np.add, "QLinearMul": np.multiply}.items():
    microsoft_op(_op_type, "TFTTFTFT", T=EIGHT_BITS, F=(FLOAT32,))(_binary(_operation))


@microsoft_op("QLinearSigmoid", "TFTFT", T=EIGHT_BITS, F=(FLOAT32,))
def qlinear_sigmoid(
    x: Tensor, x_scale: Tensor, x_zero_point: Tensor | None, y_scale: Tensor, y_zero_point: Tensor | None
) -> Tensor:
    """1 / (1 + exp(-x)). Source: com.microsoft.QLinearSigmoid-1."""
    return quantized(sigmoid(dequantized(x, x_scale, x_zero_point, name="X")), y_scale, y_zero_point, x.dtype, name="Y")


@microsoft_op("QLinearLeakyRelu", "TFTFT", T=EIGHT_BITS, F=(FLOAT32,))
def qlinear_leaky_relu(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor | None,
    *,
    alpha: float = 0.01,
) -> Tensor:
    """X where it is not negative, else ``alpha`` x. Source: com.microsoft.QLinearLeakyRelu-1."""
    numbers = dequantized(x, x_scale, x_zero_point, name="X")
    leaky = np.where(numbers < 0, alpha * numbers, numbers)
    return quantized(leaky, y_scale, y_zero_point, x.dtype, name="Y")


@microsoft_op("QLinearSoftmax", "TFTFT", T=EIGHT_BITS, F=(FLOAT32,))
def qlinear_softmax(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor,
    *,
    axis: int = -1,
    opset: int,
) -> Tensor:
    """exp(x) over their sum: along ``axis`` as Softmax-13 or, with ``opset`` below 13, over all from it on.

    Source: com.microsoft.QLinearSoftmax-1.
    """
    softmax = standard("math", "Softmax", 13 if opset >= 13 else 11)
    shares = softmax(dequantized(x, x_scale, x_zero_point, name="X"), axis=axis)
    return quantized(shares, y_scale, y_zero_point, x.dtype, name="Y")


@microsoft_op("QLinearWhere", "BTFTTFTFT", B=(BOOL,), T=EIGHT_BITS, F=(FLOAT32,))
def qlinear_where(
    condition: Tensor,
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    z_scale: Tensor,
    z_zero_point: Tensor,
) -> Tensor:
    """X where the condition holds, else Y; all three broadcast together. Source: com.microsoft.QLinearWhere-1."""
    one, other = (
        quantized(dequantized(values, scale, zero_point, name=name), z_scale, z_zero_point, x.dtype, name="z")
        for values, scale, zero_point, name in ((x, x_scale, x_zero_point, "x"), (y, y_scale, y_zero_point, "y"))
    )
    return np.where(condition, one, other)


@op("QLinearConcat", domain=MICROSOFT, versions=(1,))
def qlinear_concat(y_scale: Tensor, y_zero_point: Tensor, *parts: Tensor | None, axis: int) -> Tensor:
    """Tensors along ``axis``, each followed by its scale and its zero point, quantized alike.

    TypeError unless they are of the type of ``y_zero_point``. Source: com.microsoft.QLinearConcat-1.
    """
    if not parts or len(parts) % 3:
        raise ValueError(f"{len(parts)} inputs after y_zero_point are not tensors, scales and zero points in threes")
    joined = []
    for place, (x, scale, zero_point) in enumerate(zip(parts[::3], parts[1::3], parts[2::3], strict=True)):
        if x is None or scale is None:
            raise ValueError(f"tensor {place} or its scale is absent")
        if x.dtype not in EIGHT_BITS or x.dtype != y_zero_point.dtype:
            raise TypeError(f"tensor {place} is {name_of(x.dtype)}, y_zero_point {name_of(y_zero_point.dtype)}")
        numbers = dequantized(x, scale, zero_point, name=f"{place}")
        joined.append(quantized(numbers, y_scale, y_zero_point, x.dtype, name="Y"))
    result: Tensor = standard("tensor", "Concat", 13)(*joined, axis=axis)
    return result

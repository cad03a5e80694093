"""QuantizeLinear and DequantizeLinear of com.microsoft, which had 16 and 4 bits before the standard's.

``block_size`` stands in no schema; the quantizer writes it where it writes blocks, with the standard's meaning.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import INT4, UINT4, Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, INT32, microsoft_op
from onnxeval.values import shape_text

_CODES = (*(np.dtype(f"{sign}int{bits}") for bits in (8, 16) for sign in ("", "u")), INT4, UINT4)


@microsoft_op("QuantizeLinear", "FFQ", F=(FLOAT32, FLOAT16), Q=_CODES)
def quantize_linear(
    x: Tensor, y_scale: Tensor, y_zero_point: Tensor | None, *, axis: int = 1, block_size: int = 0
) -> Tensor:
    """saturate(round(x / y_scale) + y_zero_point), of the shape of ``x``; ties round to even.

    The scale and the zero point are scalars, vectors along ``axis``, the second axis where the node does not say, or of
    the rank of ``x`` and for blocks of ``block_size`` along that axis.
    The type is that of the zero point, else uint8. The quotient is that of float32.
    Source: com.microsoft.QuantizeLinear-1.
    """
    result: Tensor = standard("quantization", "QuantizeLinear", 28)(
        convert(x, FLOAT32),
        convert(y_scale, FLOAT32),
        y_zero_point,
        axis=axis,
        saturate=1,
        output_dtype=0,
        block_size=block_size,
        precision=0,
    )
    return result


@microsoft_op("DequantizeLinear", "QFQ", F=(FLOAT32, FLOAT16), Q=(*_CODES, INT32))
def dequantize_linear(
    x: Tensor, x_scale: Tensor, x_zero_point: Tensor | None, *, axis: int = 1, block_size: int = 0
) -> Tensor:
    """(x - x_zero_point) * x_scale, of the shape of ``x`` and the type of the scale.

    The scale and the zero point are as in `quantize_linear`. The product is that of float32, rounded once.
    Source: com.microsoft.DequantizeLinear-1.
    """
    if x.dtype == INT32 and x_zero_point is not None:
        if x_zero_point.size != 1:
            raise ValueError(f"int32 has the zero points {shape_text(x_zero_point.shape)}, expected one number")
        x, x_zero_point = x.astype(np.int64) - x_zero_point.item(), None
    result: Tensor = standard("quantization", "DequantizeLinear", 28)(
        x, x_scale, x_zero_point, axis=axis, block_size=block_size, output_dtype=0
    )
    return result

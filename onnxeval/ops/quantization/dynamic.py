"""DynamicQuantizeLinear: quantization by a scale that the tensor itself gives."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, integer_range
from onnxeval.ops._cast import convert
from onnxeval.ops.quantization.linear import quantize_linear
from onnxeval.registry import op

_UINT8 = np.dtype(np.uint8)


@op("DynamicQuantizeLinear", versions=(11,))
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """float32 -> uint8 of the same shape, its scale (float32) and its zero point (uint8), both scalars.

    The range that is mapped to 0..255 is that of ``x``, made to include 0. Where all of ``x`` is 0, or it is empty, the
    scale is 0 and so is everything else. Source: DynamicQuantizeLinear-11.
    """
    least, greatest = integer_range(_UINT8)
    low, high = x.min(initial=0), x.max(initial=0)
    scale = np.asarray((high - low) / np.float32(greatest - least))
    zero_point = np.asarray(least - low / scale)
    zero_point = convert(np.asarray(np.rint(np.clip(zero_point, least, greatest))), _UINT8)
    return quantize_linear(x, scale, zero_point, axis=0), scale, zero_point

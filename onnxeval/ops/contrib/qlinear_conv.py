"""QLinearConv of com.microsoft: that of the standard, with channels first or last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS
from onnxeval.ops.contrib._layout import channels_first
from onnxeval.ops.contrib._layout import channels_last as to_last
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT32, INT32, microsoft_op


@microsoft_op("QLinearConv", "XFXWFWFYB", X=EIGHT_BITS, W=EIGHT_BITS, Y=EIGHT_BITS, F=(FLOAT32,), B=(INT32,))
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    b: Tensor | None,
    *,
    auto_pad: str = "NOTSET",
    channels_last: int = 0,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
) -> Tensor:
    """QLinearConv-10; with ``channels_last`` (N, *sizes, C) -> (N, *counts, M), the weights as ever.

    One zero point may go with a scale for each of the M channels. Source: com.microsoft.QLinearConv-1.
    """
    if w_scale.ndim == 1 and w_zero_point.size == 1:
        w_zero_point = np.broadcast_to(w_zero_point.reshape(()), w_scale.shape)
    y: Tensor = standard("nn", "QLinearConv", 10)(
        channels_first(x) if channels_last else x,
        x_scale,
        x_zero_point,
        w,
        w_scale,
        w_zero_point,
        y_scale,
        y_zero_point,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
        allocate=allocate,
    )
    return to_last(y) if channels_last else y

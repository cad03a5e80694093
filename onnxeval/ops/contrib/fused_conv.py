"""FusedConv: Conv with a sum and an activation that onnxruntime fuses into it."""

from __future__ import annotations

from collections.abc import Sequence

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._curves import activated
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOAT64, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("FusedConv", "TTTT", T=(FLOAT16, FLOAT32, FLOAT64))
@in_float32
def fused_conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    z: Tensor | None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
) -> Tensor:
    """The activation of Conv(x, w, b) + z. Source: com.microsoft.FusedConv-1.

    ``activation_params`` are the activation's own in the order of its text. Raises ValueError where z has not the shape
    of the convolution, and as Conv does.
    """
    y: Tensor = standard("nn", "Conv", 22)(
        x,
        w,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
        allocate=allocate,
    )
    if z is not None:
        if z.shape != y.shape:
            raise ValueError(f"Z has shape {shape_text(z.shape)}, the convolution {shape_text(y.shape)}")
        y = y + z
    return activated(y, activation, activation_params)

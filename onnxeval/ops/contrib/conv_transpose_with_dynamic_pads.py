"""ConvTransposeWithDynamicPads: ConvTranspose with the padding as an input."""

from __future__ import annotations

from collections.abc import Sequence

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOAT64, INT64, microsoft_op


@microsoft_op("ConvTransposeWithDynamicPads", "TTPT", T=(FLOAT16, FLOAT32, FLOAT64), P=(INT64,))
def conv_transpose_with_dynamic_pads(
    x: Tensor,
    w: Tensor,
    pads: Tensor | None,
    b: Tensor | None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
) -> Tensor:
    """(N, C, *sizes), (C, M / group, *kernel), (2 * axes,), (M,) -> (N, M, *output sizes), as ConvTranspose-22.

    Without ``pads`` there are none. Source: com.microsoft.ConvTransposeWithDynamicPads-1.
    """
    y: Tensor = standard("nn", "ConvTranspose", 22)(
        x,
        w,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        output_padding=output_padding,
        output_shape=None,
        pads=None if pads is None else tuple(pads.ravel().tolist()),
        strides=strides,
        allocate=allocate,
    )
    return y

"""Conv: each feature map is what its kernel sums up over the windows of the input.

All versions mean the same; 11 wrote down the defaults of ``strides`` and ``dilations``, 22 added bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops.nn._correlate import check_bias, conv_windows, correlate, per_channel
from onnxeval.registry import op


@op("Conv", versions=(1, 11, 22))
@in_float32
def conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    allocate: Allocate,
) -> Tensor:
    """(N, C, *sizes), (M, C / group, *kernel), (M,) -> (N, M, *counts).

    Raises ValueError where shapes do not fit together and where the kernel does not fit into the padded input.
    Source: Conv-22.
    """
    windows = conv_windows(
        x,
        w,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    check_bias(b, w.shape[0])
    y = correlate(x, w, windows, group, allocate)
    if b is not None:
        y += per_channel(b, y.ndim)
    return y

"""Convolutions and pools with channels last: NhwcConv, NhwcFusedConv, NhwcMaxPool. Weights are as in Conv."""

from __future__ import annotations

from collections.abc import Sequence

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS
from onnxeval.ops.contrib._layout import channels_first, channels_last
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOAT64, microsoft_op
from onnxeval.ops.contrib.fused_conv import fused_conv


@microsoft_op("NhwcConv", "TTT", T=(FLOAT16, FLOAT32, FLOAT64))
def nhwc_conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
) -> Tensor:
    """Conv of (N, *sizes, C) -> (N, *counts, M). Source: com.microsoft.NhwcConv-1."""
    y = standard("nn", "Conv", 22)(
        channels_first(x),
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
    return channels_last(y)


@microsoft_op("NhwcFusedConv", "TTTT", T=(FLOAT16, FLOAT32))
def nhwc_fused_conv(
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
    """FusedConv of (N, *sizes, C) and the sum (N, *counts, M), which is the shape of the result.

    Source: com.microsoft.NhwcFusedConv-1.
    """
    y = fused_conv(
        channels_first(x),
        w,
        b,
        None if z is None else channels_first(z, name="Z"),
        activation=activation,
        activation_params=activation_params,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
        allocate=allocate,
    )
    return channels_last(y)


@microsoft_op("NhwcMaxPool", "T", T=EIGHT_BITS)
def nhwc_max_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
) -> Tensor:
    """MaxPool of (N, *sizes, C) -> (N, *counts, C). Source: com.microsoft.NhwcMaxPool-1."""
    (maxima,) = standard("nn", "MaxPool", 22)(
        channels_first(x),
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        kernel_shape=kernel_shape,
        pads=pads,
        storage_order=0,
        strides=strides,
        n_outputs=1,
        allocate=allocate,
    )
    return channels_last(maxima)

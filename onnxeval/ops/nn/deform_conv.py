"""DeformConv: a convolution whose taps are moved, each at each place, by offsets that it is given.

Versions 19 and 22 mean the same; 22 added bfloat16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._interpolate import around, interpolate, linear
from onnxeval.ops._precision import in_float32
from onnxeval.ops._windows import Windows
from onnxeval.ops.nn._correlate import check_bias, conv_windows, per_channel
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("DeformConv", versions=(19, 22))
@in_float32
def deform_conv(
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    b: Tensor | None,
    mask: Tensor | None,
    *,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    offset_group: int,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> Tensor:
    """(N, C, *sizes), (M, C / group, *kernel) -> (N, M, *counts).

    ``offset`` is (N, offset_group * taps * n, *counts): for each group of channels and each tap in row-major order how
    far it moves along each of the n axes, the outermost first. Values between elements are interpolated linearly,
    beyond the input all is zero. ``mask`` (N, offset_group * taps, *counts) scales what a tap sees.

    Raises ValueError where shapes do not fit together. Source: DeformConv-22.
    """
    windows = conv_windows(
        x,
        w,
        auto_pad="NOTSET",
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    check_bias(b, w.shape[0])
    batch, channels, maps = x.shape[0], x.shape[1], w.shape[0]
    if offset_group < 1 or channels % offset_group:
        raise ValueError(f"{channels} channels cannot be divided into {offset_group} groups of offsets")
    counts, kernel = [each.number for each in windows], w.shape[2:]
    taps, rank = math.prod(kernel), len(windows)
    _check_shape(offset, (batch, offset_group * taps * rank, *counts), "offset")
    if mask is not None:
        _check_shape(mask, (batch, offset_group * taps, *counts), "mask")

    moved = offset.reshape(batch * offset_group, *kernel, rank, *counts).astype(np.float64)
    neighbours = [
        around((moved.take(axis, axis=rank + 1) + places).reshape(moved.shape[0], -1), each.size, 1, linear)
        for axis, (each, places) in enumerate(zip(windows, _resting(windows), strict=True))
    ]
    sets = x.reshape(batch * offset_group, channels // offset_group, *x.shape[2:])
    seen = interpolate(sets, neighbours, x.dtype)
    if mask is not None:
        seen *= mask.reshape(batch * offset_group, 1, -1)
    columns = seen.reshape(batch, group, channels // group * taps, math.prod(counts))
    kernels = w.reshape(group, maps // group, columns.shape[2])
    y: Tensor = (kernels @ columns).reshape(batch, maps, *counts)
    return y if b is None else y + per_channel(b, y.ndim)


def _resting(windows: Sequence[Windows]) -> list[Tensor]:
    """Where the taps lie before they move: for each axis an array that broadcasts to (*kernel, *counts)."""
    rank = len(windows)
    resting = []
    for axis, each in enumerate(windows):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = each.kernel, each.number
        taps, places = each.dilation * np.arange(each.kernel), each.stride * np.arange(each.number) - each.begin
        resting.append(np.add.outer(taps, places).reshape(shape))
    return resting


def _check_shape(x: Tensor, expected: tuple[int, ...], name: str) -> None:
    if x.shape != expected:
        raise ValueError(f"the {name} has shape {shape_text(x.shape)}, expected {list(expected)}")

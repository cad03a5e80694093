"""ConvTranspose: each element of the input lays its kernel, scaled, onto the output; what overlaps adds up.

It is the gradient of Conv: element ``i`` of the input puts tap ``t`` of the kernel where window ``i`` of a Conv over
the output would see it. Version 11 turned around which side gets the odd element of the padding that ``output_shape``
implies, limited ``output_padding``, and wrote down the defaults; 22 added bfloat16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops._windows import AUTO_PADS, Windows, pads_of, per_axis, reach, spatial_axes, split_pads
from onnxeval.ops.nn._correlate import check_bias, check_kernel_shape, per_channel
from onnxeval.registry import op


@op("ConvTranspose", versions=(11, 22))
@in_float32
def conv_transpose(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    output_padding: Sequence[int] | None,
    output_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    allocate: Allocate,
) -> Tensor:
    """(N, C, *sizes), (C, M / group, *kernel), (M,) -> (N, M, *output sizes).

    The output's size is ``stride * (size - 1) + output_padding + reach of the kernel`` less the pads. With
    ``output_shape``, or with SAME_UPPER and SAME_LOWER, where it is ``size * stride``, the pads are what is too
    much; where nothing is, they are zero, and zeros fill up the end.

    Raises ValueError where shapes do not fit together and where no output is left. Source: ConvTranspose-22.
    """
    windows = windows_over_output(
        x,
        w,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        output_padding=output_padding,
        output_shape=output_shape,
        pads=pads,
        strides=strides,
    )
    if output_padding and any(
        more >= max(w.stride, w.dilation) for more, w in zip(output_padding, windows, strict=True)
    ):
        steps = [max(w.stride, w.dilation) for w in windows]
        raise ValueError(f"output_padding {list(output_padding)} is not below the strides or dilations {steps}")
    return _lay(x, w, b, windows, group, allocate)


@op("ConvTranspose", versions=(1,))
@in_float32
def conv_transpose_1(
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    output_padding: Sequence[int] | None,
    output_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    allocate: Allocate,
) -> Tensor:
    """`conv_transpose` whose ``output_shape`` puts the odd element of padding at the end unless SAME_UPPER.

    Source: ConvTranspose-1, whose equations say so; without ``output_shape`` the text of ``auto_pad`` decides.
    """
    if output_shape is not None and auto_pad in AUTO_PADS:
        auto_pad = "SAME_LOWER" if auto_pad == "SAME_UPPER" else "SAME_UPPER"
    windows = windows_over_output(
        x,
        w,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        output_padding=output_padding,
        output_shape=output_shape,
        pads=None if output_shape is not None else pads,
        strides=strides,
    )
    return _lay(x, w, b, windows, group, allocate)


def windows_over_output(
    x: Tensor,
    w: Tensor,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    output_padding: Sequence[int] | None,
    output_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> tuple[Windows, ...]:
    """The windows over the output, one for each element of the input."""
    rank = len(spatial_axes(x))
    if w.ndim != x.ndim:
        raise ValueError(f"the weights have rank {w.ndim}, the input has rank {x.ndim}")
    if group < 1 or x.shape[1] % group:
        raise ValueError(f"{x.shape[1]} channels cannot be divided into {group} groups")
    if w.shape[0] != x.shape[1]:
        raise ValueError(f"the weights are for {w.shape[0]} channels, the input has {x.shape[1]}")
    check_kernel_shape(kernel_shape, w)
    begins, ends = pads_of(None if output_shape is not None else pads, rank, auto_pad)
    by_axis = zip(
        x.shape[2:],
        per_axis(w.shape[2:], rank, "kernel_shape", least=1),
        per_axis(strides, rank, "strides", least=1),
        per_axis(dilations, rank, "dilations", least=1),
        per_axis(output_padding, rank, "output_padding", least=0),
        begins,
        ends,
        per_axis(output_shape, rank, "output_shape", least=1),
        strict=True,
    )
    windows = []
    for axis, (count, kernel, stride, dilation, extra, begin, end, wanted) in enumerate(by_axis):
        full = stride * (count - 1) + extra + reach(kernel, dilation)
        if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            size = count * stride if output_shape is None else wanted
            begin, end = split_pads(max(0, full - size), more_at_end=auto_pad == "SAME_UPPER")
        else:
            size = full - begin - end
        if size < 1:
            raise ValueError(
                f"spatial axis {axis} has no output: pads {begin} and {end} take all of its {full} elements"
            )
        windows.append(Windows(size, kernel, stride, dilation, begin, end, count))
    return tuple(windows)


def _lay(x: Tensor, w: Tensor, b: Tensor | None, windows: Sequence[Windows], group: int, allocate: Allocate) -> Tensor:
    """Tap by tap: a matrix product over the channels of each group, laid where the windows have that tap."""
    batch, channels, maps = x.shape[0], x.shape[1] // group, w.shape[1]
    check_bias(b, group * maps)
    y = allocate((batch, group * maps, *(each.size for each in windows)), x.dtype)
    y[...] = 0 if b is None else per_channel(b, y.ndim)
    columns = x.reshape(batch, group, channels, math.prod(x.shape[2:]))
    kernels = w.reshape(group, channels, maps, *w.shape[2:]).swapaxes(1, 2)
    for taps in product(*(each.taps() for each in windows)):
        tap, inputs, outputs = zip(*taps, strict=True)
        laid = (kernels[(..., *tap)] @ columns).reshape(*y.shape[:2], *x.shape[2:])
        y[(..., *outputs)] += laid[(..., *inputs)]
    return y

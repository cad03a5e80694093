"""The sum that all convolutions are: kernels laid over the windows of a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._windows import Windows, at, patches, spatial_axes, windows_of
from onnxeval.ops.nn._banded import correlate_channels, suits

#: Elements under the taps that are brought together at a time: as much as a processor's cache can hold.
_BLOCK = 1 << 18


def conv_windows(
    x: Tensor,
    w: Tensor,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> tuple[Windows, ...]:
    """The windows of a convolution of x (N, C, *sizes) with w (M, C / group, *kernel).

    Raises ValueError where the shapes, the groups and ``kernel_shape`` do not fit together.
    """
    sizes = [x.shape[axis] for axis in spatial_axes(x)]
    if w.ndim != x.ndim:
        raise ValueError(f"the weights have rank {w.ndim}, the input has rank {x.ndim}")
    if group < 1:
        raise ValueError(f"group {group} is not positive")
    if x.shape[1] != w.shape[1] * group:
        raise ValueError(f"the input has {x.shape[1]} channels, expected {w.shape[1]} for each of {group} groups")
    if w.shape[0] % group:
        raise ValueError(f"{w.shape[0]} feature maps are not a multiple of {group} groups")
    check_kernel_shape(kernel_shape, w)
    return windows_of(sizes, w.shape[2:], auto_pad=auto_pad, pads=pads, strides=strides, dilations=dilations)


def check_kernel_shape(kernel_shape: Sequence[int] | None, w: Tensor) -> None:
    """Raise ValueError where ``kernel_shape`` is given and is not that of the weights."""
    if kernel_shape is not None and tuple(kernel_shape) != w.shape[2:]:
        raise ValueError(f"kernel_shape {list(kernel_shape)} is not the {list(w.shape[2:])} of the weights")


def check_bias(b: Tensor | None, maps: int) -> None:
    """Raise ValueError where there is a bias and it is not one number for each feature map."""
    if b is not None and b.shape != (maps,):
        raise ValueError(f"the bias has shape {b.shape}, expected ({maps},)")


def per_channel(values: Tensor, rank: int) -> Tensor:
    """(M,) -> (M, 1, ...), to broadcast against (N, M, D1, ...) of that rank."""
    return values.reshape(-1, *(1 for _ in range(rank - 2)))


def correlate(x: Tensor, w: Tensor, windows: Sequence[Windows], group: int, allocate: Allocate) -> Tensor:
    """(N, C, *sizes), (M, C / group, *kernel) -> (N, M, *counts), zero in the padding.

    A matrix of kernels times a matrix with what each window sees in a column. The latter repeats the input
    often, so it is made for some of the windows at a time; it is the input itself where windows are single elements.
    """
    batch, maps = x.shape[0], w.shape[0]
    if x.size and suits(w, windows, group):
        sums = correlate_channels(x, w, windows, allocate)
        if sums is not None:
            return sums
    kernels = w.reshape(group, maps // group, math.prod(w.shape[1:]))
    result = allocate((batch, maps, *[each.number for each in windows]), x.dtype)
    if not result.size:
        return result
    seen = x if all(each.is_each_element() for each in windows) else patches(x, windows, allocate)
    taps = x.shape[1] * math.prod(w.shape[2:])
    if seen is x or taps * result.size // maps <= _BLOCK:
        places = math.prod(result.shape[2:])
        columns = seen.reshape(batch, group, kernels.shape[2], places)
        np.matmul(kernels, columns, out=result.reshape(batch, group, kernels.shape[1], places))
        return result
    for samples, *ranges in _parts((batch, *result.shape[2:]), taps):
        target = result[(samples, *at(1, *ranges))]
        size = math.prod(target.shape[2:])
        columns = seen[(samples, *at(1 + len(windows), *ranges))].reshape(len(target), group, kernels.shape[2], size)
        if target.flags.c_contiguous:
            np.matmul(kernels, columns, out=target.reshape(len(target), group, kernels.shape[1], size))
        else:
            target[...] = (kernels @ columns).reshape(target.shape)
    return result


def _parts(shape: tuple[int, ...], taps: int) -> Iterator[tuple[slice, ...]]:
    """Slices of ``shape`` along one axis, each of about `_BLOCK` elements with ``taps`` for each place.

    It is the first axis that can be cut into so many, for elements that lie together are quickest to copy together.
    """
    places = math.prod(shape)
    needed = -(-taps * places // _BLOCK)
    axis = next((axis for axis, size in enumerate(shape) if size >= needed), shape.index(max(shape)))
    whole = [slice(None)] * len(shape)
    step = max(1, _BLOCK // (taps * places // shape[axis] or 1))
    for start in range(0, shape[axis], step):
        yield (*whole[:axis], slice(start, start + step), *whole[axis + 1 :])

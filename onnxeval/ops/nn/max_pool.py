"""MaxPool and GlobalMaxPool: the greatest element that each window sees.

MaxPool tells since version 8 where the maxima are, has since 10 ``ceil_mode`` and ``dilations``, takes since 12
8-bit integers. Only version 22 says that no window starts in the end padding; it is so for all versions, since such a
window sees nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops._windows import Windows, at, check_seen, slide, spatial_axes, whole_planes, windows_of
from onnxeval.registry import op


@op("MaxPool", versions=(1, 8, 10, 11, 12, 22))
@in_float32
def max_pool(
    x: Tensor,
    *,
    auto_pad: str,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    storage_order: int = 0,
    n_outputs: int,
    allocate: Allocate,
) -> tuple[Tensor, ...]:
    """(N, C, *sizes) -> (N, C, *counts), and int64 indices of the maxima in the flattened input.

    A NaN in a window is its maximum. Of equal maxima the indices name the first in row-major order, and of NaNs
    too. With ``storage_order`` 1 each plane counts as flattened column-major; the planes still follow one another.

    Raises ValueError where a window sees nothing but padding. Source: MaxPool-22.
    """
    if storage_order not in (0, 1):
        raise ValueError(f"storage_order {storage_order} is neither 0 (row-major) nor 1 (column-major)")
    sizes = [x.shape[axis] for axis in spatial_axes(x)]
    windows = windows_of(
        sizes,
        kernel_shape,
        auto_pad=auto_pad,
        pads=pads,
        strides=strides,
        dilations=dilations,
        ceil_mode=ceil_mode,
    )
    least = np.iinfo(x.dtype).min if np.issubdtype(x.dtype, np.integer) else -np.inf
    maxima = slide(x, windows, np.maximum, least, allocate)
    if maxima.size:
        check_seen(windows)
    if n_outputs < 2:
        return (maxima,)
    return maxima, _indices_of_maxima(x, windows, "F" if storage_order else "C", allocate)


@op("GlobalMaxPool", versions=(1, 22))
@in_float32
def global_max_pool(x: Tensor) -> Tensor:
    """(N, C, D1, ...) -> (N, C, 1, ...): the maximum of each plane, NaN if it holds one. Source: GlobalMaxPool-22."""
    maxima: Tensor = np.max(x, axis=whole_planes(x), keepdims=True)
    return maxima


def _indices_of_maxima(x: Tensor, windows: Sequence[Windows], order: Literal["C", "F"], allocate: Allocate) -> Tensor:
    """Where the maxima are: one axis goes after the other, and each maximum carries its index along.

    The last axis goes first, and a later tap takes over only where it is greater: the first in row-major order stays.
    """
    sizes, axes = x.shape[2:], spatial_axes(x)
    plane = math.prod(sizes)
    starts = (plane * np.arange(math.prod(x.shape[:2]))).reshape(*x.shape[:2], *(1 for _ in axes))
    indices = starts + np.arange(plane).reshape(sizes, order=order)
    for axis, w in reversed([*zip(axes, windows, strict=True)]):
        shape = (*x.shape[:axis], w.number, *x.shape[axis + 1 :])
        maxima, chosen = allocate(shape, x.dtype), allocate(shape, np.int64)
        chosen[...] = -1
        for _, which, elements in w.taps() if x.size else ():
            candidate, maximum, index = x[at(axis, elements)], maxima[at(axis, which)], chosen[at(axis, which)]
            is_first_nan = np.isnan(candidate) & ~np.isnan(maximum)
            better = (index < 0) | (candidate > maximum) | is_first_nan
            np.copyto(maximum, candidate, where=better)
            np.copyto(index, indices[at(axis, elements)], where=better)
        x, indices = maxima, chosen
    return indices

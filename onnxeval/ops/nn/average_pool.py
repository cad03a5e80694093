"""AveragePool and GlobalAveragePool: the mean of what each window sees.

AveragePool gained ``count_include_pad`` in version 7 (before, padding never counts), ``ceil_mode`` in 10,
``dilations`` in 19. Only version 22 says that no window starts in the end padding; it is so for all versions, as
for MaxPool. The formulas for ``auto_pad`` without ``ceil_mode`` in version 11 contradict the attribute's own text,
and 19 put them right.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops._windows import check_seen, slide, spatial_axes, whole_planes, windows_of
from onnxeval.registry import op


@op("AveragePool", versions=(1, 7, 10, 11, 19, 22))
@in_float32
def average_pool(
    x: Tensor,
    *,
    auto_pad: str,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    allocate: Allocate,
) -> Tensor:
    """(N, C, *sizes) -> (N, C, *counts): the mean of the elements under each window's taps.

    Padding counts as zeros with ``count_include_pad``, else not at all. Where ``ceil_mode`` lets a window reach
    over the end padding, what lies beyond counts in neither case.

    Raises ValueError where nothing counts. Source: AveragePool-22.
    """
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
    sums = slide(x, windows, np.add, 0, allocate)
    if not sums.size:
        return sums
    if not count_include_pad:
        check_seen(windows)
    counted = [w.padded() if count_include_pad else w.seen() for w in windows]
    divisors = reduce(np.multiply.outer, [count.astype(x.dtype) for count in counted])
    sums /= divisors
    return sums


@op("GlobalAveragePool", versions=(1, 22))
@in_float32
def global_average_pool(x: Tensor) -> Tensor:
    """(N, C, D1, ...) -> (N, C, 1, ...): the mean of each plane. Source: GlobalAveragePool-22."""
    means: Tensor = np.mean(x, axis=whole_planes(x), keepdims=True)
    return means

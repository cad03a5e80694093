"""MaxRoiPool: the maxima of the cells that regions of a picture are divided into.

The text leaves the cells to the paper it takes the operator from, Fast R-CNN. Version 22 added bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("MaxRoiPool", versions=(1, 22))
@in_float32
def max_roi_pool(
    x: Tensor, rois: Tensor, *, pooled_shape: Sequence[int], spatial_scale: float, allocate: Allocate
) -> Tensor:
    """(N, C, H, W), (R, 5) -> (R, C, *pooled_shape); a region is batch index, x1, y1, x2, y2.

    Its corners are scaled and rounded, halves away from zero; both belong to it, and it is at least one pixel wide and
    high. Cell i of p covers the pixels from floor(i * size / p) to ceil((i + 1) * size / p); a cell outside the picture
    is zero.

    Raises ValueError where shapes do not fit, where a batch index is none of the input's, and where a corner is not a
    finite number. Source: MaxRoiPool-22.
    """
    if x.ndim != 4:
        raise ValueError(f"the input has rank {x.ndim}, expected 4 (N, C, H, W)")
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise ValueError(f"the regions have shape {shape_text(rois.shape)}, expected [R, 5]")
    if len(pooled_shape) != 2 or min(pooled_shape) < 1:
        raise ValueError(f"pooled_shape {list(pooled_shape)} is not a positive height and width")
    batches, corners = rois[:, 0], rois[:, 1:].astype(np.float64) * spatial_scale
    known = np.isin(batches, np.arange(x.shape[0]))
    if not known.all():
        raise ValueError(f"batch index {batches[~known][0]} is none of an input of {x.shape[0]} samples")
    if not np.isfinite(corners).all():
        raise ValueError(f"corners {corners[~np.isfinite(corners)][0]} of a region are not finite numbers")
    y = allocate((rois.shape[0], x.shape[1], *pooled_shape), x.dtype)
    y[...] = 0
    rounded = np.copysign(np.floor(np.abs(corners) + 0.5), corners)
    for region, (batch, (x1, y1, x2, y2)) in enumerate(zip(batches.astype(np.int64), rounded.tolist(), strict=True)):
        columns = _cells(int(x1), int(x2), pooled_shape[1], x.shape[3])
        for i, rows in enumerate(_cells(int(y1), int(y2), pooled_shape[0], x.shape[2])):
            if rows.start >= rows.stop:
                continue
            band = x[batch, :, rows].max(axis=1)
            for j, cell in enumerate(columns):
                if cell.start < cell.stop:
                    y[region, :, i, j] = band[:, cell].max(axis=1)
    return y


def _cells(first: int, last: int, cells: int, size: int) -> list[slice]:
    """The pixels of an axis of ``size`` that each cell of a region covers; none where start is not below stop."""
    length = max(last - first + 1, 1)
    edges = [(first + i * length // cells, first - (-(i + 1) * length // cells)) for i in range(cells)]
    return [slice(min(max(start, 0), size), min(max(stop, 0), size)) for start, stop in edges]

"""RoiAlign: the mean or maximum of points that are sampled in the cells of regions of a picture.

Version 10 has no ``coordinate_transformation_mode``: it is "output_half_pixel", while 16 and later default to
"half_pixel". Version 22 added bfloat16.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from onnxeval.dtypes import DType, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op
from onnxeval.values import shape_text

#: Elements that the matrices of a region's means may have together.
_SMALL = 1 << 20


@op("RoiAlign", versions=(16, 22))
@in_float32
def roi_align(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: str,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    allocate: Allocate,
) -> Tensor:
    """(N, C, H, W), (R, 4), (R,) -> (R, C, output_height, output_width); a region is x1, y1, x2, y2.

    The corners are scaled, and with "half_pixel" moved by half a pixel towards the origin; with "output_half_pixel" a
    region is at least one pixel wide and high. Each cell has ``sampling_ratio``² points, or, where that is 0, as many
    along an axis as it is pixels long, rounded up; they are the centres of equal parts. A point's value is
    interpolated linearly; up to one pixel outside the picture it is that of the edge, farther out it is zero. "avg" is
    the mean of the values, "max" their maximum; a cell without points is zero.

    Raises ValueError where shapes do not fit, where a batch index is none of the input's, for numbers that are not
    finite and for unknown modes. Source: RoiAlign-22.
    """
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        modes = "neither 'half_pixel' nor 'output_half_pixel'"
        raise ValueError(f"coordinate_transformation_mode {coordinate_transformation_mode!r} is {modes}")
    if mode not in ("avg", "max"):
        raise ValueError(f"mode {mode!r} is neither 'avg' nor 'max'")
    if x.ndim != 4 or 0 in x.shape[2:]:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [N, C, H, W] with pixels")
    if rois.ndim != 2 or rois.shape[1] != 4 or batch_indices.shape != rois.shape[:1]:
        shapes = f"{shape_text(rois.shape)} and {shape_text(batch_indices.shape)}"
        raise ValueError(f"the regions and their batch indices have shapes {shapes}, expected [R, 4] and [R]")
    if output_height < 1 or output_width < 1 or sampling_ratio < 0:
        raise ValueError(
            f"output_height {output_height} and output_width {output_width} must be positive, "
            f"sampling_ratio {sampling_ratio} not negative"
        )
    unknown = (batch_indices < 0) | (batch_indices >= x.shape[0])
    if unknown.any():
        raise ValueError(f"batch index {batch_indices[unknown][0]} is none of an input of {x.shape[0]} samples")
    corners = rois.astype(np.float64) * spatial_scale
    if not np.isfinite(corners).all():
        raise ValueError(f"a corner of a region is {corners[~np.isfinite(corners)][0]}")

    shifted = coordinate_transformation_mode == "half_pixel"
    y = allocate((rois.shape[0], x.shape[1], output_height, output_width), x.dtype)
    for region, (batch, (x1, y1, x2, y2)) in enumerate(zip(batch_indices, corners.tolist(), strict=True)):
        rows = _points(y1, y2, output_height, sampling_ratio, shifted, allocate)
        columns = _points(x1, x2, output_width, sampling_ratio, shifted, allocate)
        cells = (x.shape[1], output_height, rows.size // output_height, output_width, columns.size // output_width)
        if not rows.size or not columns.size:
            y[region] = 0
            continue
        if mode == "avg" and output_height * x.shape[2] + output_width * x.shape[3] <= _SMALL:
            means = _means(x[batch], rows, columns, output_height, output_width)
            if np.isfinite(means).all():  # the zeros of a matrix would make NaN of an infinity that lies near
                y[region] = means
                continue
        values = _between(_between(x[batch], rows, 1, allocate), columns, 2, allocate).reshape(cells)
        y[region] = values.mean(axis=(2, 4)) if mode == "avg" else values.max(axis=(2, 4))
    return y


@op("RoiAlign", versions=(10,))
def roi_align_10(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    allocate: Allocate,
) -> Tensor:
    """`roi_align` without the shift by half a pixel. Source: RoiAlign-10."""
    aligned: Tensor = roi_align(
        x,
        rois,
        batch_indices,
        coordinate_transformation_mode="output_half_pixel",
        mode=mode,
        output_height=output_height,
        output_width=output_width,
        sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
        allocate=allocate,
    )
    return aligned


def _points(start: float, stop: float, cells: int, ratio: int, shifted: bool, allocate: Allocate) -> Tensor:
    """Where along an axis the points of a region lie, cell by cell."""
    length = stop - start if shifted else max(stop - start, 1.0)
    each = ratio or max(0, ceil(length / cells))
    points = allocate((cells * each,), np.float64)
    points[:] = np.arange(0.5, cells * each)
    return points * (length / max(1, cells * each)) + (start - 0.5 if shifted else start)


def _means(x: Tensor, rows: Tensor, columns: Tensor, height: int, width: int) -> Tensor:
    """(C, H, W) -> (C, height, width), the mean of the points of each cell, as a matrix product along each axis."""
    top, by_row = _averaging(rows, height, x.shape[1], x.dtype)
    left, by_column = _averaging(columns, width, x.shape[2], x.dtype)
    seen = x[:, top : top + by_row.shape[1], left : left + by_column.shape[1]]
    across = seen.reshape(-1, by_column.shape[1]) @ by_column.T
    turned = across.reshape(len(x), by_row.shape[1], width).swapaxes(1, 2).reshape(-1, by_row.shape[1])
    return (turned @ by_row.T).reshape(len(x), width, height).swapaxes(1, 2)


def _averaging(points: Tensor, cells: int, size: int, dtype: DType) -> tuple[int, Tensor]:
    """The first element of an axis that the points see, and how much each from there on counts in each cell."""
    inner = np.clip(points, 0, size - 1)
    below = inner.astype(np.int64)
    above = np.minimum(below + 1, size - 1)
    first = int(below.min())
    span = int(above.max()) - first + 1
    start = np.repeat(np.arange(cells), points.size // cells) * span - first
    counts = ((points >= -1) & (points <= size)) * (cells / points.size)
    fraction = inner - below
    weights = np.bincount(start + below, counts * (1 - fraction), cells * span)
    weights += np.bincount(start + above, counts * fraction, cells * span)
    return first, weights.reshape(cells, span).astype(dtype)


def _between(x: Tensor, points: Tensor, axis: int, allocate: Allocate) -> Tensor:
    """``x`` with the elements of an axis replaced by the values at ``points`` of it."""
    last = x.shape[axis] - 1
    outside = (points < -1) | (points > last + 1)
    inner = np.clip(points, 0, last)
    below = inner.astype(np.int64)
    shape = [1] * x.ndim
    shape[axis] = points.size
    fraction = np.where(outside, 0, inner - below).astype(x.dtype).reshape(shape)
    values = allocate((*x.shape[:axis], points.size, *x.shape[axis + 1 :]), x.dtype)
    x.take(below, axis, out=values, mode="clip")
    values *= 1 - fraction
    values += x.take(np.minimum(below + 1, last), axis) * fraction
    np.copyto(values, 0, where=outside.reshape(shape))
    return values

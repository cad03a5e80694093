"""RoiAlign: the mean or maximum of points that are sampled in the cells of regions of a picture.

Version 10 has no ``coordinate_transformation_mode``: it is "output_half_pixel", while 16 and later default to
"half_pixel". Version 22 added bfloat16.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op
from onnxeval.values import shape_text


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

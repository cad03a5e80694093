"""CropAndResize: boxes of pictures, brought to one size."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOAT64, INT32, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("CropAndResize", "TTII", T=(FLOAT16, FLOAT32, FLOAT64), I=(INT32,))
@in_float32
def crop_and_resize(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    crop_size: Tensor,
    *,
    extrapolation_value: float = 0.0,
    mode: str = "bilinear",
    allocate: Allocate,
) -> Tensor:
    """(N, C, H, W) -> (boxes, C, *``crop_size``): the boxes (y1, x1, y2, x2), in which 1 is the last row or column.

    The corners of a crop lie on those of its box; a crop of one row or column lies in the middle of it. What is outside
    the picture is ``extrapolation_value``. ``mode`` is "bilinear" or "nearest", halves away from zero.

    Raises ValueError for other modes, where shapes do not fit together and for pictures that are not there.
    Source: com.microsoft.CropAndResize-1.
    """
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"mode {mode!r} is neither 'bilinear' nor 'nearest'")
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or batch_indices.shape != rois.shape[:1]:
        shapes = f"{shape_text(x.shape)}, {shape_text(rois.shape)} and {shape_text(batch_indices.shape)}"
        raise ValueError(f"X, rois and batch_indices have shapes {shapes}, expected [N, C, H, W], [R, 4] and [R]")
    if crop_size.shape != (2,) or crop_size.min() < 1:
        raise ValueError(f"crop_size {crop_size.tolist()} is not two positive numbers")
    if batch_indices.size and (batch_indices.min() < 0 or batch_indices.max() >= len(x)):
        raise ValueError(f"batch_indices {batch_indices.min()} to {batch_indices.max()} leave the {len(x)} pictures")
    height, width = (int(size) for size in crop_size)
    result = allocate((len(rois), x.shape[1], height, width), x.dtype)
    rows = _places(rois[:, 0], rois[:, 2], height, x.shape[2])
    columns = _places(rois[:, 1], rois[:, 3], width, x.shape[3])
    for target, picture, y, across in zip(result, batch_indices, rows, columns, strict=True):
        inside = ((y >= 0) & (y <= x.shape[2] - 1))[:, np.newaxis] & (across >= 0) & (across <= x.shape[3] - 1)
        sample = _bilinear if mode == "bilinear" else _nearest
        values = sample(x[picture], *(np.clip(p, 0, n - 1) for p, n in ((y, x.shape[2]), (across, x.shape[3]))))
        target[...] = np.where(inside, values, x.dtype.type(extrapolation_value))
    return result


def _places(first: Tensor, last: Tensor, count: int, size: int) -> Tensor:
    """(boxes, count): where the rows or columns of the crops lie."""
    first, last = first[:, np.newaxis], last[:, np.newaxis]
    if count == 1:
        return np.asarray(0.5 * (first + last) * (size - 1))
    step = (last - first) * (size - 1) / (count - 1)
    return np.asarray(first * (size - 1) + np.arange(count, dtype=first.dtype) * step)


def _nearest(picture: Tensor, y: Tensor, across: Tensor) -> Tensor:
    rows, columns = (np.floor(place + 0.5).astype(np.int64) for place in (y, across))
    result: Tensor = picture[:, rows[:, np.newaxis], columns]
    return result


def _bilinear(picture: Tensor, y: Tensor, across: Tensor) -> Tensor:
    top, left = np.floor(y).astype(np.int64), np.floor(across).astype(np.int64)
    bottom, right = np.ceil(y).astype(np.int64), np.ceil(across).astype(np.int64)
    down, over = (y - top)[:, np.newaxis], across - left
    above, below = (
        picture[:, row[:, np.newaxis], left] * (1 - over) + picture[:, row[:, np.newaxis], right] * over
        for row in (top, bottom)
    )
    return np.asarray(above * (1 - down) + below * down).astype(picture.dtype)

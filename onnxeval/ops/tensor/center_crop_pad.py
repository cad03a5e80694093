"""CenterCropPad: a window around the middle, or a border around it."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._axes import normalise_axes
from onnxeval.ops.tensor.pad import pad
from onnxeval.registry import op


@op("CenterCropPad", versions=(18,))
def center_crop_pad(input_data: Tensor, shape: Tensor, *, axes: tuple[int, ...] | None, allocate: Allocate) -> Tensor:
    """``input_data`` with ``axes`` (all, if absent) cropped, or padded with zeros, to the lengths in ``shape``.

    An odd crop starts half an element to the left, an odd border has its surplus on the right. ValueError where
    ``shape`` is not 1-D, does not fit ``axes`` or is negative. Source: CenterCropPad-18.
    """
    along = range(input_data.ndim) if axes is None else normalise_axes(axes, input_data.ndim)
    if shape.shape != (len(along),):
        raise ValueError(f"shape is {list(shape.shape)}, expected [{len(along)}] for {len(along)} axes")
    lengths = [int(length) for length in shape]
    if min(lengths, default=0) < 0:
        raise ValueError(f"shape {lengths} holds a negative length")
    growth = [length - input_data.shape[axis] for axis, length in zip(along, lengths, strict=True)]
    before = [by // 2 if by >= 0 else -(-by // 2) for by in growth]
    after = [by - first for by, first in zip(growth, before, strict=True)]
    pads = np.array(before + after, np.int64)
    return pad(input_data, pads, None, np.array(along, np.int64), mode="constant", allocate=allocate)

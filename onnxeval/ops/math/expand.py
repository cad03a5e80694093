"""Expand. The versions differ in types alone."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("Expand", versions=(8, 13))
def expand(x: Tensor, shape: Tensor, *, allocate: Allocate) -> Tensor:
    """Repeat x to the shape that its own and ``shape`` broadcast to, which may be larger than ``shape``.

    Raises ValueError where they do not broadcast. Source: Expand-13.
    """
    if shape.ndim != 1:
        raise ValueError(f"shape has rank {shape.ndim}, expected 1")
    wanted = tuple(shape.tolist())
    if any(size < 0 for size in wanted):
        raise ValueError(f"shape {shape_text(wanted)} holds a negative size")
    try:
        common = np.broadcast_shapes(x.shape, wanted)
    except ValueError:
        raise ValueError(f"shapes {shape_text(x.shape)} and {shape_text(wanted)} do not broadcast") from None
    result = allocate(common, x.dtype)
    result[...] = x
    return result

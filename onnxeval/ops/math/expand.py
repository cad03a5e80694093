"""Expand. The versions differ in types alone."""

from __future__ import annotations

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
    rank = max(x.ndim, len(wanted))
    pairs = [*zip(*((1,) * (rank - len(sizes)) + sizes for sizes in (x.shape, wanted)), strict=True)]
    if not all(1 in pair or pair[0] == pair[1] for pair in pairs):
        raise ValueError(f"shapes {shape_text(x.shape)} and {shape_text(wanted)} do not broadcast")
    common = tuple(one if other == 1 else other for one, other in pairs)  # NumPy refuses what it cannot count
    result = allocate(common, x.dtype)
    result[...] = x
    return result

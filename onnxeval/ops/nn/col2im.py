"""Col2Im: blocks, one in each column, laid back into the image that a sliding window took them from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from onnxeval.dtypes import STRING, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops._windows import windows_of
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("Col2Im", versions=(18,))
@in_float32
def col2im(
    columns: Tensor,
    image_shape: Tensor,
    block_shape: Tensor,
    *,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    allocate: Allocate,
) -> Tensor:
    """(N, C * elements of a block, L) -> (N, C, *image_shape): where blocks overlap they add up, elsewhere is zero.

    The blocks are in row-major order of their places. Of booleans the sum is their disjunction; strings have none.

    Raises ValueError where the shapes do not fit together, and where strings overlap. Source: Col2Im-18.
    """
    sizes, kernel = image_shape.tolist(), block_shape.tolist()
    if columns.ndim != 3:
        raise ValueError(f"the input has rank {columns.ndim}, expected 3 (N, C * elements of a block, L)")
    if image_shape.ndim != 1 or len(sizes) < 2 or min(sizes) < 1:
        raise ValueError(f"image_shape {sizes} is not a list of at least two positive sizes")
    if block_shape.ndim != 1 or len(kernel) != len(sizes):
        raise ValueError(f"block_shape {kernel} does not fit image_shape {sizes}")
    windows = windows_of(sizes, kernel, auto_pad="NOTSET", pads=pads, strides=strides, dilations=dilations)
    batch, rows, blocks = columns.shape
    counts = [w.number for w in windows]
    if rows % math.prod(kernel) or blocks != math.prod(counts):
        raise ValueError(
            f"the input has shape {shape_text(columns.shape)}, expected [N, a multiple of {math.prod(kernel)}, "
            f"{math.prod(counts)}]: blocks {kernel} have {counts} places in an image {sizes}"
        )
    stacked = columns.reshape(batch, rows // math.prod(kernel), *kernel, *counts)
    image = allocate((*stacked.shape[:2], *sizes), columns.dtype)
    is_text = columns.dtype == STRING
    image[...] = "" if is_text else 0
    laid = np.zeros(sizes, np.bool_)
    for taps in product(*(w.taps() for w in windows)):
        tap, places, elements = zip(*taps, strict=True)
        block_elements = stacked[(slice(None), slice(None), *tap, *places)]
        if not is_text:
            image[(..., *elements)] += block_elements
            continue
        if laid[elements].any():
            raise ValueError(
                f"blocks {kernel} with strides {[w.stride for w in windows]} overlap, and strings do not add up"
            )
        laid[elements] = True
        image[(..., *elements)] = block_elements
    return image

"""MaxUnpool: each maximum goes back to where MaxPool found it.

All versions mean the same; 11 wrote down the default of ``strides``, 22 added bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._windows import pads_of, per_axis, spatial_axes
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("MaxUnpool", versions=(9, 11, 22))
def max_unpool(
    x: Tensor,
    indices: Tensor,
    output_shape: Tensor | None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    allocate: Allocate,
) -> Tensor:
    """(N, C, *counts) -> (N, C, *sizes), zero but for the maxima; indices count in the flattened output, row-major.

    Without ``output_shape`` a size is ``stride * (count - 1) + kernel`` less the pads, the least that MaxPool makes
    such counts of. With it the pads are ignored, and the indices count in the output of that shape: so MaxUnpool
    undoes the MaxPool of an input of that shape.

    Raises ValueError where shapes do not fit together and where an index lies outside the output. Source: MaxUnpool-22.
    """
    rank = len(spatial_axes(x))
    kernel = per_axis(kernel_shape, rank, "kernel_shape", least=1)
    steps = per_axis(strides, rank, "strides", least=1)
    begins, ends = pads_of(pads, rank, "NOTSET")
    if indices.shape != x.shape:
        raise ValueError(f"the indices have shape {shape_text(indices.shape)}, the input {shape_text(x.shape)}")
    if output_shape is None:
        by_axis = zip(x.shape[2:], kernel, steps, begins, ends, strict=True)
        sizes = [step * (count - 1) + width - begin - end for count, width, step, begin, end in by_axis]
        shape = (*x.shape[:2], *sizes)
    else:
        shape = tuple(output_shape.ravel().tolist())
    if len(shape) != x.ndim or shape[:2] != x.shape[:2] or min(shape[2:]) < 1:
        raise ValueError(f"an output of shape {list(shape)} does not fit an input of shape {shape_text(x.shape)}")
    y = allocate(shape, x.dtype)
    y[...] = 0
    outside = (indices < 0) | (indices >= y.size)
    if outside.any():
        raise ValueError(
            f"index {indices[outside][0]} lies outside an output of shape {list(shape)}, {y.size} elements"
        )
    np.put(y, indices, x)
    return y

"""Compress: the slices that a condition picks."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.registry import op


@op("Compress", versions=(9, 11, 28))
def compress(x: Tensor, condition: Tensor, *, axis: int | None) -> Tensor:
    """The slices along ``axis``, or the elements if it is absent, where ``condition`` holds; none past its end.

    ValueError where ``condition`` is not 1-D or is longer than what it picks from. Source: Compress-28.
    """
    if x.ndim < 1 or condition.ndim != 1:
        raise ValueError(f"the ranks are {x.ndim} and {condition.ndim}, expected 1 at least and 1")
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = normalise_axis(axis, x.ndim)
    if condition.size > x.shape[axis]:
        raise ValueError(f"the condition has {condition.size} elements for {x.shape[axis]} slices")
    return x.take(np.flatnonzero(condition), axis)

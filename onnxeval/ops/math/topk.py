"""TopK.

`k` is an attribute in version 1, an input since 10. `largest` and `sorted` come in version 11, before it both are set.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import BFLOAT16, Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._scalar import scalar
from onnxeval.registry import op


@op("TopK", versions=(10, 11, 24))
def top_k(
    x: Tensor,
    k: Tensor,
    *,
    axis: int,
    largest: int = 1,
    sorted: int = 1,  # noqa: ARG001  where it is 0 any order is right, and so is the sorted one
) -> tuple[Tensor, Tensor]:
    """The ``k`` largest, or smallest, along ``axis`` and their int64 indices, the first of them first.

    Of equal elements the one of the lower index comes first. NaN is above every number. Raises ValueError where
    there are fewer than ``k``, or k is negative. Source: TopK-24.
    """
    axis = normalise_axis(axis, x.ndim)
    count = scalar(k, name="k")
    if not 0 <= count <= x.shape[axis]:
        raise ValueError(f"k {count} is outside [0, {x.shape[axis]}], the size of axis {axis}")
    keys = x.astype(np.float32) if x.dtype == BFLOAT16 else x
    if largest:  # stable from the back, so that ties end up in rising order when turned round
        rising = x.shape[axis] - 1 - np.argsort(np.flip(keys, axis), axis, kind="stable")
        order = np.flip(rising, axis)
    else:
        order = np.argsort(keys, axis, kind="stable")
    indices = np.take(order, np.arange(count), axis)
    return np.take_along_axis(x, indices, axis), indices


@op("TopK", versions=(1,))
def top_k_attribute(x: Tensor, *, axis: int, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` largest along ``axis`` and their indices. Source: TopK-1."""
    values, indices = top_k(x, np.array([k]), axis=axis)
    return values, indices

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
    indices = _foremost(keys, count, axis, largest) if 4 * count <= x.shape[axis] else None
    if indices is None:
        indices = np.take(_ordered(keys, axis, largest), np.arange(count), axis)
    return np.take_along_axis(x, indices, axis), indices


def _ordered(keys: Tensor, axis: int, largest: int) -> Tensor:
    """The indices of the keys in their order."""
    if not largest:
        return np.argsort(keys, axis, kind="stable")
    # Stable from the back, so that ties end up in rising order when turned round
    rising = keys.shape[axis] - 1 - np.argsort(np.flip(keys, axis), axis, kind="stable")
    return np.flip(rising, axis)


def _foremost(keys: Tensor, count: int, axis: int, largest: int) -> Tensor | None:
    """The indices of the first few without ordering the others; None where equal ones are among both, and for NaN."""
    if not count:
        return None
    size = keys.shape[axis]
    parted = np.argpartition(keys, size - count if largest else count - 1, axis)
    few = np.arange(size - count, size) if largest else np.arange(count)
    candidates = np.sort(np.take(parted, few, axis), axis)
    values = np.take_along_axis(keys, candidates, axis)
    last = (values.min if largest else values.max)(axis, keepdims=True)
    if np.isnan(last).any() or np.count_nonzero(keys == last) != np.count_nonzero(values == last):
        return None
    return np.take_along_axis(candidates, _ordered(values, axis, largest), axis)


@op("TopK", versions=(1,))
def top_k_attribute(x: Tensor, *, axis: int, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` largest along ``axis`` and their indices. Source: TopK-1."""
    values, indices = top_k(x, np.array([k]), axis=axis)
    return values, indices

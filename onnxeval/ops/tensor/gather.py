"""Gather, GatherElements and GatherND: elements and slices picked by their indices.

A negative index counts from the back; Gather-1, which does not say so, is no exception. ``batch_dims`` of GatherND
arrived in 12.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.registry import op


@op("Gather", versions=(1, 11, 13))
def gather(data: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    """The slices of ``data`` at ``indices`` on ``axis``: the axis gives way to those of ``indices``.

    A single index of rank 0 gives a view. ValueError where an index is outside. Source: Gather-13.
    """
    along = normalise_axis(axis, data.ndim)
    _require_inside(indices, data.shape[along], along)
    if indices.ndim == 0:
        return data[(*(slice(None),) * along, indices.item(), ...)]
    return data.take(indices, axis=along)


@op("GatherElements", versions=(11, 13))
def gather_elements(data: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    """For each index the element of ``data`` at its own position, but for ``axis``, where the index tells it.

    Both have one rank; ``indices`` may be smaller on the other axes, not larger. ValueError otherwise, and where an
    index is outside. Source: GatherElements-13.
    """
    along = normalise_axis(axis, data.ndim)
    if indices.ndim != data.ndim:
        raise ValueError(f"indices have rank {indices.ndim}, data has {data.ndim}")
    for other, (size, limit) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if other != along and size > limit:
            raise ValueError(f"indices {list(indices.shape)} exceed data {list(data.shape)} on axis {other}")
    _require_inside(indices, data.shape[along], along)
    reached = data[tuple(slice(None) if i == along else slice(size) for i, size in enumerate(indices.shape))]
    return np.take_along_axis(reached, indices, along)


@op("GatherND", versions=(11, 12, 13))
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """The slices of ``data`` at the positions that the last axis of ``indices`` holds.

    ``data`` is (batch, a, b), ``indices`` (batch, n, K) with a of K sizes, the output (batch, n, b), where batch stands
    for the ``batch_dims`` leading sizes. ValueError where they do not fit, and where an index is outside.
    Source: GatherND-13.
    """
    if data.ndim < 1 or indices.ndim < 1:
        raise ValueError(f"data has rank {data.ndim} and indices {indices.ndim}, expected 1 at least")
    if not 0 <= batch_dims < min(data.ndim, indices.ndim):
        raise ValueError(f"batch_dims {batch_dims} is outside [0, {min(data.ndim, indices.ndim) - 1}]")
    batch = data.shape[:batch_dims]
    if indices.shape[:batch_dims] != batch:
        raise ValueError(f"the {batch_dims} batch sizes of {list(data.shape)} and {list(indices.shape)} differ")
    depth = indices.shape[-1]
    if not 1 <= depth <= data.ndim - batch_dims:
        raise ValueError(
            f"indices {list(indices.shape)} address {depth} axes, expected 1 to {data.ndim - batch_dims} of "
            f"{list(data.shape)} after {batch_dims} batch axes"
        )
    columns = [indices[..., column] for column in range(depth)]
    for column, positions in enumerate(columns):
        _require_inside(positions, data.shape[batch_dims + column], batch_dims + column)
    inner = (1,) * (indices.ndim - 1 - batch_dims)
    grids: tuple[Tensor, ...] = np.indices(batch, sparse=True)
    where: list[Any] = [grid.reshape(grid.shape + inner) for grid in grids] + columns
    return data[(*where, ...)]


def _require_inside(indices: Tensor, size: int, axis: int) -> None:
    if indices.size and (indices.min() < -size or indices.max() >= size):
        outside = indices[(indices < -size) | (indices >= size)]
        raise ValueError(f"index {outside[0]} is outside [{-size}, {size - 1}] on axis {axis}")

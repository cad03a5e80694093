"""Scatter, ScatterElements and ScatterND: a tensor with some of its elements replaced or combined.

``reduction`` arrived in version 16 with add and mul, max and min joined them in 18. Scatter is the old name of
ScatterElements.
"""

from __future__ import annotations

from math import prod

import numpy as np

from onnxeval.dtypes import STRING, Tensor, name_of
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op

#: A reduction -> the function that combines an element with its updates.
REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@op("Scatter", versions=(9, 11))
@op("ScatterElements", versions=(11, 13, 18))
def scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int, reduction: str = "none") -> Tensor:
    """``data`` with each update put, or combined, at its own position but for ``axis``, where ``indices`` tells it.

    All three have one rank, ``indices`` and ``updates`` one shape. Of updates to the same place the last one stays if
    ``reduction`` is ``none``, and all count otherwise. ValueError where an index is outside.
    Source: ScatterElements-18.
    """
    axis = normalise_axis(axis, data.ndim)
    if indices.shape != updates.shape:
        raise ValueError(f"indices {list(indices.shape)} and updates {list(updates.shape)} have two shapes")
    if indices.ndim != data.ndim:
        raise ValueError(f"indices have rank {indices.ndim}, data has {data.ndim}")
    for other, (size, limit) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if other != axis and size > limit:
            raise ValueError(f"indices {list(indices.shape)} exceed data {list(data.shape)} on axis {other}")
    where: list[Tensor] = list(np.indices(indices.shape, sparse=True))
    where[axis] = _from_the_front(indices, data.shape[axis])
    return _put(data, tuple(where), updates, reduction)


@op("ScatterElements", versions=(16,))
def scatter_elements_16(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int, reduction: str) -> Tensor:
    """As `scatter_elements`, before ``max`` and ``min``. Source: ScatterElements-16."""
    _require_early(reduction)
    return scatter_elements(data, indices, updates, axis=axis, reduction=reduction)


@op("ScatterND", versions=(11, 13, 18))
def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """``data`` with slices put, or combined, at the positions that the last axis of ``indices`` holds.

    ``indices`` is (..., K), ``updates`` is (...) and then the last axes of ``data``, all but K. Of updates to the same
    place the last one stays if ``reduction`` is ``none``, and all count otherwise. ValueError where an index is
    outside. Source: ScatterND-18.
    """
    if data.ndim < 1 or indices.ndim < 1:
        raise ValueError(f"data has rank {data.ndim} and indices {indices.ndim}, expected 1 at least")
    depth = indices.shape[-1]
    if depth > data.ndim:
        raise ValueError(f"indices {list(indices.shape)} address {depth} axes, data {list(data.shape)} has {data.ndim}")
    addressed, rest = data.shape[:depth], data.shape[depth:]
    if updates.shape != indices.shape[:-1] + rest:
        raise ValueError(f"updates are {list(updates.shape)}, expected {list(indices.shape[:-1] + rest)}")
    rows = np.zeros(indices.shape[:-1], np.int64)
    for axis, size in enumerate(addressed):
        rows = rows * size + _from_the_front(indices[..., axis], size)
    by_row = _put(data.reshape(prod(addressed), *rest), (rows,), updates, reduction)
    return by_row.reshape(data.shape)


@op("ScatterND", versions=(16,))
def scatter_nd_16(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str) -> Tensor:
    """As `scatter_nd`, before ``max`` and ``min``. Source: ScatterND-16."""
    _require_early(reduction)
    return scatter_nd(data, indices, updates, reduction=reduction)


def _require_early(reduction: str) -> None:
    if reduction in ("max", "min"):
        raise ValueError(f"reduction {reduction!r} is none of 'none', 'add', 'mul' (it came with version 18)")


def _from_the_front(indices: Tensor, size: int) -> Tensor:
    outside = (indices < -size) | (indices >= size)
    if outside.any():
        raise ValueError(f"index {indices[outside][0]} is outside [{-size}, {size - 1}]")
    return np.where(indices < 0, indices + size, indices)


def _put(data: Tensor, where: tuple[Tensor, ...], updates: Tensor, reduction: str) -> Tensor:
    if reduction != "none":
        return _combined(data, updates, where=where, reduction=reduction)
    output = data.copy()
    output[where] = updates
    return output


@in_float32
def _combined(data: Tensor, updates: Tensor, *, where: tuple[Tensor, ...], reduction: str) -> Tensor:
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction {reduction!r} is none of {', '.join(map(repr, ('none', *REDUCTIONS)))}")
    if data.dtype == STRING or (data.dtype.kind == "c" and reduction in ("max", "min")):
        raise TypeError(f"reduction {reduction!r} has no meaning for {name_of(data.dtype)}")
    output = data.copy()
    combine = REDUCTIONS[reduction]
    if data.dtype == np.bool_ or not output.size:
        combine.at(output, where, updates)
    else:  # as NumPy is quick for one list of places alone
        places = np.arange(output.size).reshape(output.shape)[where]
        combine.at(output.reshape(-1), places.reshape(-1), updates.reshape(-1))
    return output

"""Reshape, Squeeze, Unsqueeze, Shape, Size and Identity: the same elements under another shape, or the shape itself.

The shape of Reshape was an attribute before version 5, ``axes`` of Squeeze and Unsqueeze before 13; ``allowzero``
arrived in 14. Squeeze and Unsqueeze count axes from the back since 11. Shape cuts out a part of the shape since 15.
"""

from __future__ import annotations

from math import prod

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axes
from onnxeval.registry import op
from onnxeval.values import Value, check_countable


@op("Identity", versions=(1, 13, 14, 16, 19, 21, 23, 24, 25))
def identity(x: Value) -> Value:
    """``x`` itself: a tensor, since 14 a sequence, since 16 an optional. Source: Identity-25."""
    return x


@op("Reshape", versions=(5, 13, 14, 19, 21, 23, 24, 25))
def reshape(data: Tensor, shape: Tensor, *, allowzero: int = 0) -> Tensor:
    """The elements of ``data`` in row-major order under a new shape, as a view where there can be one.

    One size may be -1: what the others leave. A 0 copies the size of the same axis of ``data`` unless ``allowzero``,
    which forbids 0 and -1 together. ValueError where the number of elements differs, and for a -1 beside a size 0,
    which nothing determines. Source: Reshape-25.
    """
    if shape.ndim != 1:
        raise ValueError(f"the shape is a tensor of rank {shape.ndim}, expected 1")
    return _reshaped(data, shape.tolist(), allowzero=bool(allowzero))


@op("Reshape", versions=(1,))
def reshape_to_attribute(data: Tensor, *, shape: tuple[int, ...] | None) -> Tensor:
    """As `reshape`, with the shape an attribute. Source: Reshape-1."""
    if shape is None:
        raise ValueError("the attribute shape is missing")
    return _reshaped(data, list(shape), allowzero=False)


def _reshaped(data: Tensor, wanted: list[int], *, allowzero: bool) -> Tensor:
    sizes = list(wanted)
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        raise ValueError(f"shape {wanted} has a size below -1, or -1 twice")
    if allowzero and 0 in sizes and -1 in sizes:
        raise ValueError(f"shape {wanted} has both 0 and -1, which allowzero=1 forbids")
    if not allowzero:
        for axis, size in enumerate(wanted):
            if size == 0:
                if axis >= data.ndim:
                    raise ValueError(f"shape {wanted} copies axis {axis}, the input {list(data.shape)} has none")
                sizes[axis] = data.shape[axis]
    if -1 in sizes:
        others = prod(size for size in sizes if size != -1)
        if others == 0 or data.size % others:
            raise ValueError(f"shape {wanted}: -1 cannot be told, {data.size} elements over {others}")
        sizes[sizes.index(-1)] = data.size // others
    if prod(sizes) != data.size:
        raise ValueError(f"the {data.size} elements of {list(data.shape)} cannot become {sizes}")
    check_countable(sizes, data.dtype)
    return data.reshape(sizes)


@op("Squeeze", versions=(13, 21, 23, 24, 25))
def squeeze(data: Tensor, axes: Tensor | None) -> Tensor:
    """``data`` without ``axes``, or without all axes of size 1 where they are absent, as a view.

    ValueError where an axis is not of size 1, is outside or is given twice. Source: Squeeze-25.
    """
    return _squeezed(data, None if axes is None else _listed(axes))


@op("Squeeze", versions=(11,))
def squeeze_attribute(data: Tensor, *, axes: tuple[int, ...] | None) -> Tensor:
    """As `squeeze`, with the axes an attribute. Source: Squeeze-11."""
    return _squeezed(data, axes)


@op("Squeeze", versions=(1,))
def squeeze_from_the_front(data: Tensor, *, axes: tuple[int, ...] | None) -> Tensor:
    """As `squeeze_attribute`; a negative axis is a ValueError. Source: Squeeze-1."""
    _require_front(axes or ())
    return _squeezed(data, axes)


def _squeezed(data: Tensor, axes: tuple[int, ...] | None) -> Tensor:
    if axes is None:
        return data.reshape([size for size in data.shape if size != 1])
    normal = normalise_axes(axes, data.ndim)
    if wide := [axis for axis in normal if data.shape[axis] != 1]:
        raise ValueError(f"axis {wide[0]} has size {data.shape[wide[0]]}, only size 1 can be squeezed")
    return data.reshape([size for axis, size in enumerate(data.shape) if axis not in normal])


@op("Unsqueeze", versions=(13, 21, 23, 24, 25))
def unsqueeze(data: Tensor, axes: Tensor) -> Tensor:
    """``data`` with axes of size 1 inserted, as a view; ``axes`` are positions in the output, in any order.

    ValueError where one is outside or given twice. Source: Unsqueeze-25.
    """
    return _unsqueezed(data, _listed(axes))


@op("Unsqueeze", versions=(11,))
def unsqueeze_attribute(data: Tensor, *, axes: tuple[int, ...]) -> Tensor:
    """As `unsqueeze`, with the axes an attribute. Source: Unsqueeze-11."""
    return _unsqueezed(data, axes)


@op("Unsqueeze", versions=(1,))
def unsqueeze_from_the_front(data: Tensor, *, axes: tuple[int, ...]) -> Tensor:
    """As `unsqueeze_attribute`; a negative axis is a ValueError. Source: Unsqueeze-1."""
    _require_front(axes)
    return _unsqueezed(data, axes)


def _unsqueezed(data: Tensor, axes: tuple[int, ...]) -> Tensor:
    rank = data.ndim + len(axes)
    inserted = set(normalise_axes(axes, rank))
    sizes = iter(data.shape)
    return data.reshape([1 if axis in inserted else next(sizes) for axis in range(rank)])


@op("Shape", versions=(1, 13, 15, 19, 21, 23, 24, 25))
def shape(data: Tensor, *, start: int = 0, end: int | None = None) -> Tensor:
    """The sizes of the axes from ``start`` to ``end``, int64 of rank 1; both are clamped to the axes there are.

    Negative ones count from the back, ``end`` is exclusive. Source: Shape-25.
    """
    return np.array(data.shape[start:end], np.int64)


@op("Size", versions=(1, 13, 19, 21, 23, 24, 25))
def size(data: Tensor) -> Tensor:
    """The number of elements, int64 of rank 0. Source: Size-25."""
    return np.array(data.size, np.int64)


def _listed(axes: Tensor) -> tuple[int, ...]:
    if axes.ndim > 1:
        raise ValueError(f"axes are a tensor of rank {axes.ndim}, expected 1")
    return tuple(axes.reshape(-1).tolist())


def _require_front(axes: tuple[int, ...]) -> None:
    if min(axes, default=0) < 0:
        raise ValueError(f"axes {list(axes)} count from the back, which needs opset 11")

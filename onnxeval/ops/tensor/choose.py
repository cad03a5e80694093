"""Where, NonZero, IsNaN, IsInf and OneHot: conditions on elements, and what follows from them.

OneHot counts indices from the back since version 11.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import STRING, Tensor, is_integer
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._cast import convert
from onnxeval.registry import op


@op("Where", versions=(9, 16))
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """``x`` where the condition holds, else ``y``; all three broadcast to one shape. Source: Where-16."""
    return np.where(condition, x, y)


@op("NonZero", versions=(9, 13))
def non_zero(x: Tensor) -> Tensor:
    """The indices of the elements that are not zero, int64 (rank, count), in row-major order.

    A string is zero where it is empty. For rank 0 the shape is (0, 0) or (0, 1). Source: NonZero-13.
    """
    present = x.astype(bool) if x.dtype == STRING else np.asarray(x != 0)
    if x.ndim == 0:
        return np.empty((0, int(present)), np.int64)
    return np.array(np.nonzero(present), np.int64)


@op("IsNaN", versions=(9, 13, 20))
def is_nan(x: Tensor) -> Tensor:
    """Whether each element is NaN, bool. Source: IsNaN-20."""
    return np.isnan(x)


@op("IsInf", versions=(10, 20))
def is_inf(x: Tensor, *, detect_negative: int, detect_positive: int) -> Tensor:
    """Whether each element is an infinity of a sign that is looked for, bool. Source: IsInf-20."""
    infinite = np.isinf(x)
    if not detect_negative:
        infinite &= ~np.signbit(x)
    if not detect_positive:
        infinite &= np.signbit(x)
    return infinite


@op("OneHot", versions=(11, 28))
def one_hot(indices: Tensor, depth: Tensor, values: Tensor, *, axis: int, allocate: Allocate) -> Tensor:
    """``values`` is (off, on): a new ``axis`` of size ``depth`` holds on at the index and off elsewhere.

    Indices in [-depth, -1] count from the back, others outside [0, depth) give off alone. Indices and depth that are no
    integers are cast to int64. ValueError where depth is negative or not of one element, and where ``axis`` is outside.
    Source: OneHot-28.
    """
    size = _size(depth)
    return _one_hot(_integers(indices), -size, size, values, axis, allocate)


@op("OneHot", versions=(9,))
def one_hot_from_the_front(indices: Tensor, depth: Tensor, values: Tensor, *, axis: int, allocate: Allocate) -> Tensor:
    """As `one_hot`; a negative index gives off alone. Source: OneHot-9."""
    return _one_hot(_integers(indices), 0, _size(depth), values, axis, allocate)


def _one_hot(indices: Tensor, lowest: int, size: int, values: Tensor, axis: int, allocate: Allocate) -> Tensor:
    if values.shape != (2,):
        raise ValueError(f"values are of shape {list(values.shape)}, expected [2]: off and on")
    along = normalise_axis(axis, indices.ndim + 1)
    output = allocate((*indices.shape[:along], size, *indices.shape[along:]), values.dtype)
    output[...] = values[0]
    if size:
        inside = np.expand_dims(np.asarray((indices >= lowest) & (indices < size)), along)
        positions = np.where(inside, np.expand_dims(indices, along), 0).astype(np.int64)
        np.put_along_axis(output, positions, values[inside.astype(np.int64)], along)
    return output


def _size(depth: Tensor) -> int:
    if depth.size != 1:
        raise ValueError(f"depth is of shape {list(depth.shape)}, expected one element")
    size = int(_integers(depth).item())
    if size < 0:
        raise ValueError(f"depth {size} is negative")
    return size


def _integers(x: Tensor) -> Tensor:
    return x if is_integer(x.dtype) else convert(x, np.dtype(np.int64))

"""Flatten: a matrix of all elements. ``axis`` counts from the back since version 11."""

from __future__ import annotations

from math import prod

from onnxeval.dtypes import Tensor
from onnxeval.registry import op


@op("Flatten", versions=(11, 13, 21, 23, 24, 25))
def flatten(x: Tensor, *, axis: int) -> Tensor:
    """(d0, ..., dn) -> (d0 * ... * d(axis-1), d(axis) * ... * dn), as a view where there can be one.

    ValueError where ``axis`` is outside [-r, r] for rank r. Source: Flatten-25.
    """
    if not -x.ndim <= axis <= x.ndim:
        raise ValueError(f"axis {axis} is outside [{-x.ndim}, {x.ndim}] for a tensor of rank {x.ndim}")
    first = axis + x.ndim if axis < 0 else axis
    return x.reshape(prod(x.shape[:first]), prod(x.shape[first:]))


@op("Flatten", versions=(1, 9))
def flatten_from_the_front(x: Tensor, *, axis: int) -> Tensor:
    """As `flatten`; a negative ``axis`` is a ValueError. Source: Flatten-9."""
    if axis < 0:
        raise ValueError(f"axis {axis} counts from the back, which needs opset 11")
    return flatten(x, axis=axis)

"""Finding elements in lists of keys, and choosing among attributes of which one must be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, is_float, is_integer, name_of

ML = "ai.onnx.ml"

#: A Python type that lists in attributes hold -> the dtype of an array of them.
_DTYPES: dict[type, DType] = {str: STRING, float: np.dtype(np.float32), int: np.dtype(np.int64)}


def only_one(**attributes: Sequence[Any] | Tensor | None) -> Tensor:
    """The one attribute that is given, as a 1-D array; an empty list counts as absent.

    ValueError where none or several are given.
    """
    given = {
        name: value
        for name, value in attributes.items()
        if value is not None and (value.size if isinstance(value, np.ndarray) else value)
    }
    if len(given) != 1:
        raise ValueError(f"{' and '.join(given) or 'none'} given, expected one of {', '.join(attributes)}")
    [(name, value)] = given.items()
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            raise ValueError(f"{name} has rank {value.ndim}, expected 1")
        return value
    return np.array(value, _DTYPES[type(value[0])])


def numbers(tensor: Tensor, *, name: str) -> Tensor:
    """An attribute's tensor that is a list of numbers. ValueError for another rank, TypeError for other elements."""
    if not is_integer(tensor.dtype) and not is_float(tensor.dtype):
        raise TypeError(f"{name} is {name_of(tensor.dtype)}, expected numbers")
    if tensor.ndim != 1:
        raise ValueError(f"{name} has rank {tensor.ndim}, expected 1")
    return tensor


def positions(x: Tensor, keys: Tensor) -> Tensor:
    """For each element of ``x`` the place of the last key that equals it, -1 where there is none.

    Both are strings, or integers of one type.
    """
    if not keys.size:
        return np.full(x.shape, -1)
    if keys.dtype == STRING:
        places: Mapping[str, int] = {key: place for place, key in enumerate(keys)}
        return np.array([places.get(element, -1) for element in x.flat], np.int64).reshape(x.shape)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    at = np.searchsorted(ordered, x, side="right") - 1
    found = (at >= 0) & (ordered[at] == x)
    return np.where(found, order[at], -1)


def as_rows(x: Tensor) -> Tensor:
    """(N, F) as it is, (F) as one row. ValueError for other ranks."""
    if x.ndim not in (1, 2):
        raise ValueError(f"the input has rank {x.ndim}, expected 2 (N, F) or 1 (F)")
    return x[np.newaxis] if x.ndim == 1 else x

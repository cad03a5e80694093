"""Shrink: pull values towards zero, and those near it to zero."""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor, integer_range, is_integer, name_of
from onnxeval.registry import op


@op("Shrink", versions=(9,))
def shrink(x: Tensor, *, lambd: float, bias: float) -> Tensor:
    """``x`` + bias below -lambd, ``x`` - bias above lambd, else 0.

    Floats compare with lambd rounded to their own type; integers with lambd itself, and their bias loses its fraction.
    Raises ValueError where an integer type cannot hold the bias. Source: Shrink-9 and its function body.
    """
    if is_integer(x.dtype):
        step = _whole(bias, x)
        below, above = x < _upwards(-lambd), x > -_upwards(-lambd)
    else:
        step = np.asarray(bias, x.dtype)
        below, above = x < np.asarray(-lambd, x.dtype), x > np.asarray(lambd, x.dtype)
    return np.where(below, x + step, np.where(above, x - step, np.zeros((), x.dtype)))


def _upwards(bound: float) -> float:
    """The least integer not below ``bound``, which compares exactly with every integer; infinities and NaN as is."""
    return math.ceil(bound) if math.isfinite(bound) else bound


def _whole(bias: float, x: Tensor) -> Tensor:
    low, high = integer_range(x.dtype)
    if not math.isfinite(bias) or not low <= math.trunc(bias) <= high:
        raise ValueError(f"bias {bias} does not fit {name_of(x.dtype)}")
    return np.asarray(math.trunc(bias), x.dtype)

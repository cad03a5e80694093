"""Pow.

The result has the base's type. Version 1 has `axis` and `broadcast`; until 12 the exponent has the base's type.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, integer_range, is_integer, name_of
from onnxeval.ops._broadcast import with_axis_attribute
from onnxeval.ops._cast import convert
from onnxeval.registry import op


@op("Pow", versions=(7, 12, 13, 15))
def power(x: Tensor, y: Tensor) -> Tensor:
    """Raise x to the power y, in the type of x.

    An integer to a whole power is exact and wraps around like its type, whatever the type of the exponent. Where the
    power of an integer is no whole number it is truncated; where the type cannot hold it, ValueError. Source: Pow-15.
    """
    if is_integer(x.dtype):
        return _of_integers(x, y)
    if x.dtype == y.dtype and x.dtype in (np.float32, np.float64):
        return _by_one_whole_number(x, y) if y.size == 1 and y.item().is_integer() else np.power(x, y)
    return convert(np.asarray(_of_floats(x.astype(np.float64), y)), x.dtype)


op("Pow", versions=(1,))(with_axis_attribute(power))


def _by_one_whole_number(x: Tensor, y: Tensor) -> Tensor:
    """The power of absolute values with the sign put back: that of negative numbers takes far longer."""
    if y.item() == 2:
        return np.power(x, y)
    size = np.power(np.abs(x), y)
    return size if y.item() % 2 == 0 else np.copysign(size, x)


def _of_floats(x: Tensor, y: Tensor) -> Tensor:
    exponent = y.astype(np.float64)
    if not is_integer(y.dtype):
        return np.power(x, exponent)
    size = np.power(np.abs(x), exponent)  # float64 does not tell the parity of an exponent above 2^53
    return np.where(np.signbit(x) & (y % 2 == 1), -size, size)


def _of_integers(x: Tensor, y: Tensor) -> Tensor:
    if is_integer(y.dtype):
        return _whole_power(x, y)
    exponent = y.astype(np.float64)
    whole = (np.trunc(exponent) == exponent) & (np.abs(exponent) < 2.0**63)
    exact = _whole_power(x, np.where(whole, exponent, 0).astype(np.int64))
    if whole.all():
        return exact
    other = np.where(whole, 0, np.trunc(np.power(x.astype(np.float64), exponent)))
    low, high = integer_range(x.dtype)
    _refuse(~((other >= low) & (other < high + 1)), x, y, f"is outside {name_of(x.dtype)}")
    return np.where(whole, exact, other.astype(x.dtype))


def _whole_power(x: Tensor, y: Tensor) -> Tensor:
    # Modulo 2^64 the sign of the base is no matter; the result's type takes the low bits.
    result = np.power(x.astype(np.uint64), np.abs(y).astype(np.uint64)).astype(x.dtype)
    below = y < 0
    if not below.any():
        return result
    _refuse(below & (x == 0), x, y, "divides by zero")
    return np.where(below & (np.abs(x) != 1), np.zeros_like(result), result)  # |1 / x| < 1 truncates to 0


def _refuse(wrong: Tensor, x: Tensor, y: Tensor, what: str) -> None:
    if wrong.any():
        bases, exponents = np.broadcast_arrays(x, y)
        raise ValueError(f"{bases[wrong][0]} to the power {exponents[wrong][0]} {what}")

"""Exact conversion between element types: every value is rounded once.

A conversion to a narrow float goes through float32 by *rounding to odd*: where float32 cannot hold the value, the
neighbour whose last bit is set stands for it. It lies on the same side of every value and of every midpoint of the
narrower types as the value itself, so that the second step rounds as if there had been no first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from onnxeval.dtypes import (
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    FLOAT8E8M0,
    STRING,
    SUB_BYTE_BITS,
    DType,
    Tensor,
    integer_range,
    is_float,
    is_integer,
    is_signed,
)

_FLOAT8 = frozenset({FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ})
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
ROUND_MODES = ("up", "down", "nearest")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NAN": math.nan}


def convert(x: Tensor, dtype: DType, *, saturate: bool = True, round_mode: str = "up") -> Tensor:
    """``x`` as ``dtype``, of the same shape; ``x`` itself where it is of that type. Source: Cast-28.

    * To a float: to nearest, ties to even. Out of range is an infinity; float 8 takes its greatest value if
      ``saturate``, else what the tables of Cast say; float 6 and float 4 always saturate, their NaN is a zero.
    * To float8e8m0: ``round_mode`` is "up", "down" or "nearest" (ties up). Out of range is the nearest end if
      ``saturate``, else NaN; zero is below the range, a negative number is NaN.
    * From float to integer: towards zero; beyond the range the nearest end, NaN is 0. Integers of 4 and 2 bits
      round to nearest, ties to even, and keep the low bits.
    * From integer to integer: the low bits. To bool: whether it differs from 0.
    * To string: the shortest plain decimal that reads back as the same number, "NaN", "INF", "-INF".
    * From string: a plain or scientific decimal, or one of the above in any case; integers drop the fraction.

    Raises ValueError for a string that is no number or that an integer type cannot hold, and for an unknown
    ``round_mode``.
    """
    if round_mode not in ROUND_MODES:
        raise ValueError(f"round_mode {round_mode!r} is none of {', '.join(map(repr, ROUND_MODES))}")
    if x.dtype == dtype:
        return x
    if dtype == STRING:
        return _each(_text, _native(x), STRING)
    if x.dtype == STRING:
        if is_integer(dtype):
            return _each(lambda text: _integer(text, dtype), x, np.dtype(object)).astype(dtype)
        if dtype == np.float64:
            return _each(_number, x, dtype)
        x = _each(_odd_number, x, np.dtype(np.float64))
    if dtype == np.bool_:
        return np.asarray(_native(x) != 0)
    if is_integer(dtype):
        x = _native(x)
        return _to_integer(x, dtype) if is_float(x.dtype) else x.astype(dtype)
    if dtype.isbuiltin != 2:
        return _native(x).astype(dtype)
    wide = _to_float32(x)
    if dtype == FLOAT8E8M0:
        return _to_power_of_two(wide, saturate=saturate, round_mode=round_mode)
    if saturate and dtype in _FLOAT8:
        limit = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]  # ml_dtypes leaves it untyped
        wide = np.clip(wide, -limit, limit)
    return np.asarray(wide.astype(dtype))


def _native(x: Tensor) -> Tensor:
    """``x`` in a type of NumPy's own that holds all its values."""
    if x.dtype.isbuiltin != 2:  # 0 is NumPy's own, too, where an array was unpickled or its byte order changed
        return x
    if is_float(x.dtype):
        return x.astype(np.float32)
    return x.astype(np.int8 if is_signed(x.dtype) else np.uint8)


def _to_integer(x: Tensor, dtype: DType) -> Tensor:
    if dtype in SUB_BYTE_BITS:
        return np.asarray(_to_integer(np.asarray(np.rint(x)), np.dtype(np.int64)).astype(dtype))
    lowest, highest = integer_range(dtype)
    if x.size and float(x.min()) > lowest - 1 and float(x.max()) < highest + 1:  # NaN is neither
        return np.asarray(x.astype(dtype))
    whole = np.trunc(x, dtype=np.float32 if x.dtype == np.float16 else x.dtype)
    above = whole >= float(highest + 1)  # a power of two, unlike `highest`
    below = whole < float(lowest)
    outside = above | below | np.isnan(whole)
    if not outside.any():
        return np.asarray(whole.astype(dtype))
    result = np.where(outside, 0, whole).astype(dtype)
    result[above] = highest
    result[below] = lowest
    return result


def _to_float32(x: Tensor) -> Tensor:
    """``x`` as float32, rounded to odd where it does not fit."""
    x = _native(x)
    if x.dtype in (np.int64, np.uint64):
        # The low 11 bits cannot reach float64: they become one bit that says whether any was set.
        lost = (x & 0x7FF) != 0
        coarse = ((x >> 11) | lost.astype(x.dtype)).astype(np.float64) * 2.0**11
        x = np.where((x < 2**53) & (x > -(2**53)), x.astype(np.float64), coarse)
    near = x.astype(np.float32)
    if x.dtype not in (np.float64, np.int32, np.uint32):
        return near
    exact = x.astype(np.float64)
    inexact = (near != exact) & ~np.isnan(exact)
    towards_zero = near.view(np.int32) - (inexact & (np.abs(near) > np.abs(exact)))
    return np.asarray((towards_zero | inexact).view(np.float32))


def _to_power_of_two(x: Tensor, *, saturate: bool, round_mode: str) -> Tensor:
    mantissa, exponent = np.frexp(x)  # x = mantissa * 2**exponent, mantissa in [0.5, 1)
    match round_mode:
        case "up":
            raised = mantissa > 0.5
        case "down":
            raised = np.zeros_like(mantissa, bool)
        case _:  # nearest
            raised = mantissa >= 0.75
    nan, least, greatest = 255, 0, 254  # the codes of NaN, of 2**-127 and of 2**127
    code = exponent + 126 + raised
    code = np.where(x < 2.0**-127, least if saturate else nan, code)
    code = np.where(x > 2.0**127, greatest if saturate else nan, code)
    code = np.where(np.isnan(x) | (x < 0), nan, code)
    return code.astype(np.uint8).view(FLOAT8E8M0)


def _each(function: Callable[[Any], Any], x: Tensor, dtype: DType) -> Tensor:
    result = np.empty(x.shape, dtype)
    result.reshape(-1)[:] = [function(value) for value in x.reshape(-1)]
    return result


def _text(value: Any) -> str:
    if not isinstance(value, np.floating):
        return str(int(value))  # an integer, or a bool: 1 or 0
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "INF" if value > 0 else "-INF"
    return np.format_float_positional(value, trim="-")


def _number(text: str) -> float:
    if (special := _SPECIAL.get(text.upper())) is not None:
        return special
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"the string {text!r} is not a number")
    return float(text)


def _odd_number(text: str) -> float:
    """The number in float64, rounded to odd, for one more rounding to follow."""
    near = _number(text)
    if not math.isfinite(near) or near == 0:
        return near
    from decimal import Decimal  # few models read text, and it is large

    error = Decimal(text).compare(Decimal(near))  # exact for decimals of any length
    if error and int(math.frexp(near)[0] * 2**53) % 2 == 0:
        return math.nextafter(near, math.copysign(math.inf, error))
    return near


def _integer(text: str, dtype: DType) -> int:
    from decimal import Decimal

    near = _number(text)
    lowest, highest = integer_range(dtype)
    if not abs(near) < 2**65 or not lowest <= (value := int(Decimal(text)) if near else 0) <= highest:
        raise ValueError(f"the string {text!r} is outside [{lowest}, {highest}], the range of {dtype.name}")
    return value

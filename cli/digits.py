"""Elements of a tensor as text: one choice of digits for all that is shown together."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import STRING, Tensor, comparable

#: Turns one element (a Python value) into text.
CellText: TypeAlias = Callable[[Any], str]

_DIGITS = 6
_DIGITS_DOUBLE = 8
_DIGITS_LEFT = 3
_TRIMMED_UP_TO = 10_000
_LONGEST_STRING = 60


def cell_text(shown: Tensor, *, full: bool) -> CellText:
    """How to write the elements of ``shown``, which come from `comparable`."""
    if shown.dtype == STRING:
        return _quoted if full else _quoted_short
    if shown.dtype.kind == "b":
        return lambda element: "true" if element else "false"
    if shown.dtype.kind == "c":
        real, imaginary = cell_text(shown.real, full=full), cell_text(shown.imag, full=full)
        return lambda element: _complex_text(real(element.real), imaginary(element.imag))
    if shown.dtype.kind != "f":
        return str
    return _float_text(shown)


def _float_text(shown: Tensor) -> CellText:
    """Fixed point where the magnitudes allow it, scientific otherwise; what would lose its digits stands apart."""
    digits = _DIGITS_DOUBLE if shown.dtype.itemsize == 8 else _DIGITS
    finite = np.abs(shown[np.isfinite(shown)]).astype(np.float64)
    greatest = finite.max(initial=0.0)
    if greatest < 10.0 ** (digits + 1) and not np.any(finite % 1):
        return lambda element: f"{element:.0f}" if math.isfinite(element) else _special(element)
    if not 1e-4 <= greatest < 10.0**digits:
        return lambda element: _scientific(element, digits) if math.isfinite(element) else _special(element)
    decimals = max(digits - 1 - math.floor(math.log10(greatest)), 1)
    used = decimals
    if finite.size <= _TRIMMED_UP_TO:  # trailing zeros that all have in common are left out
        fixed = (f"{x:.{decimals}f}".rstrip("0").partition(".")[2] for x in finite if _survives(x, decimals))
        used = max(map(len, fixed), default=1)
    plain, enough = f".{used}f", 10.0 ** (_DIGITS_LEFT - 1 - used)

    def text(element: float) -> str:
        if enough <= abs(element) < math.inf:
            return format(element, plain)
        if not math.isfinite(element):
            return _special(element)
        return format(element, plain) if _survives(element, used) else _scientific(element, _DIGITS_LEFT)

    return text


def _survives(element: float, decimals: int) -> bool:
    """Whether this many decimals leave enough of a number's digits, or as good as lose nothing."""
    enough = abs(element) >= 10.0 ** (_DIGITS_LEFT - 1 - decimals)
    return bool(enough or abs(round(element, decimals) - element) <= abs(element) * 10.0**-_DIGITS_LEFT / 2)


def _scientific(element: float, digits: int) -> str:
    mantissa, _, exponent = f"{element:.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{exponent}" if element else mantissa


def _special(element: float) -> str:
    return "NaN" if math.isnan(element) else "Inf" if element > 0 else "-Inf"


def _complex_text(real: str, imaginary: str) -> str:
    return f"{real}{imaginary}j" if imaginary.startswith("-") else f"{real}+{imaginary}j"


def _quoted(element: Any) -> str:
    return json.dumps(str(element), ensure_ascii=False)


def _quoted_short(element: Any) -> str:
    text = str(element)
    return _quoted(text if len(text) <= _LONGEST_STRING else text[: _LONGEST_STRING - 1] + "…")


def range_text(array: Tensor) -> str:
    """The range of a tensor's elements in a few words, and how many of them are not numbers."""
    if not array.size:
        return "no elements"
    if array.dtype == STRING:
        return f"{array.size} string{'s' * (array.size > 1)}"
    if array.dtype.kind == "b":
        return f"{np.count_nonzero(array)} of {array.size} true"
    numbers = comparable(array)
    if numbers.dtype.kind == "c":
        numbers = np.abs(numbers)
    parts = []
    if numbers.dtype.kind == "f":
        finite = np.isfinite(numbers)
        if not finite.all():
            counts = {"NaN": np.isnan(numbers), "Inf": np.isposinf(numbers), "-Inf": np.isneginf(numbers)}
            parts = [f"{count} {name}" for name, where in counts.items() if (count := np.count_nonzero(where))]
            numbers = numbers[finite]
    if numbers.size:
        low, high = numbers.min(), numbers.max()
        what = "magnitude " if array.dtype.kind == "c" else ""
        parts.insert(0, f"{what}{short(low)}" if low == high else f"{what}{short(low)} to {short(high)}")
    return ", ".join(parts)


def short(number: Any) -> str:
    """One number on its own: whole where it is an integer, six digits otherwise."""
    return f"{number:.6g}" if isinstance(number, (float, np.floating)) else str(number)


def text_width(text: str) -> int:
    """The columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in text)

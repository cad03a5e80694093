"""A value against the expected one: a verdict, how far they lie apart, and where they do most."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxeval.dtypes import FLOAT8E8M0, STRING, SUB_BYTE_BITS, Tensor, comparable, is_float, is_integer, name_of
from onnxeval.values import EmptyOptional, Value, describe, shape_text

_RTOL, _ATOL = 1e-3, 1e-7
_WORST = 5
_CHUNK = 2**16  # elements that are looked at together, few enough for the processor's caches


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may lie from the expected one, and what more is asked of an output.

    |value - expected| ≤ ``atol`` + ``rtol`` · |expected|. What is None is 1e-3 and 1e-7 for floats, as in ONNX's
    own suite, and 0 for integers: an index that is nearly right is wrong. With ``ulp`` they are 0 for floats too, but
    a float may be so many representable numbers away.
    """

    rtol: float | None = None
    atol: float | None = None
    ulp: int | None = None

    def allowed(self, expected: Tensor, *, floats: bool) -> Tensor:
        """The largest difference for each of the expected numbers."""
        rtol, atol = (_RTOL, _ATOL) if floats and self.ulp is None else (0.0, 0.0)
        rtol = rtol if self.rtol is None else self.rtol
        atol = atol if self.atol is None else self.atol
        return np.asarray(atol + rtol * np.abs(expected))


@dataclass(frozen=True, slots=True)
class Element:
    """One element of both: where it is (``y[1, 2]``), and the two values."""

    place: str
    value: Any
    expected: Any


@dataclass(slots=True)
class Comparison:
    """One output against what is expected of it.

    ``reason`` says why the two cannot be compared element by element, or is "". Of the ``count`` elements
    ``mismatching`` lie outside the tolerance, and ``worst`` holds those that do so most. ``max_abs``, ``max_rel`` and
    ``max_ulp`` are over finite numbers, ``cosine`` and ``snr`` (in decibels) over all tensors of the value as one
    vector; they are None where they mean nothing.
    """

    name: str
    reason: str = ""
    count: int = 0
    mismatching: int = 0
    max_abs: float | None = None
    max_rel: float | None = None
    max_ulp: int | None = None
    cosine: float | None = None
    snr: float | None = None
    worst: list[Element] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        return not self.reason and not self.mismatching


def compare(name: str, value: Value, expected: Value, tolerance: Tolerance | None = None) -> Comparison:
    """Both values, element by element. NaN agrees with NaN, an infinity with itself alone."""
    tally = _Tally(tolerance or Tolerance())
    try:
        for place, one, other in _pairs(name, value, expected):
            tally.add(place, one, other)
    except ValueError as error:
        return Comparison(name, reason=str(error))
    return tally.result(name)


def _pairs(place: str, value: Value, expected: Value) -> Iterator[tuple[str, Tensor, Tensor]]:
    """The tensors of two values side by side. Raises ValueError where the values are not of one form."""
    if isinstance(value, dict) and isinstance(expected, dict):
        if value.keys() != expected.keys():
            odd = next(iter(value.keys() ^ expected.keys()))
            raise ValueError(f"{place} has {'the' if odd in value else 'no'} key {odd!r}, unlike what is expected")
        for key in expected:
            yield from _pairs(f"{place}[{key!r}]", value[key], expected[key])
    elif isinstance(value, list) and isinstance(expected, list):
        if len(value) != len(expected):
            raise ValueError(f"{place} holds {len(value)} values, {len(expected)} are expected")
        for index, (one, other) in enumerate(zip(value, expected, strict=True)):
            yield from _pairs(f"{place}[{index}]", one, other)
    elif _is_empty(value) or _is_empty(expected):
        if not (_is_empty(value) and _is_empty(expected)):
            raise ValueError(f"{place} is {_words(value)}, {_words(expected)} is expected")
    elif isinstance(value, (dict, list)) or isinstance(expected, (dict, list)):
        raise ValueError(f"{place} is {_words(value)}, {_words(expected)} is expected")
    else:
        one, other = _tensor(value), _tensor(expected)
        if not isinstance(expected, np.ndarray) and other.dtype != STRING != one.dtype:
            other = other.astype(one.dtype)  # a plain number of a map
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            texts = [f"{name_of(x.dtype)}{shape_text(x.shape)}" for x in (one, other)]
            raise ValueError(f"{place} is {texts[0]}, {texts[1]} is expected")
        yield place, one, other


def _is_empty(value: Value) -> bool:
    return value is None or isinstance(value, EmptyOptional)


def _words(value: Value) -> str:
    return "an empty optional" if value is None else describe(value)


def _tensor(value: Any) -> Tensor:
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


class _Tally:
    """What is known of the elements seen so far."""

    def __init__(self, tolerance: Tolerance) -> None:
        self.tolerance = tolerance
        self.count = self.mismatching = 0
        self.max_abs = self.max_rel = -1.0
        self.max_ulp = -1
        self.dot = self.power = self.expected_power = self.noise = 0.0
        self.numbers = 0
        self.worst: list[tuple[float, Element]] = []

    def add(self, place: str, value: Tensor, expected: Tensor) -> None:
        flat, flat_expected = value.reshape(-1), expected.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            one, other = flat[start : start + _CHUNK], flat_expected[start : start + _CHUNK]
            with np.errstate(all="ignore"):
                excess = self._excess(one, other)
            wrong = np.flatnonzero(excess > 0)
            self.count += one.size
            self.mismatching += wrong.size
            for index in _largest(excess, wrong).tolist():
                where = ", ".join(str(int(i)) for i in np.unravel_index(start + index, value.shape))
                element = Element(f"{place}[{where}]" if where else place, _plain(one, index), _plain(other, index))
                self.worst.append((float(excess[index]), element))
        self.worst = sorted(self.worst, key=lambda entry: -entry[0])[:_WORST]

    def _excess(self, value: Tensor, expected: Tensor) -> Tensor:
        """How far each element lies outside the tolerance, 0 where it does not."""
        dtype = value.dtype
        if not (is_float(dtype) or is_integer(dtype) or dtype.kind == "c"):
            return np.asarray(value != expected, np.float64)
        if is_integer(dtype):
            distance = _integer_distance(comparable(value), comparable(expected)).astype(np.float64)
            one, other = comparable(value).astype(np.float64), comparable(expected).astype(np.float64)
        else:
            wide = np.complex128 if dtype.kind == "c" else np.float64
            one, other = value.astype(wide), expected.astype(wide)
            distance = np.abs(one - other)
        same = (value == expected) | (np.isnan(one) & np.isnan(other))
        finite = np.isfinite(one) & np.isfinite(other)
        ulps = None if is_integer(dtype) else _ulps(value, expected)
        self._measure(one[finite], other[finite], distance[finite], ulps[finite] if ulps is not None else None)
        allowed = self.tolerance.allowed(other, floats=not is_integer(dtype))
        within = same | (finite & (distance <= allowed))
        if ulps is not None and self.tolerance.ulp is not None:
            within |= finite & (ulps <= self.tolerance.ulp)
        far = np.where(finite, np.maximum(distance - allowed, np.finfo(np.float64).tiny), np.inf)
        return np.where(within, 0.0, far)

    def _measure(self, one: Tensor, other: Tensor, distance: Tensor, ulps: Tensor | None) -> None:
        self.numbers += one.size
        self.max_abs = max(self.max_abs, float(distance.max(initial=-1.0)))
        scale = np.abs(other)
        self.max_rel = max(self.max_rel, float((distance[scale > 0] / scale[scale > 0]).max(initial=-1.0)))
        if ulps is not None:
            self.max_ulp = max(self.max_ulp, int(ulps.max(initial=0)) if ulps.size else -1)
        self.dot += float(np.sum(np.real(np.conj(other) * one)))
        self.power += float(np.sum(np.abs(one) ** 2))
        self.expected_power += float(np.sum(scale**2))
        self.noise += float(np.sum(distance**2))

    def result(self, name: str) -> Comparison:
        return Comparison(
            name,
            count=self.count,
            mismatching=self.mismatching,
            max_abs=self.max_abs if self.max_abs >= 0 else None,
            max_rel=self.max_rel if self.max_rel >= 0 else None,
            max_ulp=self.max_ulp if self.max_ulp >= 0 else None,
            cosine=self._cosine(),
            snr=self._snr(),
            worst=[element for _, element in self.worst],
        )

    def _cosine(self) -> float | None:
        norms = math.sqrt(self.power) * math.sqrt(self.expected_power)
        return min(max(self.dot / norms, -1.0), 1.0) if 0 < norms < math.inf else None

    def _snr(self) -> float | None:
        if not self.numbers or not 0 < self.expected_power < math.inf:
            return None
        return 10 * math.log10(self.expected_power / self.noise) if 0 < self.noise < math.inf else math.inf


def _largest(excess: Tensor, places: Tensor) -> Tensor:
    """Those of the places where the excess is largest, the first of equal ones first; no more than are shown."""
    if places.size > _WORST:
        found = excess[places]
        least = np.partition(found, -_WORST)[-_WORST]
        above = places[found > least]
        places = np.concatenate([above, places[found == least][: _WORST - above.size]])
    return places[np.argsort(-excess[places], kind="stable")]


def _plain(array: Tensor, index: int) -> Any:
    """An element as Python's own number or text."""
    return comparable(array[index : index + 1]).tolist()[0]


def _integer_distance(one: Tensor, other: Tensor) -> Tensor:
    """|one - other| as uint64, exact: modulo 2^64 the larger less the smaller is what it should be."""
    larger, smaller = np.maximum(one, other), np.minimum(one, other)
    distance: Tensor = larger.astype(np.uint64) - smaller.astype(np.uint64)
    return distance


def _ulps(value: Tensor, expected: Tensor) -> Tensor:
    """How many representable numbers lie between two, plus one; of complex numbers, in the worse part."""
    if value.dtype.kind == "c":
        pairs = (np.ascontiguousarray(x).view(x.real.dtype).reshape(-1, 2) for x in (value, expected))
        one, other = pairs
        return np.maximum(_ulps(one[:, 0], other[:, 0]), _ulps(one[:, 1], other[:, 1]))
    return _integer_distance(_ordered(value), _ordered(expected))


def _ordered(array: Tensor) -> Tensor:
    """The place of each float among all of its type: neighbours are one apart, both zeros are 0."""
    bits = SUB_BYTE_BITS.get(array.dtype, 8 * array.dtype.itemsize)
    codes = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.int64)
    if array.dtype == FLOAT8E8M0:
        return codes  # it has no sign
    if bits == 64:
        return np.where(codes < 0, -(codes & np.int64(2**63 - 1)), codes)
    sign = 1 << (bits - 1)
    return np.where(codes & sign, -(codes & (sign - 1)), codes)

"""A tensor in a few numbers: range, moments, what is zero or no number, a histogram; and a hash of any value."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onnxeval.dtypes import STRING, Tensor, comparable
from onnxeval.tensors import packed
from onnxeval.values import EmptyOptional, TensorType, Value, type_of

_BINS = 16
_CHUNK = 2**20  # elements that are looked at together, so that large tensors are not copied whole


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of ``count`` elements ``zeros``, ``nan`` and ``inf`` are such, the rest is about the finite ones.

    Complex numbers count by their magnitude, truth values as 0 and 1. ``histogram`` has as many bins of one width from
    ``least`` to ``most``. All of it is None or empty where no element is finite.
    """

    count: int
    zeros: int
    nan: int
    inf: int
    least: float | int | None = None
    most: float | int | None = None
    mean: float | None = None
    deviation: float | None = None
    histogram: tuple[int, ...] = ()


def statistics(array: Tensor) -> Statistics | None:
    """The statistics of a tensor; None for one of strings."""
    if array.dtype == STRING:
        return None
    flat = array.reshape(-1)
    zeros = nan = inf = count = 0
    mean = squares = 0.0
    ends: list[float | int] = []
    with np.errstate(all="ignore"):
        for numbers in _chunks(flat):
            zeros += int(np.count_nonzero(numbers == 0))
            finite = numbers
            if numbers.dtype.kind == "f":
                nan += int(np.count_nonzero(np.isnan(numbers)))
                inf += int(np.count_nonzero(np.isinf(numbers)))
                finite = numbers[np.isfinite(numbers)]
            if finite.size:
                ends += [finite.min().item(), finite.max().item()]
                # the moments of two parts make those of the whole
                wide = finite.astype(np.float64)
                part = float((wide / wide.size).sum())
                shift = part - mean
                total = count + wide.size
                squares += float(np.square(wide - part).sum()) + shift * shift * count * wide.size / total
                mean += shift * wide.size / total
                count = total
        if not ends:
            return Statistics(flat.size, zeros, nan, inf)
        least, most = min(ends), max(ends)
        deviation = math.sqrt(squares / count) if math.isfinite(squares) else math.inf
        bins = sum((_histogram(numbers, least, most) for numbers in _chunks(flat)), np.zeros(_BINS, np.int64))
    return Statistics(flat.size, zeros, nan, inf, least, most, mean, deviation, tuple(bins.tolist()))


def _chunks(flat: Tensor) -> Iterator[Tensor]:
    for start in range(0, flat.size, _CHUNK):
        numbers = comparable(flat[start : start + _CHUNK])
        if numbers.dtype.kind == "b":
            numbers = numbers.astype(np.uint8)
        yield np.abs(numbers) if numbers.dtype.kind == "c" else numbers


def _histogram(numbers: Tensor, least: float, most: float) -> Tensor:
    wide = numbers.astype(np.float64)
    wide = wide[np.isfinite(wide)]
    # halves, since the span of two floats may be no float
    span = most / 2 - least / 2
    places = (wide / 2 - least / 2) / span * _BINS if span else np.full(wide.shape, _BINS / 2)
    return np.bincount(places.astype(np.int64).clip(0, _BINS - 1), minlength=_BINS)


def content_hash(value: Value) -> str:
    """The SHA-256 of a value in hexadecimal: of a tensor, that of its type as text, a line break, and its bytes.

    The bytes are those of ONNX's raw data: little-endian, elements below a byte packed; of strings, the size of each in
    8 bytes and its UTF-8. A sequence and a map are their type and the hashes of what they hold.
    """
    if value is None or isinstance(value, EmptyOptional):
        return hashlib.sha256(b"empty\n").hexdigest()
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(f"{TensorType(value.dtype, value.shape)}\n".encode())
        if value.dtype == STRING:
            for text in value.flat:
                encoded = text.encode()
                digest.update(len(encoded).to_bytes(8, "little") + encoded)
        else:
            digest.update(packed(np.asarray(value, order="C").reshape(-1)))
        return digest.hexdigest()
    digest = hashlib.sha256(f"{type_of(value)}\n".encode())
    items = [part for entry in value.items() for part in entry] if isinstance(value, dict) else value
    for item in items:
        digest.update(content_hash(_tensor(item)).encode())
    return digest.hexdigest()


def _tensor(item: Value) -> Value:
    """A plain number or text, as maps hold them, as a tensor of rank 0."""
    if isinstance(item, str):
        return np.array(item, object)
    return np.asarray(item) if isinstance(item, (int, float, np.generic)) else item

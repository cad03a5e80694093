"""Where the elements of a resized axis lie on the original one, and how they are made of its elements.

The axes of a Resize are independent of each other: along each one, an output element copies one input element
(nearest), or is the weighted sum of a few (linear, cubic).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import STRING, Tensor, is_integer, name_of
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._cast import convert
from onnxeval.ops._precision import in_float32


class Axis(NamedTuple):
    """One axis as it is and as it shall be.

    ``length`` is what ``resized`` is the whole part of; the coordinates follow it. The scale is
    ``numerator / denominator``: a float32 over 1 where scales are given, else an exact ratio. ``start`` and ``end``
    are the part that is looked at, from 0 to 1.
    """

    original: int
    resized: int
    length: float
    numerator: float
    denominator: int = 1
    start: float = 0.0
    end: float = 1.0

    @property
    def scale(self) -> float:
        return self.numerator / self.denominator

    def shrunk(self, x: Tensor) -> Tensor:
        """``x / scale``, with one rounding."""
        return np.asarray(x * self.denominator / self.numerator)


def _half_pixel(x: Tensor, axis: Axis) -> Tensor:
    return axis.shrunk(x + 0.5) - 0.5


def _half_pixel_symmetric(x: Tensor, axis: Axis) -> Tensor:
    adjustment = axis.resized / axis.length
    return axis.original / 2 * (1 - adjustment) + _half_pixel(x, axis)


def _pytorch_half_pixel(x: Tensor, axis: Axis) -> Tensor:
    return _half_pixel(x, axis) if axis.resized > 1 else np.zeros_like(x)


def _align_corners(x: Tensor, axis: Axis) -> Tensor:
    return x * (axis.original - 1) / (axis.length - 1) if axis.resized > 1 else np.zeros_like(x)


def _tf_crop_and_resize(x: Tensor, axis: Axis) -> Tensor:
    last = axis.original - 1
    if axis.resized == 1:
        return np.full_like(x, 0.5 * (axis.start + axis.end) * last)
    return axis.start * last + x * (axis.end - axis.start) * last / (axis.length - 1)


#: coordinate_transformation_mode -> x_original of (x_resized, axis)
COORDINATES: dict[str, Callable[[Tensor, Axis], Tensor]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": lambda x, axis: axis.shrunk(x),
    "tf_half_pixel_for_nn": lambda x, axis: axis.shrunk(x + 0.5),
    "tf_crop_and_resize": _tf_crop_and_resize,
}

#: nearest_mode -> which whole number stands for a coordinate
NEAREST: dict[str, Callable[[Tensor], Tensor]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def coordinates(axis: Axis, mode: str, allocate: Allocate) -> Tensor:
    """float64 x_original for each place of the resized axis."""
    x = allocate((axis.resized,), np.dtype(np.float64))
    x[:] = np.arange(axis.resized)
    return COORDINATES[mode](x, axis)


def nearest(x: Tensor, axis: Axis, mode: str) -> Tensor:
    """For each coordinate, the element to copy.

    A scale such as 1/3 is no float32, so that coordinates meant to be whole or half end a hair beside; they are
    taken to be what they are meant to be.
    """
    if axis.denominator == 1:
        halves = np.rint(2 * x) / 2
        x = np.where(np.abs(x - halves) < np.minimum((np.abs(x) + 1) * 2.0**-23, 2.0**-10), halves, x)
    return np.clip(NEAREST[mode](x), 0, axis.original - 1).astype(np.int64)


class Filter(NamedTuple):
    """What an element weighs at a distance from the coordinate: nothing at ``radius`` and beyond."""

    radius: int
    weight: Callable[[Tensor], Tensor]


LINEAR = Filter(1, lambda distance: np.maximum(1 - np.abs(distance), 0))


def cubic(a: float) -> Filter:
    """The cubic convolution of coefficient ``a``."""

    def weight(distance: Tensor) -> Tensor:
        d = np.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    return Filter(2, weight)


class Taps(NamedTuple):
    """What each place of the resized axis is made of: (taps, length) arrays of elements and of their weights."""

    places: Tensor
    weights: Tensor


def taps(
    x: Tensor,
    axis: Axis,
    filter_: Filter,
    allocate: Allocate,
    *,
    antialias: bool = False,
    exclude_outside: bool = False,
) -> Taps:
    """The elements that each coordinate is made of; beyond the ends, the end itself stands for them.

    With ``antialias`` the filter is stretched when shrinking. With ``exclude_outside`` elements beyond the ends weigh
    nothing. After either, the weights are brought back to a sum of 1.
    """
    narrowing = min(axis.scale, 1.0) if antialias else 1.0
    reach = ceil(filter_.radius / narrowing)
    places = allocate((2 * reach, axis.resized), np.dtype(np.int64))
    np.add(np.floor(x).astype(np.int64), np.arange(1 - reach, reach + 1)[:, np.newaxis], out=places)
    weights = filter_.weight((places - x) * narrowing)
    if exclude_outside:
        weights = np.where((places < 0) | (places >= axis.original), 0, weights)
    if exclude_outside or narrowing < 1:
        total = weights.sum(0)
        weights = weights / np.where(total == 0, 1, total)
    return Taps(np.clip(places, 0, axis.original - 1), weights)


def copied(x: Tensor, chosen: Mapping[int, Tensor], allocate: Allocate) -> Tensor:
    """``x`` with the elements ``chosen`` along each axis."""
    for at in _shrinking_first(x, {at: places.size for at, places in chosen.items()}):
        output = allocate((*x.shape[:at], chosen[at].size, *x.shape[at + 1 :]), x.dtype)
        x = x.take(chosen[at], at, out=output, mode="clip")  # the places are inside; NumPy is slower if it must see
    return x


@in_float32
def averaged(x: Tensor, *, by_axis: Mapping[int, Taps], allocate: Allocate) -> Tensor:
    """``x`` with each axis of ``by_axis`` made of weighted sums; integers are cut towards zero.

    TypeError for strings and booleans.
    """
    if x.dtype == STRING or x.dtype == np.bool_:
        raise TypeError(f"{name_of(x.dtype)} has no averages, only mode 'nearest' is left")
    sums = x.astype(np.float64) if is_integer(x.dtype) else x
    for at in _shrinking_first(x, {at: taps_.places.shape[1] for at, taps_ in by_axis.items()}):
        sums = _weighted(sums, at, by_axis[at], allocate)
    if not is_integer(x.dtype):
        return sums
    whole = np.rint(sums)  # a sum that is whole but for the rounding of its weights must not be cut to the one below
    return convert(np.where(np.isclose(sums, whole, rtol=1e-12, atol=1e-9), whole, sums), x.dtype)


def _weighted(x: Tensor, at: int, taps_: Taps, allocate: Allocate) -> Tensor:
    lane = (-1, *(1,) * (x.ndim - at - 1))
    total = allocate((*x.shape[:at], taps_.places.shape[1], *x.shape[at + 1 :]), x.dtype)
    total[...] = 0
    for places, weights in zip(taps_.places, taps_.weights.astype(x.real.dtype), strict=True):
        total += x.take(places, at) * weights.reshape(lane)
    return total


def _shrinking_first(x: Tensor, lengths: Mapping[int, int]) -> list[int]:
    """The axes in an order in which nothing between is larger than the input or the output."""
    return sorted(lengths, key=lambda at: lengths[at] / x.shape[at])


def extrapolated(x: Tensor, outside: Mapping[int, Tensor], value: float) -> Tensor:
    """``x`` with ``value`` wherever one of its coordinates is outside."""
    beyond = np.zeros((1,) * x.ndim, np.bool_)
    for at, places in outside.items():
        beyond = beyond | places.reshape((-1, *(1,) * (x.ndim - at - 1)))
    if not beyond.any():
        return x
    if x.dtype == STRING:
        raise TypeError(f"coordinates are outside, and extrapolation_value {value} is no string")
    return np.where(beyond, convert(np.asarray(value, np.float32), x.dtype), x)

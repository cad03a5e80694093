"""Pad: more elements around a tensor, or fewer.

Version 1 calls the amounts ``paddings`` and only adds, in the order that its text gives and its example does not; 2
calls them ``pads``, and a negative one crops. They became an input in 11, ``axes`` joined them in 18, and ``wrap``
joined the modes in 19.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._axes import normalise_axes
from onnxeval.ops.tensor._zero import zero
from onnxeval.registry import op


@op("Pad", versions=(19, 21, 23, 24, 25))
def pad(
    data: Tensor,
    pads: Tensor,
    constant_value: Tensor | None,
    axes: Tensor | None,
    *,
    mode: str,
    allocate: Allocate,
) -> Tensor:
    """``pads`` holds the amounts at the beginnings of ``axes``, then those at their ends. Source: Pad-25.

    Where a negative amount crops, ``reflect``, ``edge`` and ``wrap`` look at what is left. ``constant_value`` is one
    element, absent for 0, "" or False. ValueError where ``pads`` is not 1-D with two amounts an axis, where an axis
    would become negative, and where a mode other than ``constant`` has nothing to copy from.
    """
    for name, given in (("pads", pads), ("axes", axes)):
        if given is not None and given.ndim != 1:
            raise ValueError(f"{name} has rank {given.ndim}, expected 1")
    along = tuple(range(data.ndim)) if axes is None else normalise_axes(axes, data.ndim)
    if pads.size != 2 * len(along):
        raise ValueError(f"pads {pads.tolist()} has {pads.size} elements, expected 2 for each of {len(along)} axes")
    spans = [Span(size, 0, 0) for size in data.shape]
    for axis, before, after in zip(along, pads[: len(along)], pads[len(along) :], strict=True):
        spans[axis] = Span(data.shape[axis], int(before), int(after))
    shape = tuple(span.padded for span in spans)
    if min(shape, default=0) < 0:
        raise ValueError(f"pads {pads.tolist()} leave a negative size: {list(shape)} of {list(data.shape)}")
    if mode != "constant" and mode not in SOURCES:
        raise ValueError(f"mode {mode!r} is none of {', '.join(map(repr, ('constant', *SOURCES)))}")
    output = allocate(shape, data.dtype)
    kept = data[tuple(span.kept for span in spans)]
    if mode == "constant":
        output[...] = _fill(data, constant_value)
        output[tuple(span.target for span in spans)] = kept
        return output
    if not output.size:
        return output
    for axis, span in enumerate(spans):
        if span.before or span.after:
            kept = kept.take(span.sources(mode), axis)
    return kept


@op("Pad", versions=(11, 13, 18))
def pad_without_wrap(
    data: Tensor,
    pads: Tensor,
    constant_value: Tensor | None,
    axes: Tensor | None,
    *,
    mode: str,
    allocate: Allocate,
) -> Tensor:
    """Pad before ``wrap``. Source: Pad-18."""
    if mode == "wrap":
        raise ValueError("mode 'wrap' is none of 'constant', 'reflect', 'edge' (it came with version 19)")
    return pad(data, pads, constant_value, axes, mode=mode, allocate=allocate)


@op("Pad", versions=(2,))
def pad_attributes(data: Tensor, *, pads: tuple[int, ...], mode: str, value: float, allocate: Allocate) -> Tensor:
    """Pad with the amounts and the value as attributes. Source: Pad-2."""
    amounts = np.array(pads, dtype=np.int64)
    return pad_without_wrap(data, amounts, np.array(value, data.dtype), None, mode=mode, allocate=allocate)


@op("Pad", versions=(1,))
def pad_paddings(data: Tensor, *, paddings: tuple[int, ...], mode: str, value: float, allocate: Allocate) -> Tensor:
    """Pad that only adds. Source: Pad-1."""
    if min(paddings, default=0) < 0:
        raise ValueError(f"paddings {list(paddings)} has a negative count (cropping came with version 2)")
    return pad_attributes(data, pads=paddings, mode=mode, value=value, allocate=allocate)


class Span(NamedTuple):
    """One axis: its size, and how much is added before and after (removed where negative)."""

    size: int
    before: int
    after: int

    @property
    def padded(self) -> int:
        return self.size + self.before + self.after

    @property
    def kept(self) -> slice:
        """The elements of the input that the output holds."""
        first = min(max(0, -self.before), self.size)
        return slice(first, max(first, min(self.size, self.size + self.after)))

    @property
    def target(self) -> slice:
        """Where the output holds them."""
        return slice(self.kept.start + self.before, self.kept.stop + self.before)

    def sources(self, mode: str) -> Tensor:
        """For each place of the output, which of the kept elements it copies."""
        first, end = self.kept.start, self.kept.stop
        if first == end:
            raise ValueError(f"mode {mode!r} has nothing to copy from on an axis of {self.size} padded by {self[1:]}")
        return SOURCES[mode](np.arange(self.padded, dtype=np.int64) - self.before - first, end - first)


def _reflected(places: Tensor, size: int) -> Tensor:
    """Back and forth between the ends, which are not repeated; one element alone is repeated."""
    period = max(2 * (size - 1), 1)
    phase = places % period
    return np.minimum(phase, period - phase) if size > 1 else np.zeros_like(places)


#: mode -> (places counted from the first kept element, how many are kept) -> which of those to copy
SOURCES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "reflect": _reflected,
    "edge": lambda places, size: np.clip(places, 0, size - 1),
    "wrap": lambda places, size: places % size,
}


def _fill(data: Tensor, constant_value: Tensor | None) -> Tensor:
    """The element that ``constant`` pads with, of rank 0."""
    if constant_value is None:
        return zero(data.dtype)
    if constant_value.size != 1:
        raise ValueError(f"constant_value has {constant_value.size} elements, expected 1")
    return constant_value.reshape(())

"""Slice: a strided part of a tensor, along any of its axes.

Bounds were attributes in version 1, without steps; since 10 they are inputs. Version 13 spells out the clamping that
11 meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axes
from onnxeval.registry import op


@op("Slice", versions=(10, 11, 13))
def slice_inputs(data: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None, steps: Tensor | None) -> Tensor:
    """The elements ``start, start + step, ...`` before ``end``, on each of ``axes``. Source: Slice-13.

    The bounds are 1-D and of one length. ValueError where a step is 0, an axis is repeated or outside, or the
    lengths differ.
    """
    first, last = _numbers("starts", starts), _numbers("ends", ends)
    along = list(range(len(first))) if axes is None else _numbers("axes", axes)
    strides = [1] * len(first) if steps is None else _numbers("steps", steps)
    return _sliced(data, first, last, along, strides)


@op("Slice", versions=(1,))
def slice_attributes(
    data: Tensor, *, starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...] | None
) -> Tensor:
    """Slice with a step of 1. Source: Slice-1."""
    along = range(len(starts)) if axes is None else axes
    return _sliced(data, starts, ends, list(along), [1] * len(starts))


def _numbers(name: str, given: Tensor) -> list[int]:
    if given.ndim != 1:
        raise ValueError(f"{name} has rank {given.ndim}, expected 1")
    numbers: list[int] = given.tolist()
    return numbers


def _sliced(data: Tensor, starts: Iterable[int], ends: Iterable[int], axes: list[int], steps: Iterable[int]) -> Tensor:
    starts, ends, steps = list(starts), list(ends), list(steps)
    if len({len(starts), len(ends), len(axes), len(steps)}) != 1:
        raise ValueError(
            f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps do not belong together"
        )
    selection = [slice(None)] * data.ndim
    for axis, start, end, step in zip(normalise_axes(axes, data.ndim), starts, ends, steps, strict=True):
        selection[axis] = _bounded(start, end, step, data.shape[axis])
    return data[tuple(selection)]


def _bounded(start: int, end: int, step: int, size: int) -> slice:
    """The Python slice for one axis, after the standard's clamping.

    Going backward, an end of -1 means "past the first element", which Python writes as None.
    """
    if step == 0:
        raise ValueError(f"a step is 0, from {start} to {end}")
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)

"""Sizes that are not known, and what is known of the inputs of a step whose shapes have such.

Two sizes of one symbol are the same in every run that does not fail. Beside shapes, the numbers of small tensors of
integers and truths are followed, as models compute shapes in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from onnxeval.dtypes import DType, Tensor
from onnxeval.plan import Step

#: Elements of tensors whose numbers are followed.
MOST_NUMBERS = 64

INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)


class Symbol:
    """A size that is not known. Where it is ``within`` another, it is the smaller of that and a number above zero."""

    def __init__(self, within: Symbol | None = None) -> None:
        self.within = within


Size: TypeAlias = int | Symbol
Shape: TypeAlias = tuple[Size, ...]


class Numbers(NamedTuple):
    """What a tensor of int64 or bool holds, of rank 0 or 1: sizes and other numbers, None where nothing is known."""

    dtype: DType
    rank: int
    items: tuple[Size | None, ...]

    @property
    def is_known(self) -> bool:
        """Whether each is a number or a size."""
        return None not in self.items

    def tensor(self) -> Tensor | None:
        """As a constant, not to be written into; None where not all of it is a number."""
        if not all(isinstance(item, int) for item in self.items):
            return None
        made = np.array(self.items, self.dtype)
        made = made if self.rank else made.reshape(())
        made.flags.writeable = False
        return made


class View:
    """A step with what is known of its inputs."""

    def __init__(self, step: Step, shapes: Mapping[str, Shape], numbers: Mapping[str, Numbers]) -> None:
        self.attributes = step.attributes
        self.inputs = step.inputs
        self.count = len(step.outputs)
        self._shapes = shapes
        self._numbers = numbers

    def shape(self, place: int) -> Shape | None:
        return self._shapes.get(self.inputs[place]) if self.has(place) else None

    def numbers(self, place: int) -> Numbers | None:
        return self._numbers.get(self.inputs[place]) if self.has(place) else None

    def has(self, place: int) -> bool:
        return place < len(self.inputs) and bool(self.inputs[place])

    def items(self, place: int, attribute: str = "") -> tuple[Size | None, ...] | None:
        """The numbers of an input or, in older versions, of an attribute."""
        given = self.attributes.get(attribute) if attribute else None
        numbers = self.numbers(place)
        return tuple(given) if given is not None else None if numbers is None else numbers.items

    def constants(self, place: int, attribute: str = "") -> tuple[int, ...] | None:
        """The same where all of them are known."""
        items = self.items(place, attribute)
        known = tuple([item for item in items or () if isinstance(item, int)])
        return known if items is not None and len(known) == len(items) else None


def open_shape(count: int) -> Shape:
    return tuple([Symbol() for _ in range(count)])


def axis_of(axis: int, rank: int) -> int | None:
    return axis % rank if -rank <= axis < rank else None


def broadcast(*shapes: Shape | None) -> Shape | None:
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not known:
        return None
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple([_common(sizes) for sizes in zip(*padded, strict=True)])


def _common(sizes: Iterable[Size]) -> Size:
    """The size that all of them broadcast to."""
    others = {size for size in sizes if size != 1}
    numbers = [size for size in others if isinstance(size, int)]
    if numbers:
        return numbers[0]  # a symbol beside it is 1, or the same
    # What is within another symbol broadcasts to that: it is 1, or the same
    others = {size for size in others if not (isinstance(size, Symbol) and size.within in others)}
    return others.pop() if len(others) == 1 else Symbol() if others else 1


def size_of(shape: Shape) -> Size:
    others = [size for size in shape if size != 1]
    if all(isinstance(size, int) for size in others):
        return math.prod(size for size in others if isinstance(size, int))
    return others[0] if len(others) == 1 else Symbol()


def same(sizes: Sequence[Size]) -> Size:
    """Of sizes that are the same in every run that does not fail."""
    return next((size for size in sizes if isinstance(size, int)), sizes[0])


def without(shape: Shape, axes: Iterable[int], keeps: int) -> Shape | None:
    places = {axis_of(axis, len(shape)) for axis in axes}
    if None in places:
        return None
    if keeps:
        return tuple([1 if place in places else size for place, size in enumerate(shape)])
    return tuple([size for place, size in enumerate(shape) if place not in places])

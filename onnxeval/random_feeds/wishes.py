"""What the readers of a value want of its elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import DType, Tensor

#: Makes all elements of a value at once.
Maker: TypeAlias = Callable[[np.random.Generator, tuple[int, ...], DType], Tensor]


@dataclass(frozen=True, slots=True)
class Wish:
    """Bounds of the elements, both within; or the elements to choose from; or elements that will do, by position.

    ``make`` makes the elements where they hang together, ``exact`` are all of them. None asks for nothing.
    """

    low: float | None = None
    high: float | None = None
    nonzero: bool = False
    whole: bool = False
    choices: tuple[Any, ...] | None = None
    exact: tuple[Any, ...] | None = None
    make: Maker | None = None

    def __and__(self, other: Wish) -> Wish:
        """Both at once; where they contradict each other, the first."""
        if other is ANY or self is other:
            return self
        if self is ANY:
            return other
        low = self.low if other.low is None else other.low if self.low is None else max(self.low, other.low)
        high = self.high if other.high is None else other.high if self.high is None else min(self.high, other.high)
        if low is not None and high is not None and low > high:
            low, high = (self.low, self.high) if self.low is not None or self.high is not None else (None, None)
        return Wish(
            low,
            high,
            self.nonzero or other.nonzero,
            self.whole or other.whole,
            self.choices if self.choices is not None else other.choices,
            self.exact if self.exact is not None else other.exact,
            self.make if self.make is not None else other.make,
        )

    def moved(self) -> Wish:
        """What is wanted of elements wherever they stand: nothing that hangs on their places is left."""
        if self.exact is None and self.make is None:
            return self
        if self.exact is not None and self.choices is None and len(set(self.exact)) == 1:
            return replace(self, exact=None, make=None, choices=(self.exact[0],))
        return replace(self, exact=None, make=None)

    def scaled(self, factor: float, offset: float) -> Wish:
        """What ``x`` must be where ``factor * x + offset`` is what is wanted; the factor is not 0."""
        bounds = [None if bound is None else (bound - offset) / factor for bound in (self.low, self.high)]
        low, high = bounds if factor > 0 else bounds[::-1]
        return Wish(low, high, whole=self.whole and factor == 1 and float(offset).is_integer())


ANY = Wish()
POSITIVE = Wish(low=0.1)
NOT_NEGATIVE = Wish(low=0)
NONZERO = Wish(nonzero=True)
TRUTH = Wish(choices=(0, 1))
UNIT = Wish(low=0, high=1)


def between(low: float, high: float) -> Wish:
    """Whole numbers in these bounds, which are put right where there is nothing between them."""
    return Wish(low, max(low, high), whole=True)


def exactly(elements: Sequence[Any]) -> Wish:
    return Wish(exact=tuple(elements))

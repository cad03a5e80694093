"""Rules on named dimensions: one name stands for one size, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.values import Dimension


class _Size(NamedTuple):
    """A size that a name must have, and who says so."""

    size: int
    where: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """A node needs a dimension of the graph's inputs to be of another ``size`` than ``earlier`` ones say."""

    where: str
    name: str
    size: int
    earlier: _Size


@dataclass(frozen=True, slots=True)
class Naming:
    """A declaration gives a name to a dimension of another size than ``earlier`` ones say."""

    where: str
    name: str
    size: int
    earlier: _Size


def _message(part: Requirement | Naming) -> str:
    return f'"{part.name}" would be {part.size}, and {part.earlier.size} at {part.earlier.where}'


@rule("shape/symbol", "error", Requirement)
def required_twice(requirement: Requirement) -> Faults:
    """A named dimension of the model's inputs would have to be of two sizes at once.

    Why: one name stands for one size; whatever is fed, one of the nodes fails.

    Mend: give the two dimensions names of their own, or correct the weights.

    Example:
        g (float[2, N] x, float[2, N] z, float[3, 5] w, float[4, 5] v) => (float[2, 5] y) {
            a = MatMul(x, w)  b = MatMul(z, v)  y = Add(a, b)
        }

    Instead:
        g (float[2, N] x, float[2, M] z, float[3, 5] w, float[4, 5] v) => (float[2, 5] y) {
            a = MatMul(x, w)  b = MatMul(z, v)  y = Add(a, b)
        }
    """
    yield Fault(requirement.where, _message(requirement))


@rule("type/declared-symbol", "warning", Naming)
def named_twice(naming: Naming) -> Faults:
    """Declarations give one name to dimensions of different sizes.

    Why: one name stands for one size; who plans by the names (memory, engines, batches) plans wrongly.

    Mend: give each size a name of its own, or declare the number.

    Example:
        g (float[2] x, float[3] z) => (float[N] y, float[N] w) { y = Neg(x)  w = Neg(z) }

    Instead:
        g (float[2] x, float[3] z) => (float[N] y, float[M] w) { y = Neg(x)  w = Neg(z) }
    """
    yield Fault(naming.where, _message(naming))


class Symbols:
    """What is known of the named dimensions of one graph: which are equal, and what sizes they have."""

    def __init__(self) -> None:
        self._same: dict[str, str] = {}
        self._sizes: dict[str, _Size] = {}
        self._told: set[str] = set()

    def _first(self, name: str) -> str:
        """The name that stands for all that are equal to this one."""
        while (other := self._same.get(name, name)) != name:
            name = other
        return name

    def equal(self, pairs: Iterable[tuple[Dimension, Dimension]], where: str) -> list[tuple[str, int, _Size]]:
        """Note that dimensions are equal; (name, size, what an earlier one says) of the first contradiction.

        A name is told once.
        """
        found = []
        for one, other in pairs:
            if isinstance(one, str) and isinstance(other, str):
                found += self._join(one, other)
            elif isinstance(one, str) and isinstance(other, int):
                found += self._set(one, _Size(other, where))
            elif isinstance(one, int) and isinstance(other, str):
                found += self._set(other, _Size(one, where))
        return found

    def _set(self, name: str, size: _Size) -> list[tuple[str, int, _Size]]:
        first = self._first(name)
        earlier = self._sizes.setdefault(first, size)
        if earlier.size == size.size or first in self._told:
            return []
        self._told.add(first)
        return [(name, size.size, earlier)]

    def _join(self, one: str, other: str) -> list[tuple[str, int, _Size]]:
        first, second = self._first(one), self._first(other)
        if first == second:
            return []
        self._same[second] = first
        size = self._sizes.pop(second, None)
        if second in self._told:
            self._told.add(first)
        return self._set(one, size) if size is not None else []

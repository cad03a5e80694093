"""How a strategy draws a node: sizes, flags, axes and arrays, all from one source of integers.

A strategy is a function of a `Drawing` that returns a `Node`. It is registered for the operators it suits, with how
close the results must be and which palettes of numbers make sense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from differential.cases import Node
from differential.values import PALETTES, random_array

from onnxeval.dtypes import BY_NAME, DType, Tensor
from onnxeval.schema import Schema

#: The source of all choices: a whole number between two bounds, both included.
Choose = Callable[[int, int], int]


class Drawing:
    """What a strategy sees: the schema, the types its variables are bound to, and choices to make."""

    def __init__(self, choose: Choose, schema: Schema, types: dict[str, str], palettes: Sequence[str]) -> None:
        self.schema = schema
        self.types = types
        self.integer = choose
        self.palette = palettes[choose(0, len(palettes) - 1)]
        self.shaped = self.flag()

    @property
    def version(self) -> int:
        return self.schema.key.since_version

    def has(self, name: str) -> bool:
        """Whether this version has the attribute."""
        return name in self.schema.attributes

    def takes(self, name: str) -> bool:
        """Whether this version has the input."""
        return any(slot.name == name for slot in self.schema.inputs)

    def flag(self) -> bool:
        return self.integer(0, 1) == 1

    def one_of(self, *options: Any) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def some(self, **attributes: Any) -> dict[str, Any]:
        """A random part of the attributes that this version has; the others keep their defaults."""
        return {name: value for name, value in attributes.items() if self.has(name) and self.flag()}

    def size(self, least: int = 0, most: int = 4) -> int:
        """A size; 0, where it is allowed, comes seldom."""
        if least == 0 and self.integer(0, 7):
            least = 1
        return self.integer(least, most)

    def shape(self, least: int = 0, most: int = 4, sizes: tuple[int, int] = (0, 4)) -> tuple[int, ...]:
        """A shape with a rank between ``least`` and ``most``."""
        return tuple(self.size(*sizes) for _ in range(self.integer(least, most)))

    def axis(self, rank: int, since: int = 11) -> int:
        """An axis; negative ones from the version ``since`` on."""
        return self.integer(-rank if self.version >= since else 0, rank - 1)

    def axes(self, rank: int, least: int = 0, since: int = 11) -> list[int]:
        """Some axes, none twice, in any order."""
        chosen = self.permutation(rank)[: self.integer(min(least, rank), rank)]
        return [axis - rank if self.version >= since and self.flag() else axis for axis in chosen]

    def permutation(self, n: int) -> list[int]:
        left = list(range(n))
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(n)]

    def partner(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts with ``shape``."""
        kept = shape[self.integer(0, len(shape)) :]
        return tuple(1 if self.integer(0, 3) == 0 else size for size in kept)

    def type_of(self, slot: int) -> str:
        """The type string of an input slot."""
        formal = self.schema.inputs[min(slot, len(self.schema.inputs) - 1)]
        return self.types[formal.variable] if formal.variable else next(iter(formal.allowed))

    def dtype(self, slot: int) -> DType:
        """The element type of an input slot."""
        return element_of(self.type_of(slot))

    def array(self, dtype: DType | type, shape: Sequence[int], palette: str | None = None) -> Tensor:
        rng = np.random.default_rng(self.integer(0, 2**20))
        return np.asarray(random_array(rng, np.dtype(dtype), tuple(shape), palette or self.palette))

    def tensor(self, slot: int, shape: Sequence[int], palette: str | None = None) -> Tensor:
        """An array of the slot's type."""
        return self.array(self.dtype(slot), shape, palette)

    def integers(self, shape: Sequence[int], least: int, greatest: int, dtype: DType | type = np.int64) -> Tensor:
        rng = np.random.default_rng(self.integer(0, 2**20))
        return np.asarray(rng.integers(least, greatest, tuple(shape), endpoint=True)).astype(dtype)

    def node(self, *inputs: Any, wanted: tuple[bool, ...] = (True,), declared: Any = None, **attributes: Any) -> Node:
        """The node. Absent inputs at the end are cut off; attributes that are None or unknown to the version drop."""
        given = [np.asarray(value) if isinstance(value, np.generic) else value for value in inputs]
        while given and given[-1] is None:
            given.pop()
        kept = {name: value for name, value in attributes.items() if value is not None and self.has(name)}
        return Node(self.schema, given, kept, wanted, shaped=self.shaped, declared=declared)


def element_of(type_string: str) -> DType:
    """The element type in ``seq(tensor(float))`` and its like; of a map, that of its values."""
    return BY_NAME[type_string[type_string.rindex("(") + 1 :].rstrip(")")]


@dataclass(frozen=True)
class Strategy:
    """``ulps`` is how many units in the last place floats may differ: 0 compares even the zeros' signs.

    ``scaled`` adds as much of the greatest result, for sums whose order is free, ``absolute`` so many units in the last
    place of 1, for what cancels. ``single``: double precision is measured as if it were single, for it passes through
    float32 on the way. Where ``values`` is false only dtype and shape are compared. ``tied`` type variables take one
    element type together: engines know no mixtures. ``bindings`` is about how many combinations of types are tried.
    """

    draw: Callable[[Drawing], Node]
    ulps: int = 0
    scaled: bool = False
    absolute: int = 0
    single: bool = False
    values: bool = True
    palettes: tuple[str, ...] = PALETTES
    tied: tuple[str, ...] = ()
    bindings: int = 24


#: (domain, op_type) -> the strategy.
STRATEGIES: dict[tuple[str, str], Strategy] = {}


def strategy(
    *op_types: str, domain: str = "", **options: Any
) -> Callable[[Callable[[Drawing], Node]], Callable[[Drawing], Node]]:
    """Register a strategy for operators; the options are `Strategy`'s fields."""

    def register(draw: Callable[[Drawing], Node]) -> Callable[[Drawing], Node]:
        for op_type in op_types:
            assert (domain, op_type) not in STRATEGIES, op_type
            STRATEGIES[domain, op_type] = Strategy(draw, **options)
        return draw

    return register


def type_bindings(schema: Schema, tied: Sequence[str] = (), most: int = 24) -> Iterator[dict[str, str]]:
    """Bindings of the inputs' type variables, every type of every variable among them; ``most`` at the most or so."""
    allowed = {slot.variable: sorted(slot.allowed) for slot in schema.inputs if slot.variable}
    bound = [place for place, variable in enumerate(allowed) if variable in tied]
    everything = [b for b in product(*allowed.values()) if len({element_of(b[place]) for place in bound}) <= 1]
    stride = max(1, len(everything) // most)
    chosen = set(everything[::stride])
    for place, types in enumerate(allowed.values()):
        for type_string in types:
            if not any(binding[place] == type_string for binding in chosen):
                chosen.update([binding for binding in everything if binding[place] == type_string][:1])
    for binding in sorted(chosen):
        yield dict(zip(allowed, binding, strict=True))

"""The items of a batch, block by block: here, in processes of this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from onnxeval.batches.items import Items
from onnxeval.errors import OnnxEvalError
from onnxeval.values import EmptyOptional, Value

if TYPE_CHECKING:
    from onnxeval.limits import Limits
    from onnxeval.model import Model

#: Bytes of inputs and outputs that are worked on at a time, and the most items: what an interruption costs.
_BLOCK_BYTES = 16 * 2**20
_BLOCK_ITEMS = 32


@dataclass(frozen=True)
class Work:
    """What is to be run on each item. ``model`` is a path or the bytes of a model, ``fixed`` are the same for all.

    Each item has a seed of its own, so that it gives the same in whatever block it runs.
    """

    model: str | bytes = field(repr=False)
    items: Mapping[str, Items]
    fixed: Mapping[str, Value]
    outputs: tuple[str, ...]
    seed: int | None = None
    reference: bool = False
    kernels: tuple[str, ...] = ()
    fast_math: bool = False
    limits: Limits | None = None  # of each item

    @property
    def count(self) -> int:
        return min(items.count for items in self.items.values())

    def block_size(self, output_bytes: int) -> int:
        """How many items are worked on at a time."""
        each = sum(items.bytes_each for items in self.items.values()) + output_bytes
        return max(1, min(_BLOCK_ITEMS, _BLOCK_BYTES // max(each, 1)))

    def read(self, start: int, stop: int) -> dict[str, list[Value]]:
        """The items' values by input."""
        return {name: items.read(start, stop) for name, items in self.items.items()}


Rows: TypeAlias = dict[str, list[Value]]


def run_rows(model: Model, work: Work, inputs: Rows, start: int) -> Rows:
    """The model on items whose values are there. Raises what running it raises, said of the item."""
    results: Rows = {name: [] for name in work.outputs}
    count = len(next(iter(inputs.values())))
    for place in range(count):
        feeds = {**work.fixed, **{name: values[place] for name, values in inputs.items()}}
        seed = None if work.seed is None else work.seed + start + place
        try:
            made = model.run(feeds, work.outputs, reference=work.reference, seed=seed, limits=work.limits)
        except OnnxEvalError as error:
            raise error.located(f"item {start + place}") from error.__cause__
        for name, value in made.items():
            results[name].append(EmptyOptional() if value is None else _owned(value))
    return results


def _owned(value: Value) -> Value:
    """A result that later items cannot change: one that shares an input's memory, or a constant's, is copied."""
    return np.array(value) if isinstance(value, np.ndarray) and not value.flags.owndata else value


def blocks_of(count: int, size: int) -> list[tuple[int, int]]:
    """The first item of each block, and the one after its last."""
    return [(start, min(start + size, count)) for start in range(0, count, size)]


class Here:
    """Runs blocks in this process."""

    def __init__(self, model: Model, work: Work) -> None:
        self._model, self._work = model, work

    def run(self, start: int, stop: int) -> Rows:
        return run_rows(self._model, self._work, self._work.read(start, stop), start)

    def each(self, blocks: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, Rows]]:
        """(block, first item, rows) for each (block, start, stop)."""
        for block, start, stop in blocks:
            yield block, start, self.run(start, stop)

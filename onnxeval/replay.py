"""A tape of small values, replayed: each keeps its memory from run to run.

What compiled kernels were called with stays true then, so that a stretch of them is one call; and a view stays the view
it is. Steps that run in NumPy run as ever, and their results are copied to where the others read them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from onnxeval.arena import Arena
from onnxeval.dtypes import Tensor
from onnxeval.fast import is_replayable
from onnxeval.fast.engine import UPDATED, WRITTEN, native
from onnxeval.limits import Run
from onnxeval.passes import is_movement
from onnxeval.tape import Row, Tape
from onnxeval.values import Sequence, TensorType, Value

#: Bytes that the values of a plan may keep which are needed at a time.
MOST_MEMORY = 1 << 24

#: This part of them more, as what is free may lie in pieces.
_SPARE = 2

#: Bytes of inputs and outputs for each step: to copy more takes longer than the step saves.
_MOST_COPIED = 1 << 16


class _Kept(NamedTuple):
    """What becomes of one result."""

    place: int
    memory: Tensor | None  # where others read it; None where it is not kept
    assumed: TensorType | None  # what it must be of


class _Entry(NamedTuple):
    """What one step of a run is: a stretch of compiled calls, or a row of the tape and where its results go."""

    stretch: Callable[[], None] | None
    row: Row | None
    kept: tuple[_Kept, ...]


class Replay:
    """Runs of one tape, one at a time. Make it with `replay_of`."""

    def __init__(
        self, tape: Tape, inputs: Mapping[str, Tensor], passed: list[str], values: list[Value], entries: list[_Entry]
    ) -> None:
        self._tape = tape
        self._inputs = list(inputs.items())
        self._passed = [(name, tape.places[name]) for name in passed]  # inputs that the steps get as they are
        self._values = values
        self._entries = entries
        self._results = [(name, tape.places[name]) for name in tape.plan.outputs]
        made = [kept.place for entry in entries for kept in entry.kept if kept.memory is None]
        self._passing = [*(place for _, place in self._passed), *made] if passed else []
        held = {id(value) for place, value in enumerate(values) if place not in self._passing}
        self._held = held | {id(own) for own in inputs.values()}
        self._lock = Lock()
        #: How many runs made something that was not of the type that was assumed.
        self.misses = 0
        #: How many steps are not part of a stretch.
        self.steps = sum(entry.row is not None for entry in entries)
        #: Whether all is done by compiled kernels, which raise no floating-point warnings.
        self.is_compiled = all(entry.row is None for entry in entries)
        #: Whether results are always of the same types and shapes, and no step has steps inside it to account for.
        self.is_plain = all(_has_one_type(values[place]) for _, place in self._results) and all(
            entry.row is None or entry.row.kernel is not None for entry in entries
        )

    def execute(self, feeds: Mapping[str, Value], run: Run) -> dict[str, Value] | None:
        """Every output of the plan, by name, in its order; None where the tape is to run instead.

        That is where another thread is at it, where something is not of the type that was assumed, and where an index
        is outside: the steps say which.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            for name, own in self._inputs:
                own[...] = feeds[name]  # an array, as the kind says
            values = self._values
            for name, place in self._passed:
                values[place] = feeds[name]
            for stretch, row, kept in self._entries:
                if stretch is not None:
                    stretch()
                    continue
                assert row is not None
                for (place, memory, assumed), result in zip(kept, self._tape.outputs_of(row, values, run), strict=True):
                    if assumed is not None and not _is_of(result, assumed):
                        self.misses += 1
                        return None
                    if memory is None:
                        values[place] = result
                    elif result is not memory:
                        memory[...] = result
            return {name: self._result(values[place]) for name, place in self._results}
        except IndexError:  # of a compiled kernel: what rows raise names their place
            return None
        finally:
            for place in self._passing:
                self._values[place] = None
            self._lock.release()

    def _result(self, value: Value) -> Value:
        """What the caller may keep: a copy, but of what a step has just made, and that nothing is kept of."""
        is_new = self._passing and isinstance(value, np.ndarray) and value.base is None and value.flags.writeable
        return value if is_new and id(value) not in self._held else _copied(value)


def replay_of(
    tape: Tape,
    types: Mapping[str, TensorType],
    feeds: Mapping[str, Value],
    run: Run,
    memory: int = MOST_MEMORY,
    *,
    fixed: Container[str] | None = None,
    assumed: Container[str] = (),
) -> Replay | None:
    """The replay for inputs of the kind that these feeds are of; None where it would not pay.

    ``types`` are those that values always have for this kind, ``memory`` is how many bytes those may take that are
    needed at a time. The types of inputs that are not ``fixed`` change, and those of ``assumed`` values are looked at
    in each run. The steps run, and what they raise is raised.
    """
    kernels = native()
    passed = [] if fixed is None else [name for name in feeds if name not in fixed]
    inputs = {
        name: np.array(value, order="C") for name, value in feeds.items() if name not in passed and _is_plain(value)
    }
    fed = sum(each.nbytes for each in inputs.values())
    needed = _needed(tape, types)
    copied = fed + sum(_bytes_of(types[name]) for name in tape.plan.outputs if name in types)
    if kernels is None or len(inputs) + len(passed) < len(feeds) or fed + needed > memory + tape.constant_bytes:
        return None
    if copied > _MOST_COPIED * len(tape.rows):
        return None
    builder = _Builder(tape, types, assumed, kernels, run, Arena(needed + needed // _SPARE))
    for name in passed:
        builder.values[tape.places[name]] = feeds[name]
    for name, own in inputs.items():
        builder.values[tape.places[name]] = own
    for row in tape.rows:
        builder.add(row)
    return Replay(tape, inputs, passed, builder.values, builder.entries()) if builder.stretches else None


class _Builder:
    def __init__(
        self,
        tape: Tape,
        types: Mapping[str, TensorType],
        assumed: Container[str],
        kernels: Any,
        run: Run,
        arena: Arena,
    ) -> None:
        self.tape = tape
        self.types = types
        self.assumed = assumed
        self.kernels = kernels
        self.run = run
        self.arena = arena
        self.values: list[Value] = tape.blank.copy()
        self.stretches = 0
        self._steps: list[Any] = []  # recordings and rows
        self._pinned: set[int] = set()  # the places whose memory others rely on
        self._blocks: dict[int, frozenset[int]] = {}  # place -> blocks of the arena that its value may lie in

    def add(self, row: Row) -> None:
        """Run a row, and note how it is to run again."""
        self._run(row)
        for place in row.releases:
            for block in self._blocks.pop(place, ()):
                if not any(block in others for others in self._blocks.values()):
                    self.arena.take_back(block)

    def _run(self, row: Row) -> None:
        step = row.step
        is_fixed = row.kernel is not None and all(name in self.types for name in (*step.inputs, *step.outputs) if name)
        is_fixed = is_fixed and not any(name in self.assumed for name in step.outputs)
        if is_fixed and is_movement(row.kernel):
            outputs = self.tape.outputs_of(row, self.values, self.run)
            given = [self.values[place] for place in row.inputs]
            if all(isinstance(made, np.ndarray) and any(_shares(made, each) for each in given) for made in outputs):
                self._settle(row, outputs, None)
                return
        if is_fixed and is_replayable(row.kernel):
            first, before = self._recorded(row)
            if not first.is_whole:  # weights may have been packed, once and for all
                first, before = self._recorded(row)
            with self.arena:
                second, outputs = self._recorded(row)
            given = [self.values[place] for place in row.inputs]
            if first.is_whole and second.is_whole and _is_all(first.spans(), second.spans(), before, outputs, given):
                self._settle(row, outputs, second)
            else:
                self._settle(row, outputs, row)
        else:
            self._settle(row, self.tape.outputs_of(row, self.values, self.run), row)

    def _recorded(self, row: Row) -> tuple[Any, tuple[Value, ...]]:
        with self.kernels.Recording() as recording:
            outputs = self.tape.outputs_of(row, self.values, self.run)
        return recording, outputs

    def _settle(self, row: Row, outputs: tuple[Value, ...], again: Any) -> None:
        captured = [self.tape.places[name] for body in row.step.subgraphs.values() for name in body.captures]
        around = frozenset[int]().union(*(self._blocks.get(place, ()) for place in (*row.inputs, *captured)))
        for place, value in zip(row.outputs, outputs, strict=True):
            # What NumPy gives may be, or be a view of, another value, which is not to be written into with this one
            is_own = again is not row or not isinstance(value, np.ndarray)
            self.values[place] = value if is_own else value.copy()
            if again is not row and isinstance(value, np.ndarray) and (block := self.arena.block_of(value)) is not None:
                self._blocks[place] = frozenset([block])
            elif again is row and around:  # it may be a view the next time
                self._blocks[place] = around
        if again is not row:
            self._pinned.update(row.inputs)
        if again is None:
            return
        if again is not row:
            self.stretches += 1
            if self._steps and not isinstance(self._steps[-1], Row):
                self._steps[-1].take(again)
                return
        self._steps.append(again)

    def entries(self) -> list[_Entry]:
        """What a run does."""
        return [
            _Entry(None, each, tuple(map(self._kept, each.outputs, each.step.outputs)))
            if isinstance(each, Row)
            else _Entry(each.run, None, ())
            for each in self._steps
        ]

    def _kept(self, place: int, name: str) -> _Kept:
        value = self.values[place]
        memory = value if place in self._pinned and isinstance(value, np.ndarray) else None
        return _Kept(place, memory, self.types[name] if name in self.assumed else None)


def _is_all(
    first: Any, second: Any, before: tuple[Value, ...], outputs: tuple[Value, ...], given: Iterable[Value]
) -> bool:
    """Whether the calls of a step, recorded twice, are all that it does.

    Memory that it made for itself lies elsewhere the second time, as the first is still held. So what calls read is
    memory of inputs and constants where it lies in the same place, or what calls before wrote; and so are the results.
    """
    if len(first) != len(second):
        return False
    written: list[tuple[int, int]] = []

    def is_written(low: int, high: int) -> bool:
        for start, end in sorted(written):  # by one call, or parts of it by several
            low = end if start <= low < end else low
        return low >= high

    for one, two in zip(first, second, strict=True):
        if len(one) != len(two):
            return False
        results = []
        for (was, _, _), (address, length, how) in zip(one, two, strict=True):
            if how & WRITTEN:
                results.append((address, address + length))
            elif not is_written(address, address + length) and (was != address or how & UPDATED):
                return False
        written += results
    return all(
        value is None
        or (
            isinstance(value, np.ndarray)
            and (
                is_written(*byte_bounds(value))
                or (isinstance(was, np.ndarray) and _lies_as(was, value) and not any(_is_part(value, x) for x in given))
            )
        )
        for was, value in zip(before, outputs, strict=True)
    )


def _is_part(one: Tensor, other: Value) -> bool:
    """Whether an array is a view of some of another, where numbers may say of what."""
    return isinstance(other, np.ndarray) and np.may_share_memory(one, other) and not _lies_as(one, other)


def _is_of(result: Value, kind: TensorType) -> bool:
    return type(result) is np.ndarray and result.dtype == kind.dtype and result.shape == kind.shape


def _lies_as(one: Tensor, other: Tensor) -> bool:
    return byte_bounds(one) == byte_bounds(other)


def _shares(result: Tensor, value: Value) -> bool:
    return isinstance(value, np.ndarray) and np.may_share_memory(result, value)


def _is_plain(value: Value) -> bool:
    return type(value) is np.ndarray and not value.dtype.hasobject


def _has_one_type(value: Value) -> bool:
    """Whether results like this one are of its type, all of them: a sequence of any length is, if it has a type."""
    return _is_plain(value) or (isinstance(value, Sequence) and value.element_type is not None)


def _copied(value: Value) -> Value:
    """What the caller may keep: a sequence may hold values that keep their memory."""
    if isinstance(value, Sequence):
        return Sequence(map(_copied, value), value.element_type)
    return value.copy() if _is_plain(value) else value


def _needed(tape: Tape, types: Mapping[str, TensorType]) -> int:
    """How many bytes values take at a time, at most: each from the step that makes it to the last one that reads it."""
    most = now = 0
    for row in tape.rows:
        now += sum(_bytes_of(types[name]) for name in row.step.outputs if name in types)
        most = max(most, now)
        now -= sum(
            _bytes_of(types[name]) for name in row.step.releases if name in types and name not in tape.plan.inputs
        )
    return most


def _bytes_of(kind: TensorType) -> int:
    size = 0 if kind.dtype is None else kind.dtype.itemsize
    for each in kind.shape or ():
        size *= each if isinstance(each, int) else 1
    return size

"""Plans that adapt to inputs whose types and shapes come again: what follows from these alone is computed once.

A run is watched: which values depend on types and shapes, and not on the numbers fed. The next run with the same gets
a plan in which they are constants, and is watched in turn, until there is nothing more to win. Sub-graphs of its steps
that are called again and again adapt likewise, each to what it is called with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.executor import evaluate, execute, run_step
from onnxeval.limits import Run
from onnxeval.observe import unobserved
from onnxeval.passes import Known, decided_by_shapes, decided_by_types, specialise
from onnxeval.plan import Plan, Step
from onnxeval.replay import MOST_MEMORY, Replay, replay_of
from onnxeval.tape import Tape
from onnxeval.values import TensorType, Value

#: For how many kinds of inputs a plan is kept, those that came last.
_KEPT = 8

#: Likewise of a sub-graph.
_KEPT_OF_BODIES = 4

#: After so many new kinds in a row, as those of a cache that grows, one is not watched before it comes again. Likewise
#: of calls of a sub-graph, of which none was like the one before.
_MOST_CHANGES = 16
#: Calls like the one before it that are not worth adapting to: a branch is taken once a run.
_FEWEST_REPEATS = 3

#: Bytes of a value that is worth being a constant.
_LARGEST = 1 << 16

#: What tells kinds of inputs apart: names, element types and shapes, and the values of single integers and truths.
Kind: TypeAlias = tuple[object, ...]


@dataclass(slots=True, eq=False)
class _Watched:
    """A plan for one kind of inputs, and what runs to their end showed to be so for all inputs of this kind."""

    plan: Plan
    tape: Tape | None = None  # once nothing more is to be won
    replay: Replay | None = None  # where that pays
    is_replayed: bool = False  # whether it was tried to make one
    types: dict[str, TensorType] = field(default_factory=dict)
    values: dict[str, Tensor] = field(default_factory=dict)
    typed: set[str] = field(default_factory=set)  # tensors of always the same element type, if not shape

    def note(self, step: Step, outputs: tuple[Value, ...]) -> None:
        """Take in what one step made."""
        if decided_by_types(step, self.typed):
            self.typed.update(
                name for name, value in zip(step.outputs, outputs, strict=True) if name and type(value) is np.ndarray
            )
        values_decided, shapes_decided = decided_by_shapes(step, self.values, self.types)
        if not shapes_decided:
            return
        for name, value in zip(step.outputs, outputs, strict=True):
            if name and isinstance(value, np.ndarray):
                self.types[name] = TensorType(value.dtype, value.shape)
                if values_decided:
                    self.keep(name, value)

    def keep(self, name: str, value: Tensor) -> None:
        """Take in a value itself: a copy, as the caller may write into feeds and results."""
        if value.nbytes <= _LARGEST:
            own = value.copy()
            own.flags.writeable = False
            self.values[name] = own


class Adaptive:
    """A plan, and those made of it for kinds of inputs that came again.

    ``memory`` bounds what values may keep, in bytes. With ``by_types`` a kind does not tell single integers and truths
    from others, as a loop counts in one.
    """

    def __init__(self, plan: Plan, *, memory: int = MOST_MEMORY, kept: int = _KEPT, by_types: bool = False) -> None:
        self._general = plan
        self._memory = memory
        self._kept = kept
        self._by_types = by_types
        self._kinds: dict[Kind, _Watched] = {}
        self._changes = 0  # new kinds since one came again
        self._run = Run()  # of making replays, which takes no random numbers from a run, and of unseeded ones
        self._lock = Lock()  # several threads may run one model

    def execute(self, kind: Kind, feeds: Mapping[str, Value], run: Run) -> dict[str, Value]:
        """Every output of the plan, by name, in its order. ``kind`` is that of the feeds."""
        watched = self._watched(kind)
        if watched.tape is None and self._changes > _MOST_CHANGES:
            return execute(self._repeating(self._general), feeds, run)
        if watched.tape is None:
            return self._watch(kind, watched, feeds, run)
        if run.observe is not unobserved:
            return self._owned(watched.plan, execute(watched.plan, feeds, run))
        if not watched.is_replayed:
            watched.replay = replay_of(watched.tape, watched.types, feeds, self._run, self._memory)
            watched.is_replayed = True
        if watched.replay is None:
            results = None
        else:
            run.count(watched.plan)
            results = watched.replay.execute(feeds, run)
        return self._owned(watched.plan, watched.tape.execute(feeds, run)) if results is None else results

    def replayed(self, kind: Kind, feeds: Mapping[str, Value]) -> dict[str, Value] | None:
        """The same where nothing but a replay is left to do, whose results are like those before; else None."""
        with self._lock:
            watched = self._kinds.get(kind)
            replay = None if watched is None else watched.replay
            if watched is None or replay is None or not replay.is_plain:
                return None
            self._kinds[kind] = self._kinds.pop(kind)
        if replay.is_compiled:
            return replay.execute(feeds, self._run)
        with np.errstate(all="ignore"):
            return replay.execute(feeds, self._run)

    def _watched(self, kind: Kind) -> _Watched:
        """What is known for this kind, and the plan that follows from it."""
        with self._lock:
            watched = self._kinds.pop(kind, None)
            self._changes = self._changes + 1 if watched is None else 0
            if watched is None:
                watched = _Watched(self._general)
                if len(self._kinds) >= self._kept:
                    del self._kinds[next(iter(self._kinds))]
            elif watched.tape is None and watched.types:
                plan = specialise(watched.plan, Known(evaluate, watched.types), watched.values)
                tape = Tape(self._repeating(plan), watched.types, watched.typed) if plan is watched.plan else None
                watched = replace(watched, plan=plan, tape=tape)
            self._kinds[kind] = watched  # the last one is the one used last
            return watched

    def _watch(self, kind: Kind, watched: _Watched, feeds: Mapping[str, Value], run: Run) -> dict[str, Value]:
        perform = run.observe(run_step)
        seen = replace(watched, types=dict(watched.types), values=dict(watched.values), typed=set(watched.typed))

        def noting(step: Step, values: Mapping[str, Value], run: Run) -> tuple[Value, ...]:
            outputs = perform(step, values, run)
            seen.note(step, outputs)
            return outputs

        for name, value in {**watched.plan.constants, **feeds}.items():
            if isinstance(value, np.ndarray):
                seen.types[name] = TensorType(value.dtype, value.shape)
                seen.typed.add(name)
                if name not in feeds:
                    seen.values[name] = value
                elif _is_decisive(value) and not self._by_types:
                    seen.keep(name, value)
        results = execute(self._repeating(watched.plan), feeds, run, perform=noting)
        with self._lock:
            if self._kinds.get(kind) is watched:  # else another run was faster
                self._kinds[kind] = seen
        return self._owned(watched.plan, results)

    def _repeating(self, plan: Plan) -> Plan:
        """The plan with sub-graphs that adapt; together they may keep as much memory as it may itself."""
        count = sum(isinstance(body, Plan) for step in plan.steps for body in step.subgraphs.values())
        if not count:
            return plan
        memory = self._memory // count

        def repeating(step: Step) -> Step:
            bodies = {
                name: AdaptiveBody(body, memory) if isinstance(body, Plan) else body
                for name, body in step.subgraphs.items()
            }
            return step._replace(subgraphs=bodies) if bodies else step

        return plan._replace(steps=tuple(map(repeating, plan.steps)))

    def _owned(self, plan: Plan, results: dict[str, Value]) -> dict[str, Value]:
        """Results that the caller may write into where the general plan's are so."""
        return results if plan is self._general else {name: _own(value) for name, value in results.items()}


class AdaptiveBody:
    """A sub-graph that adapts to what it is called with: a loop's body mostly to the same again.

    ``memory`` bounds what its values may keep, in bytes.
    """

    def __init__(self, plan: Plan, memory: int) -> None:
        self.plan = plan
        self.captures = plan.captures
        closed = plan._replace(inputs=(*plan.inputs, *plan.captures), captures=())
        self._adaptive = Adaptive(closed, memory=memory // _KEPT_OF_BODIES, kept=_KEPT_OF_BODIES, by_types=True)
        self._last: Kind = ()
        self._repeats = 0  # of the last kind
        self._changes = 0  # of kind, since one came again

    def execute(self, feeds: Mapping[str, Value], captured: Mapping[str, Value], run: Run) -> dict[str, Value]:
        """Every output of the plan, by name."""
        if self._changes > _MOST_CHANGES or run.observe is not unobserved:
            return execute(self.plan, feeds, run, captured)
        known = {**captured, **feeds}
        kind = _types_of(known)
        if kind == self._last:
            self._repeats, self._changes = self._repeats + 1, 0
        else:
            self._last, self._repeats, self._changes = kind, 0, self._changes + 1
        if self._repeats < _FEWEST_REPEATS:
            return execute(self.plan, feeds, run, captured)
        return self._adaptive.execute(kind, known, run)


def _own(value: Value) -> Value:
    """A value to write into, as if no constant had been made of what it was computed from."""
    if type(value) is np.ndarray and not value.flags.writeable and value.nbytes <= _LARGEST:
        return value.copy()
    return value


def kind_of(feeds: Mapping[str, Value]) -> tuple[Kind, bool]:
    """What a plan may rely on for these inputs, and whether there is nothing more to check of them than that."""
    kind: list[Any] = []
    plain = True
    for name, value in feeds.items():
        if type(value) is np.ndarray:
            dtype = value.dtype
            kind += (name, dtype, value.shape, value.item() if _is_decisive(value) else None)
            plain = plain and dtype.kind in "biufc" and dtype.isnative
        else:
            kind += (name, type(value))
            plain = False
    return tuple(kind), plain


def _types_of(feeds: Mapping[str, Value]) -> Kind:
    """The same, of types and shapes alone, for the same names in the same order."""
    return tuple([(x.dtype, x.shape) if type(x) is np.ndarray else type(x) for x in feeds.values()])


def _is_decisive(value: Tensor) -> bool:
    """Whether the value itself belongs to the kind: a rate, a flag, a number of steps."""
    return value.ndim == 0 and value.dtype.kind in "bi"

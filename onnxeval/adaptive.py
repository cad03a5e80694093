"""Plans that adapt to inputs whose types and shapes come again: what follows from these alone is computed once.

A run is watched: which values depend on types and shapes, and not on the numbers fed. The next run with the same gets
a plan in which they are constants, and is watched in turn, until there is nothing more to win. Sub-graphs of its steps
that are called again and again adapt likewise, each to what it is called with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.executor import evaluate, execute, run_step
from onnxeval.growing import Fed, Growing, Pattern, common_pattern, fits
from onnxeval.limits import Run
from onnxeval.observe import unobserved
from onnxeval.passes import Known, decided_by_types, specialise
from onnxeval.plan import Plan, Step
from onnxeval.replay import MOST_MEMORY, Replay, replay_of
from onnxeval.tape import Tape
from onnxeval.values import Value
from onnxeval.watching import LARGEST, Watched

#: For how many kinds of inputs a plan is kept, those that came last.
_KEPT = 8

#: Likewise of a sub-graph.
_KEPT_OF_BODIES = 4

#: Of a sub-graph that came so often, and has so many steps of their own, more is assumed than shapes decide.
_FEWEST_CALLS, _FEWEST_STEPS = 8, 4

#: After so many more new kinds than others, as those of a cache that grows, none is watched. Likewise of calls of a
#: sub-graph, of which none was like the one before.
_MOST_CHANGES = 16
#: Calls like the one before it that are not worth adapting to: a branch is taken once a run.
_FEWEST_REPEATS = 3

#: Patterns of inputs of which some grow that are kept.
_KEPT_PATTERNS = 4
#: A kind is not one of a pattern any more once it came so many times.
_FEWEST_TIMES = 3

#: What tells kinds of inputs apart: names, element types and shapes, and the values of single integers and truths.
Kind: TypeAlias = tuple[object, ...]


@dataclass(slots=True, eq=False)
class _Kind(Watched):
    """The plan for one kind of inputs, and what runs to their end showed to be so for all of this kind."""

    tape: Tape | None = None  # once nothing more is to be won
    replay: Replay | None = None  # where that pays
    is_replayed: bool = False  # whether it was tried to make one
    times: int = 0  # that it came
    assuming: Growing | None = None  # of a sub-graph: what also relies on types that numbers decide


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
        self._kinds: dict[Kind, _Kind] = {}
        self._changes = 0  # how many more kinds were new than came again
        self._last: Pattern | None = None  # what was fed before
        self._growing: dict[Pattern, Growing] = {}
        self._tapes: dict[Kind, Tape] = {}  # of the plan as it is, by the element types of inputs
        self._run = Run()  # of making replays, which takes no random numbers from a run, and of unseeded ones
        self._lock = Lock()  # several threads may run one model

    def execute(self, kind: Kind, feeds: Mapping[str, Value], run: Run) -> dict[str, Value]:
        """Every output of the plan, by name, in its order. ``kind`` is that of the feeds."""
        watched = self._watched(kind)
        if watched.tape is None:
            growing = self._growing_for(feeds) if watched.times <= _FEWEST_TIMES else None
            if growing is not None and run.observe is unobserved:
                results = growing.execute(feeds, run)
                if results is not None:
                    return self._owned(growing.plan, results)
            if self._changes <= _MOST_CHANGES:
                return self._watch(kind, watched, feeds, run)
            if run.observe is not unobserved:
                return execute(self._general, feeds, run)
            return self._by_element_types(feeds, run)
        if run.observe is not unobserved:
            return self._owned(watched.plan, execute(watched.plan, feeds, run))
        if not watched.is_replayed:
            watched.replay = replay_of(watched.tape, watched.types, feeds, self._run, self._memory)
            watched.is_replayed = True
        results = self._by_assumption(watched, feeds, run)
        if results is not None:
            return results
        if watched.replay is None:
            results = None
        else:
            run.count(watched.plan)
            results = watched.replay.execute(feeds, run)
        return self._owned(watched.plan, watched.tape.execute(feeds, run)) if results is None else results

    def _by_assumption(self, watched: _Kind, feeds: Mapping[str, Value], run: Run) -> dict[str, Value] | None:
        """Every output of a loop's body, which also relies on types that numbers decide; None where that is no gain."""
        steps = 0 if watched.replay is None else watched.replay.steps
        if not self._by_types or steps < _FEWEST_STEPS or watched.times < _FEWEST_CALLS:
            return None
        if watched.assuming is None:
            fed = self._fed(feeds)
            if fed is None:
                return None
            watched.assuming = Growing(fed, self._general, self._memory, self._repeating)
        growing = watched.assuming
        results = growing.execute(feeds, run)
        if growing.is_ready and growing.steps >= steps:
            growing.is_useful = False
        return None if results is None else self._owned(growing.plan, results)

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

    def _by_element_types(self, feeds: Mapping[str, Value], run: Run) -> dict[str, Value]:
        """Every output, from a list of places whatever the shapes are: types are checked where they come first."""
        key = tuple([(name, x.dtype if type(x) is np.ndarray else type(x)) for name, x in feeds.items()])
        with self._lock:
            tape = self._tapes.get(key)
        if tape is not None:
            return tape.execute(feeds, run)
        plan = self._repeating(self._general)
        results = execute(plan, feeds, run)
        typed = {name for name, value in {**plan.constants, **feeds}.items() if type(value) is np.ndarray}
        for step in plan.steps:
            if decided_by_types(step, typed):
                typed.update(filter(None, step.outputs))
        with self._lock:
            if len(self._tapes) >= self._kept:
                del self._tapes[next(iter(self._tapes))]
            self._tapes[key] = Tape(plan, {}, typed)
        return results

    def _watched(self, kind: Kind) -> _Kind:
        """What is known for this kind, and the plan that follows from it."""
        with self._lock:
            watched = self._kinds.pop(kind, None)
            change = 1 if watched is None else -1
            self._changes = min(max(0, self._changes + change), 2 * _MOST_CHANGES)
            if watched is None:
                watched = _Kind(self._general)
                if len(self._kinds) >= self._kept:
                    del self._kinds[next(iter(self._kinds))]
            elif watched.tape is None and watched.types:
                plan = specialise(watched.plan, Known(evaluate, watched.types), watched.values)
                tape = Tape(self._repeating(plan), watched.types, watched.typed) if plan is watched.plan else None
                watched = replace(watched, plan=plan, tape=tape)
            watched.times += 1
            self._kinds[kind] = watched  # the last one is the one used last
            return watched

    def _growing_for(self, feeds: Mapping[str, Value]) -> Growing | None:
        """The plan for inputs of which some are like those of the run before, and others are not."""
        fed = self._fed(feeds)
        with self._lock:
            last, self._last = self._last, fed
            if fed is None:
                return None
            for pattern, growing in self._growing.items():
                if growing.is_ready and fits(pattern, fed):
                    return growing
            common = None if last is None else common_pattern(last, fed)
            if common is None or common in self._growing:
                return None if common is None else self._growing[common]
            if len(self._growing) >= _KEPT_PATTERNS:
                del self._growing[next(iter(self._growing))]
            self._growing[common] = Growing(common, self._general, self._memory, self._repeating)
            return None  # it may be that it does not go on so

    def _fed(self, feeds: Mapping[str, Value]) -> Pattern | None:
        """What is fed; None where it is not arrays alone."""
        fed = []
        for name, value in feeds.items():
            if type(value) is not np.ndarray:
                return None
            decides = not self._by_types and _is_decisive(value)
            fed.append(Fed(name, value.dtype, value.shape, value.item() if decides else None))
        return tuple(fed)

    def _watch(self, kind: Kind, watched: _Kind, feeds: Mapping[str, Value], run: Run) -> dict[str, Value]:
        perform = run.observe(run_step)
        seen = replace(watched, types=dict(watched.types), values=dict(watched.values), typed=set(watched.typed))

        def noting(step: Step, values: Mapping[str, Value], run: Run) -> tuple[Value, ...]:
            outputs = perform(step, values, run)
            seen.note(step, outputs)
            return outputs

        for name, value in {**watched.plan.constants, **feeds}.items():
            if isinstance(value, np.ndarray):
                seen.know(name, value)
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
    if type(value) is np.ndarray and not value.flags.writeable and value.nbytes <= LARGEST:
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

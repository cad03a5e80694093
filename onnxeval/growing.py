"""A plan for inputs some of whose shapes are others each time, as those of a cache that grows.

What follows from the shapes of the others is decided as ever. Of what remains it is assumed that it is of the type that
it was of twice, which is looked at as soon as it is made: where it is not, the steps of the general plan run instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import NamedTuple, TypeAlias

import numpy as np

from onnxeval.dtypes import DType, Tensor
from onnxeval.executor import evaluate, execute, run_step
from onnxeval.limits import Run
from onnxeval.passes import Known, decided_by_shapes, specialise
from onnxeval.plan import Plan, Step
from onnxeval.replay import Replay, replay_of
from onnxeval.tape import Tape
from onnxeval.values import TensorType, Value
from onnxeval.watching import Watched

#: Bytes of a value that shapes may be made of.
_LARGEST_SHAPE = 1 << 10

#: In how many runs something may be of another type than was assumed: a few, and one in so many, as when a loop ends.
_MOST_MISSES, _RUNS_BETWEEN_MISSES = 3, 16


class Fed(NamedTuple):
    """What is known of an input: its shape, or its rank where the shape is open; its value, where that is known."""

    name: str
    dtype: DType
    shape: tuple[int, ...] | int
    value: object  # of a single integer or truth; None where there is none, or it is open


#: What tells inputs apart.
Pattern: TypeAlias = tuple[Fed, ...]


def common_pattern(one: Pattern, other: Pattern) -> Pattern | None:
    """What is the same of both; None where names, element types or ranks are not, or nothing else is, or all is."""
    if len(one) != len(other):
        return None
    common = []
    for a, b in zip(one, other, strict=True):
        if a[:2] != b[:2] or len(a.shape) != len(b.shape):  # type: ignore[arg-type]  # shapes, of inputs that are there
            return None
        shape = a.shape if a.shape == b.shape else len(a.shape)  # type: ignore[arg-type]
        common.append(Fed(a.name, a.dtype, shape, a.value if a.value == b.value else None))
    is_mixed = tuple(common) != one and any(isinstance(fed.shape, tuple) for fed in common)
    return tuple(common) if is_mixed else None


def fits(pattern: Pattern, given: Pattern) -> bool:
    """Whether inputs are as the pattern says."""
    if len(pattern) != len(given):
        return False
    for open_fed, fed in zip(pattern, given, strict=True):
        shape = fed.shape if type(open_fed.shape) is tuple else len(fed.shape)  # type: ignore[arg-type]
        is_same = open_fed.name == fed.name and open_fed.dtype == fed.dtype and open_fed.shape == shape
        if not is_same or open_fed.value not in (None, fed.value):
            return False
    return True


class Growing:
    """The plan for one pattern of inputs. ``memory`` bounds what values may keep, in bytes.

    ``repeating`` lets the sub-graphs of a plan adapt.
    """

    def __init__(self, pattern: Pattern, plan: Plan, memory: int, repeating: Callable[[Plan], Plan]) -> None:
        self._fixed = {fed.name: fed for fed in pattern if isinstance(fed.shape, tuple)}
        self._memory = memory
        self._repeating = repeating
        self._watched = Watched(plan)
        self._before: _Seen | None = None  # what a run before showed
        self._assumed: _Assumed | None = None  # once nothing more is to be won
        self._replay: Replay | None = None
        self._runs = 0
        self._run = Run()
        self._lock = Lock()
        #: Whether there is anything to be had of it.
        self.is_useful = True

    @property
    def is_ready(self) -> bool:
        """Whether runs are replayed."""
        return self._replay is not None and self.is_useful

    @property
    def steps(self) -> int:
        """How many steps of their own a replay has."""
        return 0 if self._replay is None else self._replay.steps

    @property
    def plan(self) -> Plan:
        return self._watched.plan if self._assumed is None else self._assumed.plan

    def execute(self, feeds: Mapping[str, Value], run: Run) -> dict[str, Value] | None:
        """Every output of the plan, by name, in its order; None where the general plan is to run."""
        if not self.is_useful:
            return None
        if self._assumed is None:
            return self._watch(feeds, run)
        with self._lock:
            if self._replay is None and self.is_useful:
                self._replay = self._made(self._assumed, feeds)
                self.is_useful = self._replay is not None
        if self._replay is None:
            return None
        results = self._replay.execute(feeds, run)
        self._runs += 1
        if results is not None:
            run.count(self.plan)
        self.is_useful = self._replay.misses <= _MOST_MISSES + self._runs // _RUNS_BETWEEN_MISSES
        return results

    def _made(self, assumed: _Assumed, feeds: Mapping[str, Value]) -> Replay | None:
        typed = self._watched.typed | assumed.types.keys()
        tape = Tape(self._repeating(assumed.plan), assumed.types, typed)
        return replay_of(tape, assumed.types, feeds, self._run, self._memory, fixed=self._fixed, assumed=assumed.guards)

    def _watch(self, feeds: Mapping[str, Value], run: Run) -> dict[str, Value]:
        watched = self._watched
        perform = run.observe(run_step)
        noted = replace(watched, types=dict(watched.types), values=dict(watched.values), typed=set(watched.typed))
        seen = _Seen({}, {})

        def noting(step: Step, values: Mapping[str, Value], run: Run) -> tuple[Value, ...]:
            outputs = perform(step, values, run)
            noted.note(step, outputs)
            for name, value in zip(step.outputs, outputs, strict=True):
                if name and isinstance(value, np.ndarray):
                    seen.types[name] = TensorType(value.dtype, value.shape)
                    if value.nbytes <= _LARGEST_SHAPE and value.dtype.kind in "ib":
                        seen.numbers[name] = value.copy()
            return outputs

        for name, value in watched.plan.constants.items():
            if isinstance(value, np.ndarray):
                noted.know(name, value)
                noted.values[name] = value
        for name, value in feeds.items():
            assert isinstance(value, np.ndarray)
            noted.typed.add(name)
            if name in self._fixed:
                noted.know(name, value)
                if self._fixed[name].value is not None:
                    noted.keep(name, value)
        results = execute(self._repeating(watched.plan), feeds, run, perform=noting)
        with self._lock:
            if self._watched is watched:  # else another run was faster
                self._take_in(noted, seen)
        return results

    def _take_in(self, noted: Watched, seen: _Seen) -> None:
        """What one run showed: the second one says what does not change."""
        if self._before is None:
            self._before, self._watched = seen, noted
            return
        plan = specialise(noted.plan, Known(evaluate, noted.types), noted.values)
        if plan is not noted.plan:
            self._before, self._watched = None, replace(noted, plan=plan)
            return
        self._watched = noted
        self._assumed = _assumed(noted, self._before, seen)


class _Seen(NamedTuple):
    """What one run showed: the types of all values, and copies of small ones that shapes may be made of."""

    types: dict[str, TensorType]
    numbers: dict[str, Tensor]


class _Assumed(NamedTuple):
    """A plan that is right where each of the ``guards`` is of its type, which makes all ``types`` known."""

    plan: Plan
    types: Mapping[str, TensorType]
    guards: frozenset[str]


def _assumed(watched: Watched, before: _Seen, seen: _Seen) -> _Assumed:
    """What follows where values that were of one type twice are of it always."""
    plan, types, values = watched.plan, dict(watched.types), dict(watched.values)
    guards: set[str] = set()
    if _draws(plan):  # it could not run once more
        return _Assumed(plan, types, frozenset())
    for step in plan.steps:
        values_follow, types_follow = decided_by_shapes(step, values, types)
        for name in step.outputs:
            kind = seen.types.get(name)
            if kind is None or before.types.get(name) != kind:
                continue
            if name not in types:
                types[name] = kind
                if not types_follow:
                    guards.add(name)
            if values_follow and name in seen.numbers:
                values.setdefault(name, seen.numbers[name])
    # What a guard is looked at for may become constant: it stays all the same
    kept = (*plan.outputs, *guards.difference(plan.outputs))
    unknown = (None,) * (len(kept) - len(plan.outputs))
    guarded = plan._replace(outputs=kept, output_types=(*plan.output_types, *unknown))
    special = specialise(guarded, Known(evaluate, types), values)
    special = special._replace(outputs=plan.outputs, output_types=plan.output_types)
    return _Assumed(special, types, frozenset(guards))


def _draws(plan: Plan) -> bool:
    """Whether a plan draws random numbers, or may."""
    return any(
        "rng" in step.injected or any(not isinstance(body, Plan) or _draws(body) for body in step.subgraphs.values())
        for step in plan.steps
    )

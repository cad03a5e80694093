"""Look on while a model runs: an observer wraps `run_step`, for the steps of sub-graphs and functions too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from onnxeval.plan import Step
from onnxeval.values import Value

if TYPE_CHECKING:
    from onnxeval.limits import Run

#: What runs one step: `onnxeval.executor.run_step`, or a wrapper around it.
StepRunner: TypeAlias = Callable[[Step, Mapping[str, Value], "Run"], tuple[Value, ...]]
#: Wraps what runs the steps of a plan; called once for each pass over a plan.
Observer: TypeAlias = Callable[[StepRunner], StepRunner]

_OPERATOR = r" \(([^()]*)\)(?= \+ |$)"


def unobserved(run_step: StepRunner) -> StepRunner:
    """The observer that does nothing."""
    return run_step


@dataclass(slots=True)
class Timing:
    """What one step took, over all its calls in one place of the model; ``inside`` are the steps of its sub-graphs."""

    label: str
    calls: int = 0
    seconds: float = 0.0
    inside: dict[Step, Timing] = field(default_factory=dict)

    @property
    def own_seconds(self) -> float:
        """The seconds of the step itself, those of the steps inside it taken off."""
        return self.seconds - sum(timing.seconds for timing in self.inside.values())

    @property
    def operator(self) -> str:
        """The operators with their versions, without the node's name: ``Conv-11 + Relu-6`` for a fused step."""
        return " + ".join(re.findall(_OPERATOR, self.label)) or self.label


class Profile:
    """An observer that measures every step: ``Model.run(feeds, observer=profile)``, as often as you like.

    It adds about half a microsecond to each step. One profile is for one run at a time.
    """

    def __init__(self) -> None:
        self._whole = Timing("")
        self._around = self._whole

    def __call__(self, run_step: StepRunner) -> StepRunner:
        def timed(step: Step, values: Mapping[str, Value], run: Run) -> tuple[Value, ...]:
            around = self._around
            timing = around.inside.get(step)
            if timing is None:
                timing = around.inside[step] = Timing(step.label)
            self._around = timing
            start = perf_counter()
            try:
                return run_step(step, values, run)
            finally:
                timing.seconds += perf_counter() - start
                timing.calls += 1
                self._around = around

        return timed

    @property
    def seconds(self) -> float:
        """The seconds of all steps; what a run took beyond them went into the loop and the checks around it."""
        return sum(timing.seconds for timing in self._whole.inside.values())

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], Timing]]:
        """Every step that ran, in the order of the first run, under its path of labels, outermost first."""
        yield from _walk((), self._whole)


def _walk(path: tuple[str, ...], timing: Timing) -> Iterator[tuple[tuple[str, ...], Timing]]:
    for inner in timing.inside.values():
        here = (*path, inner.label)
        yield here, inner
        yield from _walk(here, inner)

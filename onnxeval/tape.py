"""A plan whose types are all known, run with nothing left to look up: values have places in a list, not names."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple

import numpy as np

from onnxeval.executor import as_outputs, cause_of, located, run_step
from onnxeval.limits import Run
from onnxeval.plan import Plan, Step
from onnxeval.values import Value

_ndarray = np.ndarray


class _Row(NamedTuple):
    """One step. ``kernel`` is None where it is run as in `execute`, because it needs names or a check of types."""

    kernel: Callable[..., Any] | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, Any]
    releases: tuple[int, ...]
    step: Step


class Tape:
    """The steps of a plan for inputs of one kind, whose types were checked when the plan was watched.

    ``known`` are the names of values whose types are always the same.
    """

    def __init__(self, plan: Plan, known: Container[str]) -> None:
        self._plan = plan
        made = [name for step in plan.steps for name in (*step.inputs, *step.outputs)]
        names = [name for name in dict.fromkeys((*plan.constants, *plan.inputs, *made)) if name]
        # Absent inputs are read at the first place, and unwanted outputs written to the last
        self._places = {name: place for place, name in enumerate(names, 1)}
        self._blank: list[Value] = [None, *(plan.constants.get(name) for name in names), None]
        self._rows = [self._row(step, known) for step in plan.steps]

    def _row(self, step: Step, known: Container[str]) -> _Row:
        is_plain = not step.subgraphs and not (step.schema is not None and step.schema.chooses_types)
        is_checked = step.schema is None or all(name in known for name in step.inputs if name)
        inputs, outputs, releases = (
            tuple([self._places.get(name, absent) for name in names])
            for names, absent in ((step.inputs, 0), (step.outputs, len(self._blank) - 1), (step.releases, -1))
        )
        return _Row(step.kernel if is_plain and is_checked else None, inputs, outputs, step.attributes, releases, step)

    def execute(self, feeds: Mapping[str, Value], run: Run) -> dict[str, Value]:
        """Every output of the plan, by name, in its order."""
        run.count(self._plan)
        values = self._blank.copy()
        places = self._places
        for name, value in feeds.items():
            values[places[name]] = value
        for kernel, inputs, outputs, attributes, releases, step in self._rows:
            given = [values[place] for place in inputs]
            try:
                if kernel is None:
                    result: Any = run_step(step, self._named(values), run)
                elif step.injected:
                    result = kernel(*given, **attributes, **{name: getattr(run, name) for name in step.injected})
                else:
                    result = kernel(*given, **attributes)
                if type(result) is _ndarray and len(outputs) == 1:
                    values[outputs[0]] = result
                else:
                    for place, value in zip(outputs, as_outputs(step, result), strict=True):
                        values[place] = value
            except Exception as error:
                if kernel is None:  # its place is told already
                    raise
                raise located(error, step, given) from cause_of(error)
            for place in releases:
                values[place] = None
        return {name: values[places[name]] for name in self._plan.outputs}

    def _named(self, values: list[Value]) -> dict[str, Value]:
        return {"": None, **{name: values[place] for name, place in self._places.items()}}

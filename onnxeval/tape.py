"""A plan whose types are all known, run with nothing left to look up: values have places in a list, not names."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onnxeval.executor import as_outputs, cause_of, located, run_step
from onnxeval.limits import Run
from onnxeval.passes import bound_movement
from onnxeval.plan import Plan, Step
from onnxeval.values import TensorType, Value

_ndarray = np.ndarray


class Row(NamedTuple):
    """One step. ``kernel`` is None where it is run as in `execute`, because it needs names or a check of types."""

    kernel: Callable[..., Any] | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, Any]
    releases: tuple[int, ...]
    step: Step


class Tape:
    """The steps of a plan for inputs of one kind, whose types were checked when the plan was watched.

    ``types`` are those that values always have; the element types of those that are ``typed`` are always the same too.
    """

    def __init__(self, plan: Plan, types: Mapping[str, TensorType], typed: Container[str]) -> None:
        self.plan = plan
        self.constant_bytes = sum(value.nbytes for value in plan.constants.values())
        made = [name for step in plan.steps for name in (*step.inputs, *step.outputs)]
        names = [name for name in dict.fromkeys((*plan.constants, *plan.inputs, *made)) if name]
        # Absent inputs are read at the first place, and unwanted outputs written to the last
        self.places = {name: place for place, name in enumerate(names, 1)}
        self.blank: list[Value] = [None, *(plan.constants.get(name) for name in names), None]
        self.rows = [self._row(step, types, typed) for step in plan.steps]

    def _row(self, step: Step, types: Mapping[str, TensorType], typed: Container[str]) -> Row:
        is_checked = step.schema is None or all(name in typed for name in step.inputs if name)
        kernel = None if step.subgraphs or not is_checked else step.kernel
        if kernel is not None:
            kernel = bound_movement(step, self.plan.constants, types) or kernel
        inputs, outputs, releases = (
            tuple([self.places.get(name, absent) for name in names])
            for names, absent in ((step.inputs, 0), (step.outputs, len(self.blank) - 1), (step.releases, -1))
        )
        return Row(kernel, inputs, outputs, step.attributes, releases, step)

    def execute(self, feeds: Mapping[str, Value], run: Run) -> dict[str, Value]:
        """Every output of the plan, by name, in its order."""
        run.count(self.plan)
        values = self.blank.copy()
        places = self.places
        for name, value in feeds.items():
            values[places[name]] = value
        for row in self.rows:
            results = self.outputs_of(row, values, run)
            if len(results) == 1:
                values[row.outputs[0]] = results[0]
            else:
                for place, value in zip(row.outputs, results, strict=True):
                    values[place] = value
            for place in row.releases:
                values[place] = None
        return {name: values[places[name]] for name in self.plan.outputs}

    def outputs_of(self, row: Row, values: Sequence[Value], run: Run) -> tuple[Value, ...]:
        """What one row makes of the values at its places."""
        kernel, inputs, outputs, attributes, _, step = row
        if kernel is None:
            return run_step(step, self._named(step, values), run)
        given = [values[place] for place in inputs]
        try:
            if step.injected:
                result = kernel(*given, **attributes, **{name: getattr(run, name) for name in step.injected})
            else:
                result = kernel(*given, **attributes)
            if type(result) is _ndarray and len(outputs) == 1:
                return (result,)
            return as_outputs(step, result)
        except Exception as error:
            raise located(error, step, given) from cause_of(error)
        except BaseException as stop:
            stop.add_note(step.label)
            raise

    def _named(self, step: Step, values: Sequence[Value]) -> dict[str, Value]:
        """What a step reads, by name."""
        names = (*step.inputs, *(name for body in step.subgraphs.values() for name in body.captures))
        return {"": None, **{name: values[self.places[name]] for name in names if name}}

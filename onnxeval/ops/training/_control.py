"""Control flow on a tape: the branch that was taken, and each iteration of a loop.

The kernels run as ever, on values. What stands for their sub-graphs tells by its identity which variable a value is:
carried values come back as they were given out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from onnxeval.ops._axes import normalise_axis
from onnxeval.ops.training._algebra import concat, reshape
from onnxeval.ops.training._tape import Variable, apply
from onnxeval.ops.training._trace import Branch, Variables, follower
from onnxeval.values import Value, ValueType

if TYPE_CHECKING:
    from onnxeval.plan import Step


@follower("If")
def _follow_if(step: Step, inputs: Variables, branches: Mapping[str, Branch]) -> Variables:
    outputs: Variables = step.kernel(inputs[0].value, **branches, **step.attributes)
    return outputs


class _Iterations:
    """The body of a loop as its kernel sees it, which keeps the variables of all iterations."""

    def __init__(self, body: Branch, inputs: Variables) -> None:
        self.output_types: tuple[ValueType | None, ...] = body.output_types
        self.n_inputs = body.n_inputs
        self.results: list[Variables] = []
        self._body = body
        self._known: dict[int, Variable] = {}
        self.given = tuple(map(self._own, inputs))

    def __call__(self, *values: Value) -> tuple[Value, ...]:
        return self.step(tuple(map(self.variable, values)))

    def step(self, inputs: Variables) -> tuple[Value, ...]:
        self.results.append(self._body(*inputs))
        return tuple(map(self._own, self.results[-1]))

    def variable(self, value: Value) -> Variable:
        """The variable that a value was given out for."""
        return self._known.get(id(value)) or self._body.tape.constant(value)

    def _own(self, variable: Variable) -> Value:
        """The variable's value as an object of its own."""
        value = variable.value.view() if isinstance(variable.value, np.ndarray) else copy(variable.value)
        if value is not None:
            self._known[id(value)] = Variable(variable.tape, value, variable.maker, variable.place)
        return value

    def stacked(self, place: int, value: Value, axis: int = 0, *, backwards: bool = False) -> Variable:
        """The variable of a scan output: what output ``place`` was in all iterations, along a new axis."""
        rows = [results[place] for results in self.results]
        if all(row.maker is None for row in rows):
            return self._body.tape.constant(value)
        at = normalise_axis(axis, rows[0].ndim + 1)
        layers = [reshape(row, (*row.shape[:at], 1, *row.shape[at:])) for row in rows]
        return concat(layers[::-1] if backwards else layers, at)


@follower("Loop")
def _follow_loop(step: Step, inputs: Variables, branches: Mapping[str, Branch]) -> Variables:
    body = _Iterations(branches["body"], inputs)
    results = step.kernel(*body.given, body=body, **step.attributes)
    n_carried = len(inputs) - 2
    scans = (body.stacked(place + 1, value) for place, value in enumerate(results) if place >= n_carried)
    return *map(body.variable, results[:n_carried]), *scans


class _Elements(_Iterations):
    """The body of a Scan: the elements of the scan inputs are variables as well."""

    def __init__(self, body: Branch, inputs: Variables, n_states: int, step: Step) -> None:
        super().__init__(body, inputs)
        axes = step.attributes["scan_input_axes"] or (0,) * (len(inputs) - n_states)
        backwards = step.attributes["scan_input_directions"] or (0,) * (len(inputs) - n_states)
        self._n_states = n_states
        self._scanned = [*zip(inputs[n_states:], axes, backwards, strict=True)]

    def __call__(self, *values: Value) -> tuple[Value, ...]:
        count = len(self.results)
        elements = (
            apply("Gather", x, np.array(-1 - count if backward else count), axis=axis)
            for x, axis, backward in self._scanned
        )
        return self.step((*map(self.variable, values[: self._n_states]), *elements))


@follower("Scan", since=9)
def _follow_scan(step: Step, inputs: Variables, branches: Mapping[str, Branch]) -> Variables:
    n_states = len(inputs) - step.attributes["num_scan_inputs"]
    body = _Elements(branches["body"], inputs, n_states, step)
    results = step.kernel(*body.given, body=body, **step.attributes)
    n_scans = len(results) - n_states
    axes: Sequence[int] = step.attributes["scan_output_axes"] or (0,) * n_scans
    backwards: Sequence[int] = step.attributes["scan_output_directions"] or (0,) * n_scans
    scans = (
        body.stacked(n_states + place, value, axis, backwards=bool(backward))
        for place, (value, axis, backward) in enumerate(zip(results[n_states:], axes, backwards, strict=True))
    )
    return *map(body.variable, results[:n_states]), *scans

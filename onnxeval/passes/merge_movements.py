"""Transposes of transposes, reshapes of reshapes, and what moves or casts nothing at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes._rewrite import Known, kept_names, op_type, rebuilt, standard_step, without_dead
from onnxeval.plan import Plan, Step

#: Operators that keep the elements in their order.
RESHAPING = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})

#: Operators that may change nothing.
_MOVEMENTS = frozenset({"Transpose", "Cast", *RESHAPING})

#: Nodes that the label of a merged step names: each step of a long row would name all before it.
_MOST_LABELS = 24


def merge_movements(plan: Plan, known: Known) -> Plan:
    """The plan whose steps read from before a movement that the step repeats or undoes.

    The movement itself is left out where nobody else reads it. Plan's outputs and captured names keep their step.
    """
    work = _Work(plan.constants, known, kept_names(plan))
    steps = [work.rewritten(step) for step in plan.steps]
    if not work.changed:
        return plan
    kept = without_dead([step for step in steps if step is not None], work.needed)
    return rebuilt(plan, kept, {**plan.constants, **work.shapes})


@dataclass(slots=True)
class _Work:
    constants: Mapping[str, Tensor]
    known: Known
    needed: set[str]
    names: dict[str, str] = field(default_factory=dict)  # what is read instead of a value that is the same
    made: dict[str, Step] = field(default_factory=dict)
    shapes: dict[str, Tensor] = field(default_factory=dict)  # the constants that merged reshapes read
    changed: bool = False

    def rewritten(self, step: Step) -> Step | None:
        """The step to take this one's place; None where its output is its input."""
        if self.names:
            inputs = tuple([self.names.get(name, name) for name in step.inputs])
            step = step._replace(inputs=inputs) if inputs != step.inputs else step
        op = op_type(step)
        if op == "Transpose":
            step = self._transpose(step)
        elif op in RESHAPING:
            step = self._reshape(step)
        if op in _MOVEMENTS and self._changes_nothing(step) and step.outputs[0] not in self.needed:
            self.names[step.outputs[0]] = step.inputs[0]
            self.changed = True
            return None
        self.made[step.outputs[0]] = step
        return step

    def _transpose(self, step: Step) -> Step:
        before = self.made.get(step.inputs[0])
        if before is None or op_type(before) != "Transpose":
            return step
        first, second = before.attributes["perm"], step.attributes["perm"]
        given = first or second
        if given is None:
            source = self.known.type_of(before.inputs[0], self.constants)
            if source is None or source.shape is None:
                return step
            given = source.shape
        reverse = tuple(range(len(given)))[::-1]
        first, second = first or reverse, second or reverse
        if len(first) != len(second):
            return step
        return self._merged(before, step._replace(attributes={"perm": tuple(first[axis] for axis in second)}))

    def _reshape(self, step: Step) -> Step:
        """A reshape of a reshape reads what that one read, where its own shape says all or is known."""
        before = self.made.get(step.inputs[0])
        if before is None or op_type(before) not in RESHAPING:
            return step
        shape = self._constant_shape(step)
        if shape is not None and not (shape == 0).any():  # a zero is a size of the input
            if self._always_fits(before):
                return self._reshape(self._merged(before, step))
            size = self._size(before)
            if size is not None and (merged := _resolved(shape, size)) is not None:
                return self._reshape(self._merged(before, self._to_shape(step, merged)))
        result = self.known.type_of(step.outputs[0], self.constants)
        if result is None or result.shape is None:
            return step
        return self._reshape(self._merged(before, self._to_shape(step, np.array(result.shape, np.int64))))

    def _constant_shape(self, step: Step) -> Tensor | None:
        """The shape that a Reshape is given, where it is a constant."""
        if op_type(step) != "Reshape" or len(step.inputs) != 2:
            return None
        name = step.inputs[1]
        return self.constants.get(name, self.shapes.get(name))

    def _always_fits(self, step: Step) -> bool:
        """Whether a reshape is sure not to fail, so that one that reads it may do without."""
        return (
            op_type(step) in ("Flatten", "Unsqueeze") or self.known.type_of(step.outputs[0], self.constants) is not None
        )

    def _size(self, step: Step) -> int | None:
        """How many elements a value has that a Reshape makes, where its shape says all."""
        shape = self._constant_shape(step)
        return None if shape is None or (shape <= 0).any() else math.prod(shape.tolist())

    def _to_shape(self, step: Step, shape: Tensor) -> Step:
        name = f"shape of {step.outputs[0]}"
        self.shapes[name] = shape
        return standard_step(step, "Reshape", (step.inputs[0], name), step.outputs[0], allowzero=1)

    def _merged(self, before: Step, step: Step) -> Step:
        self.changed = True
        labels = before.label.split(" + ")
        if len(labels) >= _MOST_LABELS:
            labels = [*labels[: _MOST_LABELS - 2], "…"]
        label = " + ".join([*labels, step.label])
        return step._replace(label=label, inputs=(before.inputs[0], *step.inputs[1:]))

    def _changes_nothing(self, step: Step) -> bool:
        match op_type(step):
            case "Transpose":
                perm = step.attributes["perm"]
                return perm is not None and tuple(perm) == tuple(range(len(perm)))
            case "Cast":
                return self._casts_nothing(step)
            case _:
                source, result = (
                    self.known.type_of(name, self.constants) for name in (step.inputs[0], step.outputs[0])
                )
                return source is not None and result is not None and source.shape is not None and source == result

    def _casts_nothing(self, step: Step) -> bool:
        source, result = (self.known.type_of(name, self.constants) for name in (step.inputs[0], step.outputs[0]))
        if source is not None and result is not None:
            return source.dtype == result.dtype
        before = self.made.get(step.inputs[0])
        return before is not None and op_type(before) == "Cast" and before.attributes["to"] == step.attributes["to"]


def _resolved(shape: Tensor, size: int) -> Tensor | None:
    """A shape without zeros for so many elements, its -1 a number; None where they do not fit."""
    rest = math.prod(number for number in shape.tolist() if number >= 0)
    resolved: Tensor = np.where(shape < 0, size // rest, shape)
    fits = ((shape < 0).sum() <= 1) and math.prod(resolved.tolist()) == size and (shape >= -1).all()
    return resolved.astype(np.int64) if fits else None

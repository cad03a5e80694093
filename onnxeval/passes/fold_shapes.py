"""Shape arithmetic that comes out the same whatever the open sizes are: computed at compile time, or done without.

Exporters spell shapes out: the width of a product is read from it, halved and sliced by; a Reshape gets the first sizes
of its input from that input. What depends on no open size becomes a constant, and a Reshape that is given a size of its
input for the same axis copies it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes._facts import SOURCES, Facts
from onnxeval.passes._rewrite import Known, op_type, rebuilt, with_bodies, without_dead
from onnxeval.passes._sizes import Shape, Symbol
from onnxeval.passes.fold_constants import fold_constants
from onnxeval.plan import NOTHING, Plan, Step
from onnxeval.values import Dimension

#: Operators that cannot fail; with a single scale for all elements.
_SAFE = frozenset({"Cast", "Identity", "Transpose"})
_SAFE_WITH_ONE_SCALE = frozenset({"DequantizeLinear", "QuantizeLinear"})


def fold_shapes(plan: Plan, known: Known) -> Plan:
    """The plan with such constants, and what follows from them folded, inside sub-graphs too.

    Steps that may fail stay: what sizes say of each other is true of runs in which they do not.
    """
    if not _asks_for_sizes(plan):
        return plan
    declared = _symbolic(known.declared)
    unread: set[str] = set()
    while True:
        facts = Facts(declared, NOTHING, unread)
        folded = _folded(plan, facts)
        lost = _lost(plan, folded, facts)
        if not lost:
            return plan if folded is plan else fold_constants(folded, known)
        if lost <= unread:
            return plan
        unread |= lost


def _asks_for_sizes(plan: Plan) -> bool:
    return any(
        op_type(step) in SOURCES
        or any(_asks_for_sizes(body) for body in step.subgraphs.values() if isinstance(body, Plan) and body.captures)
        for step in plan.steps
    )


def _folded(plan: Plan, facts: Facts) -> Plan:
    for name, value in plan.constants.items():
        facts.add_constant(name, value)
    made: dict[str, Tensor] = {}
    steps: list[Step] = []
    for step in plan.steps:
        if step.subgraphs:
            steps.append(with_bodies(step, lambda body: _within(body, facts)))
            continue
        facts.follow(step)
        numbers = facts.numbers.get(step.outputs[0]) if len(step.outputs) == 1 else None
        constant = None if numbers is None else numbers.tensor()
        if constant is not None:
            made[step.outputs[0]] = constant
            continue
        shape = _copied_shape(step, facts)
        if shape is not None:
            name = f"sizes of {step.outputs[0]}"
            made[name] = shape
            copying = {**step.attributes, "allowzero": 0} if "allowzero" in step.attributes else step.attributes
            step = step._replace(inputs=(step.inputs[0], name), attributes=copying)
        steps.append(step)
    if steps == list(plan.steps):
        return plan
    return rebuilt(plan, without_dead(steps, plan.outputs), {**plan.constants, **made})


def _within(body: Plan, around: Facts) -> Plan:
    """A body that captures values: of its own names nothing is known but what it says itself."""
    if not body.captures:
        return body
    shapes = {name: around.shapes[name] for name in body.captures if name in around.shapes}
    numbers = {name: around.numbers[name] for name in body.captures if name in around.numbers}
    facts = Facts(shapes, numbers, around.unread)
    folded = _folded(body, facts)
    return body if _lost(body, folded, facts) else folded


def _lost(plan: Plan, folded: Plan, facts: Facts) -> set[str]:
    """What steps made that may fail, and that nobody needs any more."""
    if folded is plan:
        return set()
    left = {"", *(name for step in folded.steps for name in step.outputs)}
    return {
        name
        for step in without_dead(plan.steps, plan.outputs)
        if not left.issuperset(step.outputs) and _may_fail(step, facts)
        for name in step.outputs
    }


def _may_fail(step: Step, facts: Facts) -> bool:
    """Whether a step may fail of whose inputs no more is known than that."""
    if op_type(step) in _SAFE_WITH_ONE_SCALE:
        return facts.shapes.get(step.inputs[1]) != ()
    numbers = facts.numbers.get(step.outputs[0])
    is_followed = numbers is not None and (numbers.is_known or op_type(step) != "Div")
    return op_type(step) not in _SAFE and not is_followed


def _copied_shape(step: Step, facts: Facts) -> Tensor | None:
    """The shape for a Reshape that is given open sizes of its own input, each for its own axis; else None."""
    if op_type(step) != "Reshape" or len(step.inputs) != 2:
        return None
    shape, numbers = facts.shapes.get(step.inputs[0]), facts.numbers.get(step.inputs[1])
    if shape is None or numbers is None or numbers.rank != 1:
        return None
    if step.attributes.get("allowzero") and 0 in numbers.items:
        return None
    sizes = [
        0 if axis < len(shape) and not isinstance(item, int) and item is shape[axis] else item
        for axis, item in enumerate(numbers.items)
    ]
    if all(isinstance(item, int) for item in numbers.items) or not all(isinstance(size, int) for size in sizes):
        return None
    return np.array(sizes, np.int64)


def _symbolic(declared: Mapping[str, tuple[Dimension, ...]]) -> dict[str, Shape]:
    """Declared shapes, with a symbol for each name of a size and for each size without."""
    names: dict[str, Symbol] = {}
    return {
        name: tuple(
            [
                size if isinstance(size, int) else names.setdefault(size, Symbol()) if size else Symbol()
                for size in shape
            ]
        )
        for name, shape in declared.items()
    }

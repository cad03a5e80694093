"""What a Loop carries from iteration to iteration without changing it is read from around the loop instead.

Exporters carry everything that a body reads, weights too: as constants they are packed once, and not handed on again
and again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TypeVar

from onnxeval.passes._rewrite import (
    Known,
    is_compiled,
    locals_within,
    once,
    op_type,
    reads_of,
    rebuilt,
    renamed,
    standard_step,
    with_bodies,
)
from onnxeval.plan import Plan, Step
from onnxeval.values import TensorType

T = TypeVar("T")

#: Inputs of a Loop and of its body before what is carried, and outputs of the body.
_BEFORE, _BEFORE_RESULTS = 2, 1


def lift_invariants(plan: Plan, _: Known) -> Plan:
    """The plan in which loops, from the innermost outwards, carry only what may change."""
    inside = once(lambda body: _lifted(body, inside))
    return _lifted(plan, inside)


def _lifted(plan: Plan, inside: Callable[[Plan], Plan]) -> Plan:
    read = {*plan.outputs, *(name for step in plan.steps for name in reads_of(step))}
    steps: list[Step] = []
    for step in plan.steps:
        inner = with_bodies(step, inside)
        invariants = _invariants(inner, read)
        if not invariants:
            steps.append(inner)
            continue
        steps.append(_without(inner, invariants))
        steps.extend(
            standard_step(inner, "Identity", (inner.inputs[_BEFORE + place],), inner.outputs[place])
            for place in invariants
            if _result_of(inner, place) in read
        )
    return plan if steps == list(plan.steps) else rebuilt(plan, steps, plan.constants)


def _result_of(step: Step, place: int) -> str:
    """The name of what a Loop gives of the value that it carries there; "" where nobody asks."""
    return step.outputs[place] if place < len(step.outputs) else ""


def _invariants(step: Step, read: Container[str]) -> list[int]:
    """The places among what a Loop carries of values that its body gives back as they are.

    Where one of its results is read it is a tensor: a Loop carries types of sequences that no other operator takes.
    """
    body = step.subgraphs.get("body")
    if op_type(step) != "Loop" or not isinstance(body, Plan) or not is_compiled(body):
        return []
    carried = step.inputs[_BEFORE:]
    given, results = body.inputs[_BEFORE:], body.outputs[_BEFORE_RESULTS:]
    types = body.output_types[_BEFORE_RESULTS:]
    if len(given) != len(carried) or len(results) < len(carried) or len({*body.inputs}) < len(body.inputs):
        return []  # the kernel says what is wrong
    handed_on = {inner.outputs[0]: inner.inputs[0] for inner in body.steps if op_type(inner) == "Identity"}
    own = {*body.inputs, *body.constants, *(name for inner in body.steps for name in inner.outputs)}
    own.update(*(locals_within(inner) for inner in body.steps))
    places = [
        place
        for place, (outer, name, result) in enumerate(zip(carried, given, results, strict=False))
        if outer
        and (outer == name or outer not in own)
        and _source(result, handed_on) == name
        and (_result_of(step, place) not in read or isinstance(types[place], TensorType))
    ]
    # A loop that computes nothing has to run all the same: it may never end
    return places if _kept(step.outputs, places) else places[1:]


def _source(name: str, handed_on: dict[str, str]) -> str:
    while name in handed_on:
        name = handed_on[name]
    return name


def _without(step: Step, invariants: Sequence[int]) -> Step:
    """The loop with a body that captures the values at these places."""
    body = step.subgraphs["body"]
    assert isinstance(body, Plan)
    new = {body.inputs[_BEFORE + place]: step.inputs[_BEFORE + place] for place in invariants}
    results = [_BEFORE_RESULTS + place for place in invariants]
    lifted = body._replace(
        inputs=_kept(body.inputs, [_BEFORE + place for place in invariants]),
        outputs=tuple([new.get(name, name) for name in _kept(body.outputs, results)]),
        output_types=_kept(body.output_types, results),
        captures=tuple(dict.fromkeys((*body.captures, *new.values()))),
    )
    lifted = rebuilt(lifted, [renamed(inner, new) for inner in body.steps], body.constants)
    outputs = _kept(step.outputs, invariants)
    return step._replace(
        inputs=_kept(step.inputs, [_BEFORE + place for place in invariants]),
        outputs=outputs,
        attributes={**step.attributes, "n_outputs": len(outputs)},
        subgraphs={**step.subgraphs, "body": lifted},
    )


def _kept(items: tuple[T, ...], left_out: Sequence[int]) -> tuple[T, ...]:
    return tuple([item for place, item in enumerate(items) if place not in left_out])

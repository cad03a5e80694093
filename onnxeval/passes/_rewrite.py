"""What the passes share: who reads what, and a plan put together again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeAlias

from onnxeval.dtypes import Tensor
from onnxeval.plan import Plan, RepeatedBody, Step, TypedBody, with_releases
from onnxeval.registry import DECIDED, STANDARD, signature_of
from onnxeval.schema import find_schema, newest_opset
from onnxeval.values import Dimension, TensorType, Value

#: Runs a step on known values; None where it fails or would take too much, then it is left to the run.
Evaluate: TypeAlias = Callable[[Step, Mapping[str, Value]], tuple[Value, ...] | None]


@dataclass(frozen=True, slots=True)
class Known:
    """What passes may rely on beside the plan: ``types`` are exact, those of values of the plan and of its inputs.

    ``declared`` are shapes that all feeds are checked for: sizes of one name are the same. With ``fast_math`` they may
    use kernels that are less exact.
    """

    evaluate: Evaluate
    types: Mapping[str, TensorType] = field(default_factory=dict)
    fast_math: bool = False
    declared: Mapping[str, tuple[Dimension, ...]] = field(default_factory=dict)

    def type_of(self, name: str, constants: Mapping[str, Tensor]) -> TensorType | None:
        """The type and shape that a value is certain to have; None where it is not."""
        if (value := constants.get(name)) is not None:
            return TensorType(value.dtype, value.shape)
        return self.types.get(name)


Pass: TypeAlias = Callable[[Plan, Known], Plan]


def op_type(step: Step) -> str:
    """The operator of the standard's own domain that a step runs; "" for all others."""
    return step.schema.operator if step.schema is not None else ""


def reads_of(step: Step) -> Iterator[str]:
    """Every name a step reads, those that its sub-graphs capture included."""
    for name in step.inputs:
        if name:
            yield name
    for body in step.subgraphs.values():
        yield from body.captures


def kept_names(plan: Plan) -> set[str]:
    """The names that nobody may change: the plan's outputs, and what sub-graphs capture."""
    return {*plan.outputs, *(name for step in plan.steps for body in step.subgraphs.values() for name in body.captures)}


def with_bodies(step: Step, rewrite: Callable[[Plan], Plan]) -> Step:
    """The step with the plans inside it rewritten, but one that is followed step by step, or built at run time."""
    if not step.subgraphs:
        return step
    bodies = {
        name: rewrite(body) if isinstance(body, Plan) and name != "surroundings" else body
        for name, body in step.subgraphs.items()
    }
    is_changed = any(body is not step.subgraphs[name] for name, body in bodies.items())
    return step._replace(subgraphs=bodies) if is_changed else step


def once(rewrite: Callable[[Plan], Plan]) -> Callable[[Plan], Plan]:
    """The rewrite, done once for a body that many steps share, as functions that call functions do."""
    done: dict[Plan, Plan] = {}

    def rewritten(body: Plan) -> Plan:
        if body not in done:
            done[body] = rewrite(body)
        return done[body]

    return rewritten


def count_readers(plan: Plan) -> Counter[str]:
    """How many times each name is read; being an output of the plan counts too."""
    counts = Counter(plan.outputs)
    counts.update(_reads(plan.steps))
    return counts


def _reads(steps: Iterable[Step]) -> Iterator[str]:
    """What `reads_of` gives for each of the steps, and "" for absent inputs, fast."""
    inputs = chain.from_iterable([step.inputs for step in steps])
    bodies = chain.from_iterable([step.subgraphs.values() for step in steps if step.subgraphs])
    return chain(inputs, chain.from_iterable([body.captures for body in bodies]))


def producers_of(steps: Iterable[Step]) -> dict[str, Step]:
    """The step that makes each name."""
    return {name: step for step in steps for name in step.outputs if name}


def standard_step(like: Step, op: str, inputs: tuple[str, ...], output: str, **attributes: Any) -> Step:
    """A step of the newest version of an operator of the standard, in place of ``like`` and with its label."""
    schema = find_schema("", op, newest_opset(""))
    assert schema is not None
    kernel = STANDARD.require(schema.key, schema.section)
    return Step(
        label=like.label,
        kernel=kernel,
        inputs=inputs,
        outputs=(output,),
        attributes=attributes,
        subgraphs={},
        injected=signature_of(kernel).injected - DECIDED,
        schema=schema,
    )


def without_dead(steps: Sequence[Step], needed: Iterable[str]) -> list[Step]:
    """The steps that something needs."""
    wanted = set(needed)
    kept = []
    for step in reversed(steps):
        if any(name in wanted for name in step.outputs):
            wanted.update(reads_of(step))
            kept.append(step)
    return kept[::-1]


def rebuilt(plan: Plan, steps: Sequence[Step], constants: Mapping[str, Tensor]) -> Plan:
    """The plan with other steps and constants: lifetimes anew, and only the constants that are still read."""
    wanted = {*plan.outputs, *_reads(steps)}
    kept = {name: value for name, value in constants.items() if name in wanted}
    return plan._replace(
        constants=MappingProxyType(kept),
        captures=tuple(name for name in plan.captures if name in wanted and name not in kept),
        steps=with_releases(steps, keep={*plan.outputs, *kept}),
    )


def is_compiled(plan: Plan) -> bool:
    """Whether every body within is a plan already, so that its names can change."""
    return all(isinstance(body, Plan) for body in _bodies(plan.steps))


def locals_within(step: Step) -> set[str]:
    """The names that the bodies of a step make, bodies inside them included."""
    names: set[str] = set()
    for body in _bodies([step]):
        if isinstance(body, Plan):
            names.update(body.inputs, body.constants, *(inner.outputs for inner in body.steps))
    return names - {""}


def _bodies(steps: Iterable[Step]) -> set[Plan | TypedBody | RepeatedBody]:
    """The bodies of steps, and those inside them, each once."""
    found: set[Plan | TypedBody | RepeatedBody] = set()
    left = [body for step in steps for body in step.subgraphs.values()]
    while left:
        body = left.pop()
        if body not in found:
            found.add(body)
            if isinstance(body, Plan):
                left.extend(inner for step in body.steps for inner in step.subgraphs.values())
    return found


def renamed(step: Step, new: Mapping[str, str], around: str = "") -> Step:
    """The step on other names, in its bodies too."""
    return step._replace(
        label=f"{around} > {step.label}" if around else step.label,
        inputs=tuple([new.get(name, name) for name in step.inputs]),
        outputs=tuple([new.get(name, name) for name in step.outputs]),
        releases=tuple([new.get(name, name) for name in step.releases]),
        subgraphs={name: _with_captures(body, new) for name, body in step.subgraphs.items()},
    )


def _with_captures(body: Plan | TypedBody | RepeatedBody, new: Mapping[str, str]) -> Plan | TypedBody | RepeatedBody:
    if not isinstance(body, Plan):
        return body
    own = {name: new[name] for name in body.captures if name in new}
    if not own:
        return body
    other = body._replace(
        captures=tuple(dict.fromkeys(own.get(name, name) for name in body.captures)),
        outputs=tuple(own.get(name, name) for name in body.outputs),
    )
    # Two names may be one now, which lives as long as the longer-lived of them
    return rebuilt(other, [renamed(step, own) for step in body.steps], body.constants)

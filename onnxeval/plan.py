"""What runs: an immutable `Plan` of `Step`s, with the lifetimes of their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from onnxeval.dtypes import Tensor
from onnxeval.registry import Kernel
from onnxeval.schema import Schema
from onnxeval.values import Value, ValueType, type_of

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Step(NamedTuple):
    """One node, bound. ``""`` stands for an absent input and for an output that nobody wants.

    A tuple, as a large model has many and those are made fastest; but a step equals itself alone.
    """

    label: str  # "count (Loop-16)": what errors, profiles and traces print
    kernel: Kernel
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    subgraphs: Mapping[str, Plan | TypedBody | RepeatedBody]
    injected: frozenset[str]  # which of rng and allocate the kernel names
    schema: Schema | None  # None for operators outside the standard
    fused: tuple[str, ...] = ()  # operators that a step without a schema does at once, or onnxruntime's that it is
    spelled_out: Callable[[], Step | None] | None = None  # the same step, running the schema's function body instead
    releases: tuple[str, ...] = ()  # values no later step reads

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    # For these two, which every step of a large model takes, `_replace` is too slow

    def releasing(self, names: tuple[str, ...]) -> Step:
        """The step with these releases."""
        return Step._make((*self[:-1], names))

    def running(self, kernel: Kernel) -> Step:
        """The step with this kernel."""
        return Step._make((self.label, kernel, *self[2:]))


class PartFailed(Exception):  # noqa: N818  # what happened
    """One of the nodes that a step was made of failed: the label of that one, its inputs, and what it raised."""

    def __init__(self, label: str, inputs: list[str], cause: Exception) -> None:
        super().__init__(label)
        self.label = label
        self.inputs = inputs
        self.cause = cause


class Plan(NamedTuple):
    """A graph or function, ready to run; it equals itself alone."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    output_types: tuple[ValueType | None, ...]
    constants: Mapping[str, Tensor]
    captures: tuple[str, ...]  # names read from the graph around it
    steps: tuple[Step, ...]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)


@dataclass(slots=True, eq=False)
class TypedBody:
    """A function body that the schema builds from input types: compiled when they are known, once for each."""

    build: Callable[[tuple[ValueType | None, ...]], Plan]
    inputs: tuple[str, ...]
    captures: tuple[str, ...] = ()
    output_types: tuple[ValueType | None, ...] = ()
    plans: dict[tuple[str, ...], Plan] = field(default_factory=dict)

    def plan_for(self, values: Sequence[Value]) -> Plan:
        """The plan for inputs of these values' types."""
        types = tuple(None if value is None else type_of(value) for value in values)
        key = tuple(map(str, types))
        if key not in self.plans:
            self.plans[key] = self.build(types)
        return self.plans[key]


class RepeatedBody(Protocol):
    """A sub-graph that runs by itself, the better the more often it ran before."""

    @property
    def plan(self) -> Plan:
        """Its steps, as they are for all inputs."""

    @property
    def captures(self) -> tuple[str, ...]:
        """Names read from the graph around it."""

    def execute(self, feeds: Mapping[str, Value], captured: Mapping[str, Value], run: Any) -> Mapping[str, Value]:
        """Every output of the plan, by name; ``run`` is the `Run` that it is part of."""


def with_releases(steps: Sequence[Step], keep: Collection[str]) -> tuple[Step, ...]:
    """Let each step release what is read for the last time there, or made there and read nowhere."""
    seen = {"", *keep}
    done = []
    for step in reversed(steps):
        names = (*step.inputs, *_captured(step), *step.outputs) if step.subgraphs else step.inputs + step.outputs
        last = tuple([name for name in names if name not in seen])
        if len(last) > 1:
            last = tuple(dict.fromkeys(last))
        seen.update(last)
        done.append(step.releasing(last) if last != step.releases else step)
    return tuple(done[::-1])


def _captured(step: Step) -> Iterable[str]:
    for body in step.subgraphs.values():
        yield from body.captures

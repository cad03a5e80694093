"""Follow a plan step by step on a tape: run each, and remember what a leaf has a part in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from onnxeval.ops._body import call_function
from onnxeval.ops.training._tape import Tape, Variable, rule_for
from onnxeval.values import Value, ValueType

if TYPE_CHECKING:
    from onnxeval.executor import Body
    from onnxeval.plan import Step

Variables: TypeAlias = tuple[Variable, ...]


class Branch:
    """A sub-graph as a function of variables, like `Body` of values."""

    def __init__(self, tape: Tape, body: Body, captured: Mapping[str, Variable]) -> None:
        self.tape = tape
        self._body = body
        self._captured = captured

    @property
    def output_types(self) -> tuple[ValueType | None, ...]:
        return self._body.output_types

    @property
    def n_inputs(self) -> int:
        return self._body.n_inputs

    def __call__(self, *inputs: Variable) -> Variables:
        plan = self._body.plan_for(*(given.value for given in inputs))
        absent = (self.tape.constant(None),) * (len(plan.inputs) - len(inputs))
        constants = {name: self.tape.constant(value) for name, value in plan.constants.items()}
        known = {
            "": self.tape.constant(None),
            **self._captured,
            **constants,
            **dict(zip(plan.inputs, inputs + absent, strict=True)),
        }
        for step in plan.steps:
            for name, made in zip(step.outputs, _run(self.tape, self._body, step, known), strict=True):
                if name:
                    known[name] = made  # noqa: PERF403  # later steps read this one
            for name in step.releases:
                del known[name]
        return tuple(known[name] for name in plan.outputs)


#: What follows an operator into its sub-graphs: (step, inputs, branches by attribute) -> outputs
Follower: TypeAlias = Callable[["Step", Variables, Mapping[str, Branch]], Variables]

_FOLLOWERS: dict[str, tuple[int, Follower]] = {}

#: Operators whose rules need outputs that the node may not list.
_ALL_OUTPUTS = frozenset({"Dropout"})


def follower(op_type: str, since: int = 1) -> Callable[[Follower], Follower]:
    """Register what follows an operator with sub-graphs, in all its versions from ``since`` on."""

    def register(function: Follower) -> Follower:
        _FOLLOWERS[op_type] = since, function
        return function

    return register


def _follow_call(step: Step, inputs: Variables, branches: Mapping[str, Branch]) -> Variables:
    outputs: Variables = step.kernel(*inputs, **branches)
    return outputs


def _follower_of(step: Step) -> Follower | None:
    if step.kernel is call_function:
        return _follow_call
    if step.schema is None or step.schema.key.op_type not in _FOLLOWERS:
        return None
    since, function = _FOLLOWERS[step.schema.key.op_type]
    return function if step.schema.key.since_version >= since else None


def _spelled_out(step: Step) -> Step | None:
    """The step as a call of its function body, where it has one and no rule."""
    if step.spelled_out is None or step.schema is None or rule_for(step.schema.key) is not None:
        return None
    return step.spelled_out()


def _run(tape: Tape, body: Body, step: Step, known: Mapping[str, Variable]) -> Variables:
    """The outputs of a step, for each that it lists."""
    captures = [name for branch in step.subgraphs.values() for name in branch.captures]
    sources = [known[name] for name in (*step.inputs, *captures)]
    if all(given.maker is None for given in sources):
        return tuple(map(tape.constant, body.run_step(step, _values(step, known))))
    if (follow := _follower_of(step)) is not None:
        return _followed(tape, body, step, follow, known)
    if (call := _spelled_out(step)) is not None:
        return _followed(tape, body, call, _follow_call, known)
    outputs = step.outputs
    if step.schema is not None and step.schema.key.op_type in _ALL_OUTPUTS:
        outputs += ("",) * (len(step.schema.outputs) - len(outputs))
    results = body.run_step(step._replace(outputs=outputs), _values(step, known))
    key = None if step.schema is None else step.schema.key
    present = (None if given.value is None else given for given in sources)
    return tape.record(key, step.label, present, step.attributes, results)[: len(step.outputs)]


def _values(step: Step, known: Mapping[str, Variable]) -> dict[str, Value]:
    """What a step reads."""
    captures = [name for branch in step.subgraphs.values() for name in branch.captures]
    return {name: known[name].value for name in (*step.inputs, *captures)}


def _followed(tape: Tape, body: Body, step: Step, follow: Follower, known: Mapping[str, Variable]) -> Variables:
    """The step with a kernel that follows: types are checked and errors located as for any other."""
    made: list[Variable] = []

    def kernel(*_: Value, **given: Any) -> tuple[Value, ...]:
        branches = {
            name: Branch(tape, given[name], {capture: known[capture] for capture in plan.captures})
            for name, plan in step.subgraphs.items()
        }
        made.extend(follow(step, tuple(known[name] for name in step.inputs), branches))
        return tuple(each.value for each in made)

    count = len(body.run_step(step._replace(kernel=kernel), _values(step, known)))
    return (*made[:count], *(tape.constant(None) for _ in range(count - len(made))))

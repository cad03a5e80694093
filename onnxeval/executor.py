"""Run a plan: the loop, and the one place where errors gain a location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxeval.errors import NodeError, OnnxEvalError, ResourceLimitError
from onnxeval.fitting import check_outputs, check_types, type_key
from onnxeval.limits import Limits, Run
from onnxeval.observe import StepRunner
from onnxeval.plan import NOTHING, PartFailed, Plan, RepeatedBody, Step, TypedBody
from onnxeval.values import Sequence, Value, ValueType, describe

_ndarray = np.ndarray


def execute(
    plan: Plan,
    feeds: Mapping[str, Value],
    run: Run,
    captured: Mapping[str, Value] = NOTHING,
    perform: StepRunner | None = None,
) -> dict[str, Value]:
    """Every output of the plan, by name, in its order. ``perform`` runs a step, where it is not the run's own way."""
    run.count(plan)
    perform = perform or run.observe(run_step)
    values = {"": None, **captured, **plan.constants, **feeds}
    for step in plan.steps:
        for name, result in zip(step.outputs, perform(step, values, run), strict=True):
            if name:
                values[name] = result  # noqa: PERF403  # not a new dictionary: later steps read this one
        for name in step.releases:
            del values[name]
    return {name: values[name] for name in plan.outputs}


#: What a step that runs at compile time may take.
_COMPILE_LIMITS = Limits(memory=1 << 26, steps=100_000)


def evaluate(step: Step, values: Mapping[str, Value]) -> tuple[Value, ...] | None:
    """The outputs of a step at compile time; None where it fails or would take more than a constant is worth."""
    try:
        with np.errstate(all="ignore"):
            return run_step(step, {"": None, **values}, Run(_COMPILE_LIMITS))
    except OnnxEvalError:
        return None


class Body:
    """A sub-graph or function as its kernel sees it: a function of its inputs that returns a tuple.

    A kernel that follows the steps one by one asks for the plan with `plan_for`, starts from ``captured`` and calls
    `run_step`.
    """

    __slots__ = ("_plan", "_repeated", "_run", "captured")

    def __init__(self, body: Plan | TypedBody | RepeatedBody, values: Mapping[str, Value], run: Run) -> None:
        self._repeated = None if isinstance(body, Plan | TypedBody) else body
        self._plan = body if isinstance(body, Plan | TypedBody) else body.plan
        self.captured = {name: values[name] for name in body.captures}
        self._run = run

    @property
    def output_types(self) -> tuple[ValueType | None, ...]:
        """The declared types of the outputs, None where there is no declaration."""
        return self._plan.output_types

    @property
    def n_inputs(self) -> int:
        return len(self._plan.inputs)

    def plan_for(self, *inputs: Value) -> Plan:
        """The plan for inputs of these values' types, accounted for as one pass over it."""
        plan = self._plan_for(inputs)
        self._run.count(plan)
        return plan

    def run_step(self, step: Step, values: Mapping[str, Value]) -> tuple[Value, ...]:
        """The outputs of one step of the plan."""
        return self._run.observe(run_step)(step, values, self._run)

    def __call__(self, *inputs: Value) -> tuple[Value, ...]:
        plan = self._plan_for(inputs)
        if len(inputs) > len(plan.inputs):
            raise ValueError(f"the sub-graph has {len(plan.inputs)} inputs, {len(inputs)} are given")
        absent = (None,) * (len(plan.inputs) - len(inputs))
        feeds = dict(zip(plan.inputs, inputs + absent, strict=True))
        if self._repeated is None:
            results: Mapping[str, Value] = execute(plan, feeds, self._run, self.captured)
        else:
            results = self._repeated.execute(feeds, self.captured, self._run)
        return tuple([results[name] for name in plan.outputs])

    def _plan_for(self, inputs: tuple[Value, ...]) -> Plan:
        return self._plan.plan_for(inputs) if isinstance(self._plan, TypedBody) else self._plan


def run_step(step: Step, values: Mapping[str, Value], run: Run) -> tuple[Value, ...]:
    """The outputs of one step. What its kernel raises becomes a NodeError that says where."""
    inputs = [values[name] for name in step.inputs]
    try:
        if step.schema is not None:
            key = tuple([x.dtype if type(x) is _ndarray else type_key(x) for x in inputs])
            if key not in step.schema.accepted:
                check_types(step.schema, key)
        if step.subgraphs or step.injected:
            results = step.kernel(*inputs, **step.attributes, **_supplied(step, values, run))
        else:
            results = step.kernel(*inputs, **step.attributes)
        if type(results) is _ndarray and len(step.outputs) == 1:
            outputs: tuple[Value, ...] = (results,)
        else:
            outputs = as_outputs(step, results)
        if step.schema is not None and step.schema.chooses_types:
            check_outputs(step.schema, tuple([type_key(value) for value in outputs]))
        return outputs
    except Exception as error:
        raise located(error, step, inputs) from cause_of(error)
    except BaseException as stop:  # from outside, as an interrupt
        stop.add_note(step.label)
        raise


def located(error: Exception, step: Step, inputs: list[Value]) -> OnnxEvalError:
    """What a step's kernel raised, with the place where it did."""
    match error:
        case PartFailed():
            return NodeError((error.label,), error.inputs, error.cause)
        case NodeError():
            return NodeError((step.label, *error.path), error.inputs, error.cause)
        case MemoryError():
            return ResourceLimitError(f"{step.label}: not enough memory: {error}")
        case OnnxEvalError():
            return error.located(step.label)
        case _:
            return NodeError((step.label,), _described(step, inputs), error)


def cause_of(error: Exception) -> BaseException | None:
    """What lies behind what a step's kernel raised."""
    if isinstance(error, PartFailed | NodeError):
        return error.cause
    return error.__cause__ if isinstance(error, OnnxEvalError) else error


def _supplied(step: Step, values: Mapping[str, Value], run: Run) -> dict[str, Any]:
    supplied: dict[str, Any] = {name: Body(plan, values, run) for name, plan in step.subgraphs.items()}
    for name in step.injected:
        supplied[name] = getattr(run, name)
    return supplied


def as_outputs(step: Step, results: Any) -> tuple[Value, ...]:
    """As many values as the node lists outputs: NumPy scalars become arrays of rank 0."""
    several = results if isinstance(results, tuple) else (results,)
    wanted = step.outputs
    if len(several) < len(wanted) and any(wanted[len(several) :]):
        raise ValueError(f"it gave {len(several)} outputs, the node lists {len(wanted)}")
    padded = several[: len(wanted)] + (None,) * (len(wanted) - len(several))
    return tuple([x if type(x) is _ndarray else _as_value(x) for x in padded])


def _as_value(result: Any) -> Value:
    if isinstance(result, np.generic):
        return np.asarray(result)
    if isinstance(result, str):
        return np.array(result, object)
    if type(result) is list:
        return Sequence(result)
    return result


def _described(step: Step, inputs: list[Value]) -> list[str]:
    return [f"{name} {describe(value)}" for name, value in zip(step.inputs, inputs, strict=True) if name]

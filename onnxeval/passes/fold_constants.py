"""Steps whose inputs are all constants run once, when the model is compiled, inside sub-graphs too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes._rewrite import Evaluate, Known, once, op_type, reads_of, rebuilt, with_bodies
from onnxeval.plan import NOTHING, Plan, Step
from onnxeval.values import Value

#: Bytes that the folded constants of a model may take together. Weights that are stored narrow and widened in the
#: model, as quantised ones are, would take many times what they do.
ALLOWANCE = 1 << 27


def fold_constants(plan: Plan, known: Known) -> Plan:
    """The plan without the steps that depend on nothing fed; what cannot be computed now is left to the run."""
    allowance = _Allowance(ALLOWANCE)
    in_function = once(lambda body: _folded(body, known.evaluate, NOTHING, allowance, in_function))
    return _folded(plan, known.evaluate, NOTHING, allowance, in_function)


class _Allowance:
    """How many bytes folded constants may still take. A step that reads more than that is not tried."""

    def __init__(self, left: int) -> None:
        self.left = left

    def covers(self, values: Iterable[Value]) -> bool:
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray)) <= self.left

    def spend(self, value: Tensor, inputs: Iterable[Tensor]) -> int:
        """Account for a result, and say what it took: a view of an input takes nothing."""
        taken = 0 if any(np.may_share_memory(value, other) for other in inputs) else value.nbytes
        self.left -= taken
        return taken


def _folded(
    plan: Plan,
    evaluate: Evaluate,
    around: Mapping[str, Tensor],
    allowance: _Allowance,
    in_function: Callable[[Plan], Plan],
) -> Plan:
    """``around`` are constants that the plan may capture, ``in_function`` is for bodies that capture nothing."""

    def inside(body: Plan) -> Plan:
        return _folded(body, evaluate, known, allowance, in_function) if body.captures else in_function(body)

    known = {name: around[name] for name in plan.captures if name in around}
    known.update(plan.constants)
    taken: dict[str, int] = {}
    needed: set[str] = set()  # by steps that are left to the run
    steps = []
    for step in plan.steps:
        if (written := _written(step)) is not None:
            known[step.outputs[0]] = written
            continue
        if not step.subgraphs and [name for name in step.inputs if name and name not in known]:
            needed.update(step.inputs)
            steps.append(step)
            continue
        inputs = {name: known[name] for name in reads_of(step)} if _is_constant(step, known) else None
        results = evaluate(step, inputs) if inputs is not None and allowance.covers(inputs.values()) else None
        if inputs is not None and results is not None and _is_kept(results, allowance):
            made = {name: value for name, value in zip(step.outputs, results, strict=True) if name}
            known.update({name: _frozen(value) for name, value in made.items()})
            taken.update({name: allowance.spend(value, inputs.values()) for name, value in made.items()})
            for name in (taken.keys() & set(step.releases)) - needed:
                dead = known.pop(name)
                heir = next((other for other, value in made.items() if np.may_share_memory(value, dead)), None)
                if heir is None:
                    allowance.left += taken.pop(name)
                elif heir != name:
                    taken[heir] += taken.pop(name)
        else:
            needed.update(reads_of(step))
            steps.append(with_bodies(step, inside))
    is_changed = len(known) > len(plan.constants) or steps != list(plan.steps)
    return rebuilt(plan, steps, known) if is_changed else plan


def _written(step: Step) -> Tensor | None:
    """The tensor that a Constant holds as it is: there are many of these, and nothing is to be computed."""
    if op_type(step) != "Constant":
        return None
    given = [value for value in step.attributes.values() if value is not None]
    return given[0] if len(given) == 1 and isinstance(given[0], np.ndarray) else None


def _is_constant(step: Step, known: Mapping[str, Tensor]) -> bool:
    """Whether a step gives the same every time: random ones do not, operators outside the standard may not."""
    return step.schema is not None and "rng" not in step.injected and all(name in known for name in reads_of(step))


def _is_kept(results: Sequence[Value], allowance: _Allowance) -> bool:
    tensors_alone = all(isinstance(value, np.ndarray) for value in results if value is not None)
    return tensors_alone and allowance.covers(results)


def _frozen(value: Tensor) -> Tensor:
    """A view that nobody may write to: constants outlive the run."""
    view = value.view()
    view.flags.writeable = False
    return view

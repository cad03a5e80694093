"""Steps whose inputs are all constants run once, when the model is compiled, inside sub-graphs too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes._rewrite import Evaluate, reads_of, rebuilt
from onnxeval.plan import NOTHING, Plan, Step


def fold_constants(plan: Plan, evaluate: Evaluate) -> Plan:
    """The plan without the steps that depend on nothing fed; what cannot be computed now is left to the run."""
    return _folded(plan, evaluate, NOTHING)


def _folded(plan: Plan, evaluate: Evaluate, around: Mapping[str, Tensor]) -> Plan:
    known = {name: around[name] for name in plan.captures if name in around}
    known.update(plan.constants)
    steps = []
    for step in plan.steps:
        results = evaluate(step, known) if _is_constant(step, known) else None
        if results is not None and all(isinstance(value, np.ndarray) for value in results if value is not None):
            for name, value in zip(step.outputs, results, strict=True):
                if name:
                    known[name] = _frozen(value)
        else:
            steps.append(_with_folded_bodies(step, evaluate, known))
    return rebuilt(plan, steps, known)


def _is_constant(step: Step, known: Mapping[str, Tensor]) -> bool:
    """Whether a step gives the same every time: random ones do not, operators outside the standard may not."""
    return step.schema is not None and "rng" not in step.injected and all(name in known for name in reads_of(step))


def _with_folded_bodies(step: Step, evaluate: Evaluate, known: Mapping[str, Tensor]) -> Step:
    """Sub-graphs see the constants around them. A plan that is followed step by step stays as it is."""
    bodies = {
        name: _folded(body, evaluate, known) if isinstance(body, Plan) and name != "surroundings" else body
        for name, body in step.subgraphs.items()
    }
    return replace(step, subgraphs=bodies) if bodies else step


def _frozen(value: Tensor) -> Tensor:
    """A view that nobody may write to: constants outlive the run."""
    view = value.view()
    view.flags.writeable = False
    return view

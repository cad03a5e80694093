"""Steps that compute the same from the same run once: common sub-expressions."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from onnxeval.passes._rewrite import Known, count_readers, kept_names, rebuilt
from onnxeval.plan import Plan, Step

#: Constants of so few elements are compared by what they hold.
_FEW = 16


def share_results(plan: Plan, _: Known) -> Plan:
    """The plan whose later readers read the result of the first of like steps.

    A plan's output and a captured name keep their step, and so do random steps and operators outside the standard.
    """
    needed = kept_names(plan)
    names = _like_constants(plan)
    readers = count_readers(plan)
    for name, like in names.items():
        readers[like] += readers[name]
    seen: dict[Hashable, Step] = {}
    steps = []
    for step in plan.steps:
        inputs = tuple([names.get(name, name) for name in step.inputs]) if names else step.inputs
        step = step._replace(inputs=inputs) if inputs != step.inputs else step
        key = _key(step) if [name for name in inputs if readers[name] > 1] else None
        first = seen.setdefault(key, step) if key is not None else step
        if first is step or not _can_serve(first, step, needed):
            steps.append(step)
            continue
        for name, other in zip(step.outputs, first.outputs, strict=True):
            if name:
                names[name] = other
                readers[other] += readers[name]
    return rebuilt(plan, steps, plan.constants) if names else plan


def _key(step: Step) -> Hashable | None:
    """What decides the results of a step; None where more than its inputs does, or an attribute is a tensor."""
    if step.schema is None or step.subgraphs or "rng" in step.injected:
        return None
    attributes = tuple(step.attributes.items())
    key = (step.kernel, step.schema, step.inputs, attributes, str(attributes))  # 0.0 equals -0.0
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _can_serve(first: Step, step: Step, needed: set[str]) -> bool:
    return len(first.outputs) == len(step.outputs) and all(
        not name or (other and name not in needed) for name, other in zip(step.outputs, first.outputs, strict=True)
    )


def _like_constants(plan: Plan) -> dict[str, str]:
    """The first constant that holds the same, by name of the others: only small ones."""
    first: dict[Hashable, str] = {}
    names = {}
    for name, value in plan.constants.items():
        if (
            isinstance(value, np.ndarray)
            and value.size <= _FEW
            and not value.dtype.hasobject
            and name not in plan.outputs
        ):
            like = first.setdefault((value.dtype, value.shape, value.tobytes()), name)
            if like != name:
                names[name] = like
    return names

"""What is decided by the types and shapes of inputs alone becomes constants of a plan for these."""

from __future__ import annotations

from collections.abc import Mapping

from onnxeval.dtypes import Tensor
from onnxeval.passes._rewrite import Known, rebuilt, without_dead
from onnxeval.passes.drop_identities import drop_identities
from onnxeval.passes.inline_branches import inline_branches
from onnxeval.passes.merge_movements import merge_movements
from onnxeval.plan import Plan


def specialise(plan: Plan, known: Known, values: Mapping[str, Tensor]) -> Plan:
    """The plan, optimised before, in which ``values`` are constants and ``known.types`` hold.

    Kernels, chains and packed weights are those of the plan, and where nothing is won it is the plan itself.
    """
    made = {name for step in plan.steps for name in step.outputs}.difference(plan.outputs)
    constants = {**plan.constants, **{name: value for name, value in values.items() if name in made}}
    steps = [step for step in plan.steps if not all(name in constants for name in step.outputs if name)]
    special = rebuilt(plan, steps, constants)
    for rewrite in (inline_branches, drop_identities, merge_movements):
        special = rewrite(special, known)
    steps = without_dead(special.steps, special.outputs)
    return rebuilt(special, steps, special.constants) if steps != list(plan.steps) else plan

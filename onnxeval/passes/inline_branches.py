"""An If whose condition is a constant becomes the steps of the branch that it takes."""

from __future__ import annotations

from onnxeval.passes._rewrite import Known, is_compiled, locals_within, op_type, rebuilt, renamed, standard_step
from onnxeval.passes.fold_constants import fold_constants
from onnxeval.plan import Plan, Step
from onnxeval.schema import slot_at
from onnxeval.values import type_string


def inline_branches(plan: Plan, known: Known) -> Plan:
    """The plan in which such an If is the steps of its branch, and what these make constant is folded."""
    while True:
        inlined = _inlined(plan)
        if inlined is plan:
            return plan
        plan = fold_constants(inlined, known)


def _inlined(plan: Plan) -> Plan:
    if not any(_branch(step, plan) is not None for step in plan.steps if step.subgraphs):
        return plan
    taken = {*plan.inputs, *plan.constants, *plan.captures, *(name for step in plan.steps for name in step.outputs)}
    constants = dict(plan.constants)
    steps: list[Step] = []
    for step in plan.steps:
        branch = _branch(step, plan)
        if branch is None:
            steps.append(step)
            continue
        local = {*branch.constants, *(name for inner in branch.steps for name in inner.outputs if name)}
        new = {name: _free_name(f"{name} in {step.label}", taken) for name in local}
        made = {name for inner in branch.steps for name in inner.outputs}
        given = dict(zip(branch.outputs, step.outputs, strict=False))
        new.update({name: given[name] for name in made & given.keys() if given[name]})
        if any(locals_within(inner) & {*new.values()} for inner in branch.steps):
            steps.append(step)
            continue
        taken.update(new.values())
        constants.update({new[name]: value for name, value in branch.constants.items()})
        steps.extend(renamed(inner, new, step.label) for inner in branch.steps)
        steps.extend(
            standard_step(step, "Identity", (new.get(source, source),), name)
            for source, name in zip(branch.outputs, step.outputs, strict=False)
            if name and new.get(source) != name
        )
    return (
        rebuilt(plan, steps, constants) if len(constants) > len(plan.constants) or steps != list(plan.steps) else plan
    )


def _branch(step: Step, plan: Plan) -> Plan | None:
    """The branch that a step takes every time; None where that is not known, or names inside it cannot change."""
    constants = plan.constants
    if op_type(step) != "If" or step.inputs[0] not in constants or constants[step.inputs[0]].size != 1:
        return None
    branch = step.subgraphs["then_branch" if constants[step.inputs[0]].item() else "else_branch"]
    if not isinstance(branch, Plan) or not is_compiled(branch) or not _may_be_given(branch, step, plan):
        return None
    return branch


def _may_be_given(branch: Plan, step: Step, plan: Plan) -> bool:
    """Whether an If of this version may give what is declared of its results: else the run says that it may not."""
    slot = None if step.schema is None else slot_at(step.schema.outputs, 0)
    results = dict(zip(plan.outputs, plan.output_types, strict=True))
    declared = [*branch.output_types, *(results.get(name) for name in step.outputs)]
    return slot is not None and all("unknown" in name or name in slot.allowed for name in map(type_string, declared))


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name

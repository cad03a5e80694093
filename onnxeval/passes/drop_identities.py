"""Steps that hand on their first input as it is are left out: Identity, and Dropout outside training."""

from __future__ import annotations

from onnxeval.passes._rewrite import Known, kept_names, op_type, rebuilt
from onnxeval.plan import Plan, Step


def drop_identities(plan: Plan, _: Known) -> Plan:
    """The plan whose readers of such a step read its input. A plan's output and a captured name keep their step."""
    needed = kept_names(plan)
    names: dict[str, str] = {}
    steps = []
    for step in plan.steps:
        inputs = tuple([names.get(name, name) for name in step.inputs]) if names else step.inputs
        if _hands_on(step) and step.outputs[0] not in needed and not any(step.outputs[1:]):
            names[step.outputs[0]] = inputs[0]
        else:
            steps.append(step._replace(inputs=inputs) if inputs != step.inputs else step)
    return rebuilt(plan, steps, plan.constants) if names else plan


def _hands_on(step: Step) -> bool:
    match op_type(step):
        case "Identity":
            return True
        case "Dropout":
            # ratio and training_mode are inputs since 12; without them, and from 7 to 10 always, this is inference
            return bool(step.attributes.get("is_test", 1)) and not any(step.inputs[2:])
        case _:
            return False

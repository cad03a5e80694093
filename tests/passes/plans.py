"""What a plan runs, whatever steps share a chain."""

from onnxeval.plan import Plan


def operators(plan: Plan) -> list[str]:
    """The operators in order, those inside steps of several too."""
    return [name for step in plan.steps for name in step.fused or (step.schema.key.op_type,)]

"""What a plan runs, whatever steps share a chain."""

from onnxeval.passes.fuse_chains import Chain
from onnxeval.plan import Plan


def operators(plan: Plan) -> list[str]:
    """The operators in order, those inside chains too; the kernel's name where a step is none of the standard's."""
    names = []
    for step in plan.steps:
        if isinstance(step.kernel, Chain):
            names += [part.schema.key.op_type for part in step.kernel.parts]
        else:
            names.append(step.schema.key.op_type if step.schema else step.kernel.__name__)
    return names

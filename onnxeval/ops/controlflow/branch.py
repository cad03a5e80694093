"""If: one of two sub-graphs.

Version 1 wants the branches' outputs of one shape, 11 gave that up. It is not asked for in any version: only one branch
runs. Since 13 the outputs may be sequences, since 16 optionals.
"""

from __future__ import annotations

from onnxeval.dtypes import Tensor
from onnxeval.ops._body import Body
from onnxeval.ops.controlflow._results import same_type
from onnxeval.registry import op
from onnxeval.values import Value


@op("If", versions=(1, 11, 13, 16, 19, 21, 23, 24, 25))
def if_(condition: Tensor, *, then_branch: Body, else_branch: Body, n_outputs: int) -> tuple[Value, ...]:
    """What ``then_branch`` gives where the one element of ``condition`` is true, else what ``else_branch`` gives.

    Raises ValueError where the branches differ in the number or the declared types of their outputs. Source: If-25.
    """
    if condition.size != 1:
        raise ValueError(f"the condition has shape {list(condition.shape)}, expected a single element")
    then_types, else_types = then_branch.output_types, else_branch.output_types
    if not len(then_types) == len(else_types) == n_outputs:
        raise ValueError(
            f"the branches have {len(then_types)} and {len(else_types)} outputs, the node lists {n_outputs}"
        )
    for place, (one, other) in enumerate(zip(then_types, else_types, strict=True)):
        if not same_type(one, other):
            raise ValueError(f"output {place} is {one} from then_branch and {other} from else_branch")
    return then_branch() if condition.item() else else_branch()

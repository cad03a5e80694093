"""What kernels make of constant inputs and attributes alone is made once, when the model is compiled.

Weights of quantised layers become the floats that they are multiplied as, trees become tables. It comes late: no other
pass knows what a prepared step holds, and compiled kernels pack what they need of the constants themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes._rewrite import Known, once, with_bodies
from onnxeval.plan import Plan, Step
from onnxeval.registry import preparation_of, signature_of

#: Elements of constants that are prepared in one model, as most of them are kept twice then.
ALLOWANCE = 1 << 26


def prepare(plan: Plan, _: Known) -> Plan:
    """The plan whose steps hold what their kernels prepare."""
    allowance = _Allowance(ALLOWANCE)

    def prepared(plan: Plan) -> Plan:
        steps = [with_bodies(_with_prepared(step, plan.constants, allowance), inside) for step in plan.steps]
        return plan._replace(steps=tuple(steps))

    inside = once(prepared)
    return prepared(plan)


class _Allowance:
    """How many elements may still be prepared."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, elements: int) -> bool:
        """Whether there are so many left; they are taken."""
        if elements > self.left:
            return False
        self.left -= elements
        return True


def _with_prepared(step: Step, constants: Mapping[str, Tensor], allowance: _Allowance) -> Step:
    make = preparation_of(step.kernel)
    if make is None:
        return step
    inputs = dict(zip(signature_of(step.kernel).positional, step.inputs, strict=False))
    wanted: dict[str, Any] = {}
    for name in signature_of(make).positional:
        value = inputs.get(name, "") if name not in step.attributes else None
        if value and value not in constants:
            return step
        wanted[name] = step.attributes[name] if name in step.attributes else constants.get(value or "")
    if not allowance.spend(sum(value.size for value in wanted.values() if isinstance(value, np.ndarray))):
        return step
    try:
        with np.errstate(all="ignore"):
            made = make(**wanted)
    except Exception:  # whatever is wrong with the constants, the run says it in its place
        return step
    return step._replace(attributes={**step.attributes, "prepared": made})

"""Element-wise steps write into an input that dies with them, where that input is nobody else's memory.

A name that dies is not enough: movement operators hand on views, feeds and constants belong to others. So the
input must come from a step that always makes memory of its own, and its other readers must too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes._rewrite import Known, op_type, reads_of
from onnxeval.plan import Plan, Step
from onnxeval.registry import STANDARD, Kernel
from onnxeval.schema import Schema

#: Operators whose kernels never return a view of an input, nor of anything they keep.
FRESH = frozenset(
    {
        "Abs",
        "Add",
        "BatchNormalization",
        "Conv",
        "ConvTranspose",
        "Div",
        "Erf",
        "Exp",
        "Gelu",
        "Gemm",
        "HardSigmoid",
        "HardSwish",
        "InstanceNormalization",
        "LRN",
        "LayerNormalization",
        "Log",
        "MatMul",
        "Mul",
        "Neg",
        "Pow",
        "Reciprocal",
        "Relu",
        "Sigmoid",
        "Softmax",
        "Sqrt",
        "Sub",
        "Tanh",
    }
)

#: Smaller arrays are cheaper to allocate than to ask.
_LARGE = 1 << 15


def reuse_buffers(plan: Plan, _: Known) -> Plan:
    """The plan whose element-wise steps reuse a dying input's memory; the kernel decides at run time."""
    lending: dict[str, bool] = {}  # name -> whether every reader so far makes memory of its own
    outputs = set(plan.outputs)
    steps = []
    for step in plan.steps:
        operator = op_type(step)
        fresh = operator in FRESH
        if operator in _IN_PLACE:
            step = _in_place(step, lending)
        for name in reads_of(step):
            lending[name] = fresh and lending.get(name, False)
        for name in step.outputs:
            lending[name] = fresh and name not in outputs
        steps.append(step)
    return plan._replace(steps=tuple(steps))


def _in_place(step: Step, lending: Mapping[str, bool]) -> Step:
    """The step that may write into the first of its inputs that dies with it and is lent."""
    for place, name in enumerate(step.inputs[:2]):
        if name in step.releases and lending.get(name):
            return step.running(in_place(step, place))
    return step


def in_place(step: Step, place: int) -> Kernel:
    """The kernel that may write into the input at a place, the first or the second; the step's own where none can."""
    if place > 1 or step.schema is None or step.schema.operator not in _IN_PLACE:
        return step.kernel
    return _writing(step.kernel, step.schema, place)


@cache
def _writing(plain: Kernel, schema: Schema, place: int) -> Kernel:
    oldest, make = _IN_PLACE[schema.operator]
    # A compiled kernel wins more by itself
    can = schema.key.since_version >= oldest and plain is STANDARD.get(schema.key)
    return make(plain, place) if can else plain


def _is_large(x: Tensor) -> bool:
    return x.nbytes >= _LARGE and x.dtype.kind == "f" and x.flags.writeable


def _two(ufunc: Any, plain: Kernel, place: int) -> Kernel:
    def kernel(a: Tensor, b: Tensor) -> Tensor:
        target = b if place else a
        if _is_large(target):
            try:
                return ufunc(a, b, out=target)  # type: ignore[no-any-return]  # a ufunc's result is its out
            except ValueError:  # it does not broadcast into the target
                pass
        return plain(a, b)  # type: ignore[no-any-return]  # kernels have no one type

    return kernel


def _one(ufunc: Any, plain: Kernel, place: int) -> Kernel:
    def kernel(x: Tensor) -> Tensor:
        return ufunc(x, out=x) if place == 0 and _is_large(x) else plain(x)  # type: ignore[no-any-return]  # as above

    return kernel


def _relu(plain: Kernel, place: int) -> Kernel:
    return _one(lambda x, out: np.maximum(x, x.dtype.type(0), out=out), plain, place)


def _clip(plain: Kernel, place: int) -> Kernel:
    def kernel(x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
        bounds = [(np.maximum, low), (np.minimum, high)]
        if place or not _is_large(x) or any(b is not None and (b.ndim or np.isnan(b)) for _, b in bounds):
            return plain(x, low, high)  # type: ignore[no-any-return]  # kernels have no one type
        for ufunc, bound in bounds:
            if bound is not None:
                ufunc(x, bound, out=x)
        return x

    return kernel


#: Operator -> the oldest version that means this, and what makes its kernel from the plain one and the dying place.
_IN_PLACE: dict[str, tuple[int, Callable[[Kernel, int], Kernel]]] = {
    "Add": (7, partial(_two, np.add)),
    "Sub": (7, partial(_two, np.subtract)),
    "Mul": (7, partial(_two, np.multiply)),
    "Div": (7, partial(_two, np.divide)),
    "Relu": (1, _relu),
    "Clip": (11, _clip),
    "Exp": (1, partial(_one, np.exp)),
    "Sqrt": (1, partial(_one, np.sqrt)),
    "Tanh": (1, partial(_one, np.tanh)),
    "Neg": (1, partial(_one, np.negative)),
}

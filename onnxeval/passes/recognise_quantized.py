"""Operators between DequantizeLinear and QuantizeLinear become those that compute with the integers themselves.

    QuantizeLinear(Conv(DequantizeLinear(x), DequantizeLinear(w), DequantizeLinear(b)))    is    QLinearConv(x, w, b)

The sums of products are exact then. What is quantised differs from what floats give by no more than their rounding: by
one step, where a result is next to halfway between two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from onnxeval.dtypes import Tensor, integer_range
from onnxeval.ops.contrib.dynamic_quantize import matmul_integer_to_float
from onnxeval.passes._rewrite import Known, count_readers, op_type, producers_of, rebuilt, standard_step, without_dead
from onnxeval.plan import Plan, Step
from onnxeval.registry import STANDARD, Kernel, OpKey

_EIGHT_BITS = (np.dtype(np.int8), np.dtype(np.uint8))

#: Operators that move elements and change none, or choose among them, and the version from which they take 8 bits.
_MOVEMENTS = {
    "Expand": 8,
    "Flatten": 9,
    "Gather": 1,
    "MaxPool": 12,
    "Reshape": 5,
    "Slice": 1,
    "Squeeze": 1,
    "Transpose": 1,
    "Unsqueeze": 1,
}
_JOINS = {"Add": "QLinearAdd", "Mul": "QLinearMul"}


@dataclass(frozen=True, slots=True)
class _Codes:
    """Integers that a value stands for, and the constants that say how."""

    name: str
    scale_name: str
    zero_name: str
    scale: Tensor
    zero: Tensor | None
    axis: int

    @property
    def inputs(self) -> tuple[str, str, str]:
        return self.name, self.scale_name, self.zero_name

    @property
    def is_whole(self) -> bool:
        """Whether one scale holds for all of it, and a zero point of 8 bits is given."""
        return self.scale.size == 1 and self.zero is not None and self.zero.dtype in _EIGHT_BITS


class _Graph:
    """A plan by names."""

    def __init__(self, plan: Plan, known: Known) -> None:
        self.constants: dict[str, Tensor] = dict(plan.constants)
        self.written: set[int] = set()  # steps that are constants
        for step in plan.steps:
            if op_type(step) == "Constant" and (values := known.evaluate(step, {})) is not None:
                (value,) = values
                if isinstance(value, np.ndarray):
                    self.constants[step.outputs[0]] = value
                    self.written.add(id(step))
        self.producers = producers_of(plan.steps)
        self.readers: Counter[str] = count_readers(plan)
        self.followers: dict[str, Step] = {name: step for step in plan.steps for name in step.inputs if name}
        self.taken = {name for step in plan.steps for name in (*step.inputs, *step.outputs)} | {*plan.constants}

    def codes_of(self, name: str) -> _Codes | None:
        """What stands behind a value that DequantizeLinear makes with constant scales."""
        step = self.producers.get(name)
        return self._codes(step, step.inputs[0]) if step is not None and op_type(step) == "DequantizeLinear" else None

    def codes_made(self, step: Step) -> _Codes | None:
        """What a QuantizeLinear with one constant scale makes."""
        codes = self._codes(step, step.outputs[0]) if op_type(step) == "QuantizeLinear" else None
        return codes if codes is not None and codes.is_whole else None

    def _codes(self, step: Step, name: str) -> _Codes | None:
        given = step.attributes
        scale_name, zero_name = (*step.inputs[1:], "")[:2]
        scale, zero = self.constants.get(scale_name), self.constants.get(zero_name)
        if scale is None or scale.dtype != np.float32 or scale.ndim > 1 or (zero_name and zero is None):
            return None
        if given.get("block_size") or given.get("precision") or not (np.isfinite(scale).all() and (scale > 0).all()):
            return None
        if given.get("output_dtype") and op_type(step) == "DequantizeLinear":
            return None
        return _Codes(name, scale_name, zero_name, scale, zero, given.get("axis", 1))

    def only_reader(self, step: Step) -> Step | None:
        """The step that alone reads the only output of another."""
        (name,) = step.outputs if len(step.outputs) == 1 else ("",)
        return self.followers.get(name) if name and self.readers[name] == 1 else None

    def add(self, name: str, value: Tensor) -> str:
        """The name of a new constant."""
        while name in self.taken:
            name += "'"
        self.taken.add(name)
        value.flags.writeable = False
        self.constants[name] = value
        return name


#: Makes the step of the integers, for the result in these codes; None where it is not one.
_Build = Callable[[_Graph, Step, _Codes], Step | None]


def recognise_quantized(plan: Plan, known: Known) -> Plan:
    """The plan with operators of integers, where all scales and zero points are constant and nobody looks between."""
    if not any(op_type(step) == "DequantizeLinear" for step in plan.steps):
        return plan
    graph = _Graph(plan, known)
    made: dict[int, tuple[Step, ...]] = {}  # in the place of a step
    for step in plan.steps:
        build = _BUILDERS.get(op_type(step))
        if build is None or step.subgraphs:
            continue
        end = graph.only_reader(step)
        parts = [step]
        if end is not None and op_type(end) == "Relu":
            parts.append(end)
            end = graph.only_reader(end)
        target = None if end is None else graph.codes_made(end)
        whole = build(graph, step, target) if target is not None else None
        if whole is None or end is None or target is None:
            if op_type(step) == "MatMul" and (product := _float_product(graph, step)) is not None:
                made[id(step)] = (product,)
            continue
        label = " + ".join(part.label for part in (*parts, end))
        made.update({id(part): () for part in parts})
        made[id(end)] = _bounded(graph, whole._replace(label=label), target, bounded=len(parts) > 1)
    if not made:
        return plan
    made.update(dict.fromkeys(graph.written, ()))
    steps = [each for step in plan.steps for each in made.get(id(step), (step,))]
    return rebuilt(plan, without_dead(steps, plan.outputs), graph.constants)


def _bounded(graph: _Graph, step: Step, target: _Codes, *, bounded: bool) -> tuple[Step, ...]:
    """A step, and what keeps its integers from the zero point on, as Relu does."""
    assert target.zero is not None
    if not bounded or target.zero.item() == integer_range(target.zero.dtype)[0]:
        return (step,)
    between = target.name + "/unbounded"
    while between in graph.taken:
        between += "'"
    graph.taken.add(between)
    lowest = graph.add(target.name + "/lowest", target.zero.reshape(()).copy())
    clip = standard_step(step, "Clip", (between, lowest, ""), target.name)
    return step._replace(outputs=(between,)), clip


def _contrib(like: Step, op: str, inputs: tuple[str, ...], output: str) -> Step:
    return _own(like, STANDARD.require(OpKey("com.microsoft", op, 1), "contrib"), inputs, output)


def _own(like: Step, kernel: Kernel, inputs: tuple[str, ...], output: str) -> Step:
    return like._replace(
        kernel=kernel,
        inputs=inputs,
        outputs=(output,),
        attributes={},
        injected=frozenset(),
        schema=None,
        fused=(op_type(like),),
        spelled_out=None,
    )


def _convolution(graph: _Graph, step: Step, target: _Codes) -> Step | None:
    x, w = graph.codes_of(step.inputs[0]), graph.codes_of(step.inputs[1])
    if x is None or w is None or not x.is_whole:
        return None
    weights = graph.constants.get(w.name)
    if weights is None or weights.dtype not in _EIGHT_BITS or weights.ndim < 3:
        return None
    if w.scale.size > 1 and (w.axis % weights.ndim != 0 or w.scale.shape != weights.shape[:1]):
        return None
    zero_name = w.zero_name or graph.add(w.name + "/zero_point", np.zeros(w.scale.shape, weights.dtype))
    bias = (*step.inputs, "")[2]
    if bias:
        codes = graph.codes_of(bias)
        if codes is None or not _is_bias(graph, codes, x.scale * w.scale):
            return None
        bias = codes.name
    inputs = (*x.inputs, w.name, w.scale_name, zero_name, target.scale_name, target.zero_name, bias)
    return standard_step(step, "QLinearConv", inputs, target.name, **step.attributes)


def _is_bias(graph: _Graph, codes: _Codes, scale: Tensor) -> bool:
    """Whether they are constants that count in steps of the products' scale."""
    value = graph.constants.get(codes.name)
    if value is None or value.dtype != np.int32 or (codes.zero is not None and codes.zero.any()):
        return False
    if codes.scale.size not in (1, value.size) or scale.size not in (1, codes.scale.size, value.size):
        return False
    return np.allclose(codes.scale.reshape(-1), scale.reshape(-1), rtol=1e-5, atol=0)


def _matrix(graph: _Graph, codes: _Codes | None) -> bool:
    """Whether they are a constant matrix, with one scale or one a column."""
    value = None if codes is None else graph.constants.get(codes.name)
    if codes is None or value is None or value.ndim != 2 or value.dtype not in _EIGHT_BITS:
        return False
    return codes.scale.size == 1 or (codes.axis % 2 == 1 and codes.scale.shape == value.shape[1:])


def _with_zero(graph: _Graph, codes: _Codes) -> str:
    zero = np.zeros(codes.scale.shape, graph.constants[codes.name].dtype)
    return codes.zero_name or graph.add(codes.name + "/zero_point", zero)


def _product(graph: _Graph, step: Step, target: _Codes) -> Step | None:
    a, b = graph.codes_of(step.inputs[0]), graph.codes_of(step.inputs[1])
    if a is None or b is None or not a.is_whole or not _matrix(graph, b):
        return None
    inputs = (*a.inputs, b.name, b.scale_name, _with_zero(graph, b), target.scale_name, target.zero_name)
    return standard_step(step, "QLinearMatMul", inputs, target.name)


def _float_product(graph: _Graph, step: Step) -> Step | None:
    """A product whose result stays a float."""
    a, b = graph.codes_of(step.inputs[0]), graph.codes_of(step.inputs[1])
    if a is None or b is None or not a.is_whole or not _matrix(graph, b):
        return None
    inputs = (a.name, b.name, a.scale_name, b.scale_name, a.zero_name, _with_zero(graph, b), "")
    return _own(step, matmul_integer_to_float, inputs, step.outputs[0])


def _gemm(graph: _Graph, step: Step, target: _Codes) -> Step | None:
    """A product with constant weights, which are laid out as those of MatMul, and a bias."""
    given = step.attributes
    a, b = graph.codes_of(step.inputs[0]), graph.codes_of(step.inputs[1])
    if a is None or b is None or not a.is_whole or given["transA"] or given["alpha"] != 1:
        return None
    weights = graph.constants.get(b.name)
    if weights is None or weights.ndim != 2 or weights.dtype not in _EIGHT_BITS:
        return None
    along, columns = (0, weights.shape[0]) if given["transB"] else (1, weights.shape[1])
    if b.scale.size > 1 and (b.axis % 2 != along or b.scale.shape != (columns,)):
        return None
    name, bias = b.name, (*step.inputs, "")[2]
    if given["transB"]:
        name = graph.add(name + "/transposed", np.ascontiguousarray(weights.T))
    if bias:
        codes = graph.codes_of(bias)
        if given["beta"] != 1 or codes is None or not _is_bias(graph, codes, a.scale * b.scale):
            return None
        bias = codes.name
        if graph.constants[bias].shape != (columns,):
            return None
    inputs = (*a.inputs, name, b.scale_name, _with_zero(graph, b), bias, target.scale_name, target.zero_name)
    return _contrib(step, "QGemm", inputs, target.name)


def _join(graph: _Graph, step: Step, target: _Codes) -> Step | None:
    if len(step.inputs) != 2 or "broadcast" in step.attributes:
        return None
    a, b = graph.codes_of(step.inputs[0]), graph.codes_of(step.inputs[1])
    if a is None or b is None or not (a.is_whole and b.is_whole):
        return None
    if len({codes.zero.dtype for codes in (a, b, target) if codes.zero is not None}) != 1:
        return None
    inputs = (*a.inputs, *b.inputs, target.scale_name, target.zero_name)
    return _contrib(step, _JOINS[op_type(step)], inputs, target.name)


def _mean(graph: _Graph, step: Step, target: _Codes) -> Step | None:
    x = graph.codes_of(step.inputs[0])
    if x is None or not x.is_whole or not _same_type(x, target):
        return None
    return _contrib(step, "QLinearGlobalAveragePool", (*x.inputs, target.scale_name, target.zero_name), target.name)


def _concatenation(graph: _Graph, step: Step, target: _Codes) -> Step | None:
    parts = [graph.codes_of(name) for name in step.inputs]
    known = [part for part in parts if part is not None and part.is_whole and _same_type(part, target)]
    if len(known) < len(parts):
        return None
    inputs = (target.scale_name, target.zero_name, *(name for part in known for name in part.inputs))
    whole = _contrib(step, "QLinearConcat", inputs, target.name)
    return whole._replace(attributes={"axis": step.attributes["axis"]})


def _movement(graph: _Graph, step: Step, target: _Codes) -> Step | None:
    """What moves elements moves integers alike, where they mean the same before and after."""
    x = graph.codes_of(step.inputs[0])
    if x is None or not x.is_whole or not _same_type(x, target) or step.schema is None or len(step.outputs) != 1:
        return None
    if step.schema.key.since_version < _MOVEMENTS[op_type(step)]:
        return None
    assert x.zero is not None
    assert target.zero is not None
    if x.scale.item() != target.scale.item() or x.zero.item() != target.zero.item():
        return None
    return step._replace(inputs=(x.name, *step.inputs[1:]), outputs=(target.name,), spelled_out=None)


def _same_type(x: _Codes, target: _Codes) -> bool:
    return x.zero is not None and target.zero is not None and x.zero.dtype == target.zero.dtype


_BUILDERS: Mapping[str, _Build] = {
    "Conv": _convolution,
    "MatMul": _product,
    "Gemm": _gemm,
    "GlobalAveragePool": _mean,
    "Concat": _concatenation,
    **dict.fromkeys(_JOINS, _join),
    **dict.fromkeys(_MOVEMENTS, _movement),
}

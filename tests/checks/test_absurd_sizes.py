"""Sizes and numbers that onnx's inference takes for sound: nothing crashes, hangs or eats memory, in forks."""

import sys
from random import Random
from typing import Any

import onnx
import pytest
from fuzz.forks import outcomes
from onnx import AttributeProto, ModelProto, TensorProto, helper

import onnxeval
from onnxeval.dtypes import BY_NAME, ELEMENT_TYPES
from onnxeval.registry import Registry
from onnxeval.schema import Schema, all_schemas, slot_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks with limits")

HEADER = '<ir_version: 10, opset_import: ["": {}]>'
SIZES = (0, 1, 2, 3, 4, 7, 64, 10**9, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)
NUMBERS = (*SIZES, -1, -2, -7, -(2**31), -(2**63))
TEXTS = ("", "NOTSET", "SAME_UPPER", "VALID", "none", "linear", "ij,jk->ik", "->", "i" * 500, "bidirectional")

#: Each of these made onnx's inference read beyond its lists, end the process, or never come back.
KNOWN = {
    "batch_dims below zero": (13, "g (int32[2,5] x, int64[1] i) => (int32[N] y) {y = GatherND<batch_dims = -2>(x, i)}"),
    "no end of batch_dims": (
        13,
        "g (int64[3] x, int64[8] i) => (int64 y) {y = GatherND<batch_dims = -2147483648>(x, i)}",
    ),
    "an axis beyond": (17, "g (float[2,3] x, float[3] s) => (float[2,3] y) {y = LayerNormalization<axis = 7>(x, s)}"),
    "more parts than told": (18, "g (float[3] x) => (float[N] y, float[M] z) {y, z = Split<num_outputs = 1>(x)}"),
    "no equation": (12, 'g (float[2,3] x) => (float[N] y) {y = Einsum<equation = "a-b">(x)}'),
    "stride zero": (
        11,
        "g (float[1,1,4,4] x) => (float[1,1,N,M] y) {y = MaxPool<kernel_shape = [2,2], strides = [0,0]>(x)}",
    ),
    "block zero": (13, "g (float[1,4,2,2] x) => (float[N,M,K,L] y) {y = SpaceToDepth<blocksize = 0>(x)}"),
    "a shape without end": (13, "g (float[2] x, int64[1000000000000] s) => (float[N] y) {y = Reshape(x, s)}"),
    "sizes without end": (13, "g (float[2] x, int64[1000000000] s) => (float[N] y) {t = Expand(x, s) y = Neg(t)}"),
    "a rank without end": (21, "g (int64[9223372036854775807] s) => (float[N] y) {y = ConstantOfShape(s)}"),
    "a list without end": (13, "g (float[2,3] x, int64[1000000000] a) => (float[N] y) {y = Unsqueeze(x, a)}"),
}


def faulty(models: list[ModelProto]) -> list[str]:
    def checked(place: int) -> str:
        try:
            onnxeval.check(models[place])
        except Exception as error:
            return f"raises {error!r}"
        return ""

    return [f"{place}: {how}" for place, how in outcomes(checked, range(len(models))) if how]


def test_known_dangers() -> None:
    models = [onnx.parser.parse_model(HEADER.format(opset) + text) for opset, text in KNOWN.values()]
    assert faulty(models) == []


def _number(chance: Random) -> int:
    return chance.choice(NUMBERS) if chance.random() < 0.4 else chance.choice((0, 1, 2, 3, -1))


def _attribute(chance: Random, name: str, kind: int) -> AttributeProto | None:
    values: dict[int, Any] = {
        AttributeProto.INT: _number(chance),
        AttributeProto.INTS: [_number(chance) for _ in range(chance.choice((1, 1, 2, 4, 8)))],
        AttributeProto.STRING: chance.choice(TEXTS),
        AttributeProto.FLOAT: chance.choice((0.0, -1.0, 1e38, float("nan"), float("inf"))),
    }
    return helper.make_attribute(name, values[kind]) if kind in values else None


def _shape(chance: Random) -> list[int | str]:
    return [
        chance.choice(SIZES) if chance.random() < 0.4 else chance.choice((1, 2, 3, "N"))
        for _ in range(chance.randrange(6))
    ]


def absurd_model(schema: Schema, chance: Random) -> ModelProto:
    """One node of this version, whose inputs are declared, or filled, absurdly."""
    graph = onnx.GraphProto(name="g")
    names, types = [], {}
    for place in range(min(max(schema.min_inputs, len(schema.inputs)), 8)):
        slot = slot_at(schema.inputs, place)
        assert slot is not None
        tensors = [t for t in sorted(slot.allowed) if t[7:-1] in BY_NAME and t.startswith("tensor(")]
        if (slot.optional and chance.random() < 0.3) or not tensors:
            names.append("")
            continue
        chosen = types.setdefault(slot.variable or place, chance.choice(tensors))
        element = ELEMENT_TYPES[BY_NAME[chosen[7:-1]]]
        names.append(f"x{place}")
        if element in (TensorProto.INT64, TensorProto.INT32) and chance.random() < 0.5:
            most = 2**31 - 1 if element == TensorProto.INT32 else 2**63 - 1
            numbers = [max(min(_number(chance), most), -most) for _ in range(chance.choice((0, 1, 2, 4)))]
            graph.initializer.append(helper.make_tensor(names[-1], element, [len(numbers)], numbers))
        else:
            graph.input.append(helper.make_tensor_value_info(names[-1], element, _shape(chance)))
    count = max(schema.min_outputs, chance.choice((1, 2, 3)) if schema.max_outputs > 100 else len(schema.outputs))
    node = helper.make_node(
        schema.key.op_type, names, [f"y{place}" for place in range(count)], domain=schema.key.domain
    )
    for declared in schema.attributes.values():
        if declared.required or chance.random() < 0.5:
            attribute = _attribute(chance, declared.name, declared.kind)
            node.attribute.extend([] if attribute is None else [attribute])
    graph.node.append(node)
    graph.output.append(helper.make_tensor_value_info("y0", 1, None))
    imports = [helper.make_opsetid(schema.key.domain, schema.key.since_version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize("rounds", [range(3), pytest.param(range(3, 150), marks=pytest.mark.slow)], ids=["few", "many"])
def test_any_node(rounds: range) -> None:
    Registry.standard()  # before the forks are made
    schemas = [schema for schema in all_schemas() if not schema.deprecated]
    assert faulty([absurd_model(s, Random(f"{s.label} {n}")) for n in rounds for s in schemas]) == []

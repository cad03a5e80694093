"""Broken bytes and broken messages: findings, never an exception."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxeval

CASES = Path(__file__).parents[1] / "cases"
MODELS = [p for p in sorted(CASES.glob("*/model.onnx")) if 0 < p.stat().st_size < 20_000]
EXTREMES = (0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))


def assert_findings(model: Any) -> None:
    for finding in onnxeval.check(model):
        assert finding.rule in onnxeval.checks.RULES
        assert finding.where
        assert finding.message
        str(finding)


@pytest.mark.parametrize("seed", range(8))
def test_truncated_and_flipped_bytes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        data = bytearray(chance.choice(MODELS).read_bytes())
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        for _ in range(chance.choice((0, 1, 1, 2, 5))):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        assert_findings(bytes(data))


@pytest.mark.parametrize("seed", range(8))
def test_changed_messages(seed: int) -> None:
    """The bytes parse, what they say is nonsense: extreme numbers, wrong names, fields gone or doubled."""
    chance = random.Random(seed)
    for _ in range(60):
        try:
            model = onnx.load(chance.choice(MODELS), load_external_data=False)
        except Exception:
            continue  # some of the cases are no models
        for _ in range(chance.choice((1, 2, 4))):
            change(model, chance)
        assert_findings(model)


def change(model: ModelProto, chance: random.Random) -> None:
    message = chance.choice(list(messages(model)))
    filled = message.ListFields()
    if not filled:
        return
    field, value = chance.choice(filled)
    if field.type == field.TYPE_MESSAGE and field.is_repeated:
        if chance.random() < 0.5:
            del value[chance.randrange(len(value))]
        else:
            value.add().CopyFrom(chance.choice(list(value)))
    elif field.type in (field.TYPE_INT32, field.TYPE_INT64):
        number = chance.choice(EXTREMES)
        number = max(-(2**31), min(number, 2**31 - 1)) if field.type == field.TYPE_INT32 else number
        if field.is_repeated:
            value[chance.randrange(len(value))] = number
        else:
            setattr(message, field.name, number)
    elif field.type == field.TYPE_STRING:
        text = chance.choice(("", "x", "y", "Loop", "Constant"))
        if field.is_repeated:
            value[chance.randrange(len(value))] = text
        else:
            setattr(message, field.name, text)
    else:
        message.ClearField(field.name)


def messages(message: Any) -> Any:
    yield message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if field.is_repeated else (value,):
                yield from messages(inner)


def test_names_that_are_not_utf8() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] yy) {yy = Neg(x)}'
    )
    data = model.SerializeToString().replace(b"yy", b"\xff\xfe")
    assert {f.rule for f in onnxeval.check(data)} == {"graph/unreadable-name"}


@pytest.mark.parametrize("text", [b"", b"not a model", b"<html></html>", b"PK\x03\x04zip"])
def test_no_model(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(text)
    for model in (path, str(path), text):
        (finding,) = onnxeval.check(model)
        assert finding.rule == "file/unreadable"
        assert finding.where == ("model" if model is text else str(path))


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.onnx", tmp_path, "nul\0.onnx"):
        assert [f.rule for f in onnxeval.check(path)] == ["file/unreadable"]


def test_an_empty_model_message() -> None:
    assert {f.rule for f in onnxeval.check(ModelProto())} == {
        "proto/no-graph",
        "proto/no-ir-version",
        "proto/no-opset-import",
    }


def test_nesting_as_deep_as_protobuf_parses() -> None:
    graph = onnx.parser.parse_graph("g () => (float[2] y) {y = Neg(x)}")
    for depth in range(29):
        branch = onnx.GraphProto()
        branch.CopyFrom(graph)
        node = onnx.helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch if depth < 3 else LEAF)
        graph = onnx.helper.make_graph([node], "g", [], graph.output)
    graph.input.extend(onnx.parser.parse_graph("g (bool c, float[2] x) => () {}").input)
    model = onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 21)])
    assert onnxeval.check(model.SerializeToString()) == []


LEAF = onnx.parser.parse_graph("g () => (float[2] y) {y = Abs(x)}")


@pytest.mark.parametrize("backwards", [False, True])
def test_a_long_chain(backwards: bool) -> None:
    nodes = [onnx.helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(5000)]
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[2] v0) => (float[2] v5000) {v1 = Neg(v0)}'
    )
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes) if backwards else nodes)
    found = onnxeval.check(model)
    assert {f.rule for f in found} == ({"graph/order"} if backwards else set())


def test_functions_that_call_one_another_in_a_pyramid() -> None:
    """Each calls the next twice: 2^40 calls, judged once each."""
    imports = '<domain: "loc", opset_import: ["": 21, "loc": 1]>'
    bodies = [f"f{i} (a) => (c) {{b = loc.f{i + 1}(a) c = loc.f{i + 1}(b)}}" for i in range(40)]
    functions = [onnx.parser.parse_function(imports + body) for body in bodies]
    functions.append(onnx.parser.parse_function('<domain: "loc", opset_import: ["": 21]> f40 (a) => (c) {c = Neg(a)}'))
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21, "loc": 1]> g (float[2] x) => (float[3] y) {y = loc.f0(x)}'
    )
    model.functions.extend(functions)
    assert [f.rule for f in onnxeval.check(model)] == ["type/declared-output"]


def test_huge_dims_take_no_memory() -> None:
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 21]> g () => (float[N] y) {y = Identity(w)}')
    model.graph.initializer.append(onnx.TensorProto(name="w", data_type=1, dims=[2**40, 2**20]))
    assert [f.rule for f in onnxeval.check(model)] == ["tensor/data-length"]
    model.graph.initializer[0].raw_data = np.zeros(4, np.float32).tobytes()
    assert onnxeval.check(model)[0].rule == "tensor/data-length"

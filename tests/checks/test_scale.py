"""Large models, deep ones, and real ones."""

import gc
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, helper, numpy_helper

import onnxeval

ROOT = Path(__file__).parents[2]
REAL_MODELS = Path.home() / ".cache" / "onnxeval-real-models"


def of_nodes(count: int) -> ModelProto:
    """Blocks of five nodes, each with weights of its own."""
    nodes, weights, last = [], [], "x"
    for i in range(count // 5):
        weights.append(numpy_helper.from_array(np.ones((16, 16, 1, 1), np.float32), f"w{i}"))
        weights.append(numpy_helper.from_array(np.ones(16, np.float32), f"b{i}"))
        one_by_one = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0, 0, 0, 0]}
        nodes += [
            helper.make_node("Conv", [last, f"w{i}", f"b{i}"], [f"c{i}"], name=f"conv{i}", **one_by_one),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"relu{i}"),
            helper.make_node("Add", [f"r{i}", last], [f"a{i}"], name=f"add{i}"),
            helper.make_node("Mul", [f"a{i}", "half"], [f"m{i}"], name=f"mul{i}"),
            helper.make_node("Transpose", [f"m{i}"], [f"t{i}"], name=f"turn{i}", perm=[0, 1, 3, 2]),
        ]
        last = f"t{i}"
    weights.append(numpy_helper.from_array(np.float32(0.5), "half"))
    declared = [helper.make_tensor_value_info(name, 1, ["N", 16, 16, 16]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "g", declared[:1], declared[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def least_time(work: Callable[[], object]) -> float:
    """Of the processor, so that other work on the machine does not count."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("with_types", [False, True], ids=["bare", "with value_info"])
def test_10_000_nodes_take_at_most_twice_what_onnx_takes(with_types: bool) -> None:
    model = of_nodes(10_000)
    if with_types:
        model = onnx.shape_inference.infer_shapes(model)
    ours, theirs = [], []
    for _ in range(9):  # by turns
        ours.append(least_time(lambda: onnxeval.check(model)))
        theirs.append(least_time(lambda: onnx.checker.check_model(model, full_check=True)))
    assert min(ours) <= 2 * min(theirs), f"{min(ours):.3f} s against {min(theirs):.3f} s"


def test_10_000_nodes_are_good() -> None:
    assert onnxeval.check(of_nodes(10_000)) == []


def test_a_chain_of_100_000_nodes() -> None:
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(100_000)]
    nodes[70_000].input[0] = "ghost"
    declared = [helper.make_tensor_value_info(name, 1, [2]) for name in ("v0", "v100000")]
    graph = helper.make_graph(nodes, "g", declared[:1], declared[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    found = [(f.rule, f.where) for f in onnxeval.check(model)]
    assert found == [
        ("graph/undefined-name", 'graph/node[70000] (Neg) input 0 "ghost"'),
        ("graph/unused-node", "graph/node[69999] (Neg)"),
    ]


def nested(depth: int) -> bytes:
    """The bytes of a model of Ifs in one another. Only its innermost branch has a fault."""
    graph = onnx.parser.parse_graph("g () => (float[2] y) {y = Negg(x)}").SerializeToString()
    leaf = onnx.parser.parse_graph("g () => (float[2] y) {y = Abs(x)}")
    for level in range(depth):
        node = helper.make_node("If", ["c"], ["y"], else_branch=leaf)
        attribute = onnx.AttributeProto(name="then_branch", type=onnx.AttributeProto.GRAPH)
        data = attribute.SerializeToString() + _field(6, graph)
        outer = helper.make_graph([], "g", [], leaf.output)
        if level == depth - 1:
            outer.input.extend(onnx.parser.parse_graph("g (bool c, float[2] x) => () {}").input)
        graph = outer.SerializeToString() + _field(1, node.SerializeToString() + _field(5, data))
    model = helper.make_model(GraphProto(), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model.ClearField("graph")
    return model.SerializeToString() + _field(7, graph)


def _field(number: int, data: bytes) -> bytes:
    """A message, or text, as a field of protobuf's wire format."""
    length, size = b"", len(data)
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def test_as_deep_as_protobuf_parses_and_deeper() -> None:
    for depth in (1, 10, 29):
        (finding,) = onnxeval.check(nested(depth))
        assert finding.rule == "node/unknown-operator"
        assert finding.where.count("then_branch") == depth
    for depth in (60, 2000):
        (finding,) = onnxeval.check(nested(depth))
        assert finding.rule == "file/unreadable"


@pytest.mark.parametrize("path", sorted(ROOT.glob("sample_models/*/*.onnx")), ids=lambda path: path.parent.name)
def test_sample_models(path: Path) -> None:
    assert onnxeval.check(path) == []


@pytest.mark.parametrize("path", sorted(REAL_MODELS.glob("*.onnx")), ids=lambda path: path.stem)
def test_no_false_alarm_on_real_models(path: Path) -> None:
    errors = [str(finding) for finding in onnxeval.check(path) if finding.severity == "error"]
    try:
        onnx.checker.check_model(path, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return
    assert errors == []

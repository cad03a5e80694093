"""Chains of element-wise operators in one pass: at one with the readable steps, whatever broadcasts into them."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import onnxeval

UNARY = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "HardSwish", "Softplus", "Erf", "Elu", "LeakyRelu", "Square", "Twice"]
BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"]


def model_of(nodes, feeds, weights, last):
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, each.shape) for name, each in feeds.items()]
    output = helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, None)
    initializers = [numpy_helper.from_array(each, name) for name, each in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, [output], initializers)
    return onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)]))


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_chains_are_the_readable_steps(tier, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 16, 33, 60]), max_size=4)))
    begin = tuple(size if data.draw(st.booleans()) else 1 for size in shape)[data.draw(st.integers(0, 1)) :]
    begin = data.draw(st.sampled_from([shape, shape, begin]))
    feeds, weights, nodes, last = {"x": rng.standard_normal(begin).astype(np.float32)}, {}, [], "x"
    for place in range(data.draw(st.integers(2, 7))):
        name = f"v{place}"
        if data.draw(st.booleans()):
            op = data.draw(st.sampled_from(UNARY))
            if op in ("Square", "Twice"):
                nodes.append(helper.make_node("Mul" if op == "Square" else "Add", [last, last], [name]))
            else:
                nodes.append(helper.make_node(op, [last], [name]))
        else:
            op = data.draw(st.sampled_from(BINARY))
            own = tuple(size if data.draw(st.booleans()) else 1 for size in shape)[data.draw(st.integers(0, 2)) :]
            if op == "PRelu" and begin != shape:  # a slope is no larger than what it is of
                own = (1,) * min(len(own), len(begin))
            other = (rng.random(own) + 0.5).astype(np.float32)
            (weights if data.draw(st.booleans()) else feeds)[f"e{place}"] = other
            names = [last, f"e{place}"]
            if op not in ("PRelu", "Div") and data.draw(st.booleans()):  # the sign of a zero would show in a quotient
                names.reverse()
            nodes.append(helper.make_node(op, names, [name]))
        last = name
    model = model_of(nodes, feeds, weights, last)
    kept = {name: each.copy() for name, each in feeds.items()}
    with np.errstate(all="ignore"):
        for turn in range(5):
            given = (
                feeds if turn < 4 else {name: each[..., ::-1] if each.ndim else each for name, each in feeds.items()}
            )
            wanted = model.run(given, reference=True)[last]
            got = model.run(given)[last]
            assert got.shape == wanted.shape
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4)
    for name, each in feeds.items():
        np.testing.assert_array_equal(each, kept[name])


def test_a_chain_is_one_pass(kernels, rng):
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["a"]),
        helper.make_node("Add", ["a", "shift"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    weights = {name: rng.standard_normal((5, 1, 1)).astype(np.float32) for name in ("scale", "shift")}
    model = model_of(nodes, {"x": np.zeros((2, 5, 4, 4), np.float32)}, weights, "y")
    (step,) = model.plan().steps
    assert step.kernel.tail.stop == 3


@pytest.mark.parametrize("op", ["Sub", "Div"])
def test_operands_in_either_order(tier, rng, op):
    x, z = (rng.random(50).astype(np.float32) + 1 for _ in range(2))
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node(op, ["z", "a"], ["y"])]
    model = model_of(nodes, {"x": x, "z": z}, {}, "y")
    np.testing.assert_allclose(model.run({"x": x, "z": z})["y"], z + x if op == "Sub" else -z / x, rtol=1e-6)


def test_nan_stays_in_a_maximum(tier):
    nodes = [helper.make_node("Max", ["x", "z"], ["a"]), helper.make_node("Min", ["a", "w"], ["y"])]
    x, z = np.array([np.nan, 1, 2, 3] * 5, np.float32), np.array([0, np.nan, 5, 1] * 5, np.float32)
    w = np.array([1, 1, np.nan, 2] * 5, np.float32)
    model = model_of(nodes, {"x": x, "z": z, "w": w}, {}, "y")
    np.testing.assert_array_equal(model.run({"x": x, "z": z, "w": w})["y"], [np.nan, np.nan, np.nan, 2] * 5)


def test_what_does_not_fit_is_told_by_its_node(kernels):
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Add", ["a", "z"], ["y"], name="sum")]
    model = model_of(nodes, {"x": np.zeros(3, np.float32), "z": np.zeros(3, np.float32)}, {}, "y")
    model.proto.graph.input[1].type.tensor_type.ClearField("shape")
    model = onnxeval.load(model.proto)
    with pytest.raises(onnxeval.NodeError, match=r"sum \(Add-14\)"):
        model.run({"x": np.zeros(3, np.float32), "z": np.zeros(4, np.float32)})

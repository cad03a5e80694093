"""Models loaded with `fast_math`: faster convolutions of 3x3, a digit less exact, and nothing else."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxeval
from onnxeval.fast.engine import VARIABLE, native

SHAPE = (1, 40, 24, 24)


@pytest.fixture
def weights(rng):
    return {name: rng.standard_normal((40, 40, 3, 3)).astype(np.float32) for name in ("w", "v")}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def conv(name="Conv", weights="w"):
    return helper.make_node(name, ["x", weights], ["c"], pads=[1] * 4)


def model_of(nodes, weights):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def branch(weights):
    value = helper.make_tensor_value_info("c", TensorProto.FLOAT, None)
    return helper.make_graph([conv(weights=weights)], "b", [], [value])


NODES = {
    "alone": [conv(), helper.make_node("Identity", ["c"], ["y"])],
    "with what follows": [conv(), helper.make_node("Add", ["c", "c"], ["s"]), helper.make_node("Relu", ["s"], ["y"])],
    "in a branch": [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["any"], to=TensorProto.BOOL),
        helper.make_node("If", ["any"], ["y"], then_branch=branch("w"), else_branch=branch("v")),
    ],
    "transposed": [conv("ConvTranspose"), helper.make_node("Identity", ["c"], ["y"])],
}


def errors(nodes, weights, rng):
    """Of the usual run and of the fast one, in terms of the largest element, three runs each."""
    x = rng.standard_normal(SHAPE).astype(np.float32)
    model = model_of(nodes, weights)
    wide = model_of(nodes, {name: value.astype(float) for name, value in weights.items()})
    wide.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    exact = onnxeval.load(wide).run({"x": x.astype(float)}, reference=True)["y"]
    for fast_math in (False, True):
        loaded = onnxeval.load(model, fast_math=fast_math)
        yield max(np.abs(loaded.run({"x": x})["y"] - exact).max() for _ in range(3)) / np.abs(exact).max()


@pytest.mark.parametrize("nodes", NODES.values(), ids=NODES)
def test_the_error_is_a_digit_larger_where_it_is_asked_for(weights, rng, nodes):
    if native() is None:
        pytest.skip("there are no compiled kernels")
    usual, fast = errors(nodes, weights, rng)
    assert usual < 1e-6
    assert usual < fast < 5e-6


def test_the_readable_path_stays_what_it_is(weights, rng):
    x = rng.standard_normal(SHAPE).astype(np.float32)
    model = model_of(NODES["alone"], weights)
    one, other = (onnxeval.load(model, fast_math=f).run({"x": x}, reference=True)["y"] for f in (False, True))
    np.testing.assert_array_equal(one, other)


def test_without_compiled_kernels_nothing_changes(weights, rng, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    x = rng.standard_normal(SHAPE).astype(np.float32)
    model = model_of(NODES["with what follows"], weights)
    one, other = (onnxeval.load(model, fast_math=fast_math).run({"x": x})["y"] for fast_math in (False, True))
    np.testing.assert_array_equal(one, other)

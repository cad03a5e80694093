"""Models in floats between DequantizeLinear and QuantizeLinear run on integers, a step of the result apart at most."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from passes.plans import operators

import onnxeval


def quantised_model(
    operator, *, weights=None, bias=False, relu=False, same=False, zero=120, channel=None, **attributes
):
    """x -> QuantizeLinear -> DequantizeLinear -> operator -> QuantizeLinear -> DequantizeLinear -> y."""
    rng = np.random.default_rng(0)
    constants = {
        "s": np.float32(0.05),
        "z": np.uint8(128),
        "ys": np.float32(0.05 if same else 0.21),
        "yz": np.uint8(128 if same else zero),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xf"]),
    ]
    inputs = ["xf"]
    if weights is not None:
        constants["w"] = rng.integers(-127, 128, weights).astype(np.int8)
        constants["ws"] = (
            np.float32(0.02) if channel is None else (rng.random(weights[channel]) * 0.02 + 0.01).astype(np.float32)
        )
        constants["wz"] = np.zeros_like(constants["ws"], np.int8)
        along = {} if channel is None else {"axis": channel}
        nodes.append(helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], **along))
        inputs.append("wf")
    if bias:
        maps = weights[0] if operator == "Conv" or attributes.get("transB") else weights[1]
        constants["b"] = rng.integers(-2000, 2000, maps).astype(np.int32)
        constants["bs"] = constants["s"] * constants["ws"]
        constants["bz"] = np.zeros_like(constants["bs"], np.int32)
        along = {} if channel is None else {"axis": 0}
        nodes.append(helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bf"], **along))
        inputs.append("bf")
    if operator in ("Add", "Mul", "Concat"):
        inputs.append("xf")
    nodes.append(helper.make_node(operator, inputs, ["t"], **attributes))
    if relu:
        nodes.append(helper.make_node("Relu", ["t"], ["u"]))
    nodes.append(helper.make_node("QuantizeLinear", ["u" if relu else "t", "ys", "yz"], ["yq"]))
    nodes.append(helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


CONV = {"operator": "Conv", "weights": (6, 4, 3, 3), "pads": [1, 1, 1, 1]}
IMAGES, ROWS = (2, 4, 9, 8), (5, 7)
CASES = {
    "conv": (CONV, IMAGES, ["QLinearConv"]),
    "conv of each map": ({**CONV, "channel": 0, "bias": True}, IMAGES, ["QLinearConv"]),
    "conv and relu": ({**CONV, "relu": True, "bias": True}, IMAGES, ["QLinearConv", "Clip"]),
    "conv and relu at zero": ({**CONV, "relu": True, "zero": 0}, IMAGES, ["QLinearConv"]),
    "product": ({"operator": "MatMul", "weights": (7, 3), "channel": 1}, ROWS, ["QLinearMatMul"]),
    "gemm": ({"operator": "Gemm", "weights": (3, 7), "channel": 0, "bias": True, "transB": 1}, ROWS, ["Gemm"]),
    "gemm as it lies": ({"operator": "Gemm", "weights": (7, 3), "bias": True}, ROWS, ["Gemm"]),
    "sum": ({"operator": "Add"}, ROWS, ["Add"]),
    "factor": ({"operator": "Mul"}, ROWS, ["Mul"]),
    "mean": ({"operator": "GlobalAveragePool"}, IMAGES, ["GlobalAveragePool"]),
    "parts": ({"operator": "Concat", "axis": 1}, ROWS, ["Concat"]),
    "movement": ({"operator": "Transpose", "same": True}, ROWS, ["Transpose"]),
    "other steps": ({"operator": "Transpose"}, ROWS, ["DequantizeLinear", "Transpose", "QuantizeLinear"]),
    "of the whole": ({"operator": "Softmax"}, ROWS, ["DequantizeLinear", "Softmax", "QuantizeLinear"]),
}


@pytest.mark.parametrize("case", CASES)
def test_integers_compute_what_floats_do(case):
    options, shape, between = CASES[case]
    proto = quantised_model(**options)
    x = (np.random.default_rng(1).standard_normal(shape) * 3).astype(np.float32)
    model = onnxeval.load(proto)
    assert operators(model.plan())[1:-1] == between
    got, exact = model.run({"x": x})["y"], model.run({"x": x}, reference=True)["y"]
    assert got.shape == exact.shape
    steps = np.rint((got - exact) / np.float32(0.21))
    assert np.abs(steps).max() <= 1
    assert np.count_nonzero(steps) <= 0.02 * steps.size
    assert np.unique(got).size > 3 or case == "of the whole"


@pytest.mark.parametrize("name", ["xf", "t"])
def test_what_is_asked_for_is_computed(name):
    x = (np.random.default_rng(1).standard_normal(IMAGES) * 3).astype(np.float32)
    model = onnxeval.load(quantised_model(**CONV))
    got = model.run({"x": x}, outputs=[name, "y"])
    np.testing.assert_allclose(
        got[name], model.run({"x": x}, outputs=[name], reference=True)[name], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bs", np.float32(0.5)),
        ("bz", np.int32(3)),
        ("ws", np.float32(np.inf)),
        ("s", np.float32(0)),
        ("ys", np.float32(-1)),
    ],
)
def test_constants_that_mean_something_else(name, value):
    proto = quantised_model(**CONV, bias=True)
    kept = [each for each in proto.graph.initializer if each.name != name]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend([*kept, numpy_helper.from_array(np.asarray(value), name)])
    assert "QLinearConv" not in operators(onnxeval.load(proto).plan())


def test_scales_that_nodes_hold():
    proto = quantised_model(**CONV)
    nodes = [helper.make_node("Constant", [], [each.name], value=each) for each in proto.graph.initializer]
    del proto.graph.initializer[:]
    others = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend([*nodes, *others])
    assert operators(onnxeval.load(proto).plan()) == ["QuantizeLinear", "QLinearConv", "DequantizeLinear"]

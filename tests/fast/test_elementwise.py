"""Chains of element-wise operators in one pass: at one with the readable steps, whatever broadcasts into them."""

import struct

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import onnxeval
from fast.guarded import guarded

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


@pytest.mark.parametrize("before", [False, True])
def test_a_slope_makes_nothing_larger(kernels, before):
    nodes = [helper.make_node("Neg", ["x"], ["a"])] if before else []
    nodes.append(helper.make_node("PRelu", ["a" if before else "x", "z"], ["y"], name="bend"))
    x, z = np.zeros((1, 4), np.float32), np.zeros((2, 4), np.float32)
    with pytest.raises(onnxeval.NodeError, match=r"slope of shape \[2, 4\] does not broadcast to \[1, 4\]"):
        model_of(nodes, {"x": x}, {"z": z}, "y").run({"x": x})


NORM_KINDS = [(9, {}), (15, {}), (7, {"spatial": 1}), (6, {"is_test": 1, "spatial": 1})]


def normalised(opset, attributes, following, shape, weights, begin=()):
    """BatchNormalization after nodes that end in "x0", and nodes that end in "y" after it; opset as wanted."""
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None] * len(shape))]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    nodes = [
        *begin,
        helper.make_node("BatchNormalization", ["x0" if begin else "x", *"stmv"], ["n"], "norm", **attributes),
    ]
    last = "n"
    for place, (op, *others) in enumerate(following):
        name = "y" if place == len(following) - 1 else f"a{place}"
        nodes.append(helper.make_node(op, [each or last for each in others], [name], op.lower()))
        last = name
    initializers = [numpy_helper.from_array(each, name) for name, each in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, [output], initializers)
    return onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))


def parameters(rng, channels):
    weights = dict(zip("stm", rng.standard_normal((3, channels)).astype(np.float32), strict=True))
    return weights | {"v": rng.random(channels).astype(np.float32)}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_normalisation_and_what_follows_are_one_pass(tier, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    channels = data.draw(st.sampled_from([1, 3, 8, 33]))
    shape = (data.draw(st.integers(1, 3)), channels, *data.draw(st.lists(st.sampled_from([1, 3, 7, 40]), max_size=3)))
    weights = parameters(rng, channels)
    opset, attributes = data.draw(st.sampled_from(NORM_KINDS))
    begin = [helper.make_node(op, ["x"], ["x0"]) for op in data.draw(st.sampled_from([[], ["Neg"], ["Tanh"]]))]
    following = []
    for place in range(data.draw(st.integers(0, 3))):
        ops = [
            "Relu",
            "Sigmoid",
            "Elu",
            *(["Mul", "Add", "Sub"] if opset > 6 else []),
        ]  # before, they broadcast otherwise
        op = data.draw(st.sampled_from(ops))
        if op in ("Mul", "Add", "Sub"):
            own = (1, channels, *(1,) * (len(shape) - 2))
            form = data.draw(st.sampled_from([own, own[1:], (), (1, 1), (1, *shape[1:]), shape[-1:]]))
            weights[f"e{place}"] = rng.standard_normal(form).astype(np.float32)
            names = [f"e{place}", ""] if data.draw(st.booleans()) else ["", f"e{place}"]
            following.append((op, *names))
        else:
            following.append((op, ""))
    model = normalised(opset, attributes, [*following, ("Relu", "")], shape, weights, begin)
    (step,) = model.plan().steps
    assert len(step.fused) == len(begin) + len(following) + 2
    assert step.kernel.tail.stop == len(step.fused)
    for size in (shape, shape, (2, *shape[1:])):
        x = guarded(rng.standard_normal(size).astype(np.float32))
        x.flat[0] = data.draw(st.sampled_from([0, np.nan, np.inf, -np.inf]))
        got, wanted = (model.run({"x": x}, reference=reference) for reference in (False, True))
        np.testing.assert_allclose(got["y"], wanted["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 5, 4), (2,), ()])
def test_a_normalisation_of_other_channels_is_told_by_its_name(kernels, rng, shape):
    model = normalised(15, {}, [("Mul", "", "e"), ("Relu", "")], shape, parameters(rng, 4) | {"e": np.float32([2])})
    with pytest.raises(onnxeval.NodeError, match=r"norm \(BatchNormalization-15\)"):
        model.run({"x": np.zeros(shape, np.float32)})


def test_a_factor_that_overflows_is_no_part_of_a_normalisation(tier, rng):
    weights = parameters(rng, 2) | {"s": np.float32([3e38, 1e-30]), "e": np.float32([[100], [2]])}
    model = normalised(15, {}, [("Mul", "", "e"), ("Relu", "")], (1, 2, 9), weights)
    x = rng.standard_normal((1, 2, 9)).astype(np.float32)
    x[0, 0] = weights["m"][0]  # nothing, times a factor that is finite still
    got, wanted = (model.run({"x": x}, reference=reference)["y"] for reference in (False, True))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("opset", "attributes"), [(15, {"training_mode": 1}), (7, {"spatial": 0}), (6, {"is_test": 0, "spatial": 1})]
)
def test_other_normalisations_begin_no_chain(kernels, rng, opset, attributes):
    weights = parameters(rng, 4)
    model = normalised(opset, attributes, [("Relu", ""), ("Neg", "")], (3, 4), weights)
    assert [len(step.fused) or 1 for step in model.plan().steps] == [1, 2]
    x = rng.standard_normal((3, 4)).astype(np.float32)
    got, wanted = (model.run({"x": x}, reference=reference)["y"] for reference in (False, True))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_operands_of_a_normalisation_lie_alike(kernels):
    x, y, one, row = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32), np.zeros(1, "f"), np.zeros(3, "f")
    code = struct.pack("=iiff", 73, 1, 0, 0)
    whole, single, each = (1, 1, 2), (0, 1, 1), (1, 1, 1)
    kernels.run_chain(y, (x, row, row, row), code, np.array([whole, each, each, each]), 2, 3)
    for operands, layouts in [
        ((x, one, one, row), (whole, single, single, each)),
        ((x, one, row, one), (whole, single, each, single)),
        ((x, one, one), (whole, single, single)),
    ]:
        with pytest.raises(ValueError, match="no such instruction"):
            kernels.run_chain(y, operands, code, np.array(layouts), 2, 3)

"""Products with what follows them in one pass: at one with the readable kernels, whatever is added and applied."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import onnxeval

ACTIVATIONS = [
    ("Relu", {}),
    ("LeakyRelu", {"alpha": 0.2}),
    ("HardSigmoid", {}),
    ("HardSwish", {}),
    ("Sigmoid", {}),
    ("Tanh", {}),
    ("Gelu", {"approximate": "tanh"}),
    ("Gelu", {}),
    ("Elu", {}),
    ("Softplus", {}),
    ("Mish", {}),
    ("Erf", {}),
    ("Clip", {}),
]


def product(data, rng):
    """Nodes that make "t" from "x", the initializers, the feed, the shape of "t"."""
    match data.draw(st.sampled_from(["Conv", "Conv1", "Conv3", "MatMul", "Gemm"])):
        case "MatMul":
            x, w = rng.standard_normal((2, 5, 12)), rng.standard_normal((12, 33))
            return [helper.make_node("MatMul", ["x", "w"], ["t"])], {"w": w}, x, (2, 5, 33)
        case "Gemm":
            x, w, c = rng.standard_normal((5, 12)), rng.standard_normal((33, 12)), rng.standard_normal(33)
            names = ["x", "w", "c"] if data.draw(st.booleans()) else ["x", "w"]
            return [helper.make_node("Gemm", names, ["t"], transB=1)], {"w": w, "c": c}, x, (5, 33)
        case "Conv1":
            x, w = rng.standard_normal((2, 6, 40)), rng.standard_normal((33, 6, 3))
            return [helper.make_node("Conv", ["x", "w"], ["t"], pads=[1, 1])], {"w": w}, x, (2, 33, 40)
        case "Conv3":
            group = data.draw(st.sampled_from([1, 6]))
            x, w, c = rng.standard_normal((2, 6, 5, 8, 9)), rng.standard_normal((12, 6 // group, 3, 3, 3)), np.ones(12)
            nodes = [helper.make_node("Conv", ["x", "w", "c"], ["t"], pads=[1] * 6, group=group)]
            return nodes, {"w": w, "c": c}, x, (2, 12, 5, 8, 9)
        case _:
            group = data.draw(st.sampled_from([1, 16]))
            x, w, c = (
                rng.standard_normal((2, 16, 9, 9)),
                rng.standard_normal((32, 16 // group, 3, 3)),
                rng.standard_normal(32),
            )
            nodes = [helper.make_node("Conv", ["x", "w", "c"], ["t"], pads=[1] * 4, group=group)]
            return nodes, {"w": w, "c": c}, x, (2, 32, 9, 9)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_chains_are_the_readable_steps(tier, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    nodes, weights, x, shape = product(data, rng)
    last, feeds = "t", {"x": x.astype(np.float32)}
    for place in range(data.draw(st.integers(0, 3))):
        kind = data.draw(st.sampled_from(["vector", "residual", "row", "scalar"]))
        form = {"vector": shape[-1:], "residual": shape, "row": (1, *shape[1:]), "scalar": ()}[kind]
        extra = rng.standard_normal(form).astype(np.float32)
        if data.draw(st.booleans()):
            weights[f"e{place}"] = extra
        else:
            feeds[f"e{place}"] = extra
        names = [last, f"e{place}"] if data.draw(st.booleans()) else [f"e{place}", last]
        nodes.append(helper.make_node(data.draw(st.sampled_from(["Add", "Sum"])), names, [f"a{place}"]))
        last = f"a{place}"
    for place in range(data.draw(st.integers(0, 2))):
        op, attributes = data.draw(st.sampled_from(ACTIVATIONS))
        names = [last]
        if op == "Clip":
            weights.update(low=np.float32(-0.5), high=np.float32(1.5))
            names += data.draw(st.sampled_from([[], ["low"], ["", "high"], ["low", "high"]]))
        nodes.append(helper.make_node(op, names, [f"b{place}"], **attributes))
        last = f"b{place}"
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, each.shape) for name, each in feeds.items()]
    output = helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, None)
    initializers = [numpy_helper.from_array(np.asarray(each, np.float32), name) for name, each in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, [output], initializers)
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)]))
    with np.errstate(all="ignore"):
        got, wanted = model.run(feeds)[last], model.run(feeds, reference=True)[last]
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4)


def test_a_chain_runs_at_once(kernels):
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (float[1, 8, 6, 6] x, float[1, 4, 6, 6] r) => (float[1, 4, 6, 6] y) {
        w = Constant <value_floats = [%s]> () s = Constant <value_ints = [4, 8, 1, 1]> () k = Reshape (w, s)
        [conv] t = Conv (x, k) [sum] a = Add (t, r) [relu] y = Relu (a)
    }"""
    model = onnxeval.load(onnx.parser.parse_model(text % ", ".join(["0.5"] * 32)))
    (step,) = model.plan().steps
    assert step.label == "conv (Conv-11) + sum (Add-14) + relu (Relu-14)"
    assert step.kernel.head.length == 3
    x, r = np.ones((1, 8, 6, 6), np.float32), np.full((1, 4, 6, 6), -5, np.float32)
    r[0, 0, 0, 0] = 1
    y = model.run({"x": x, "r": r})["y"]
    assert y[0, 0, 0, 0] == 5
    assert y.sum() == 5


def test_an_error_names_the_node_it_is_of(kernels):
    text = """<ir_version: 10, opset_import: ["": 21]> g (float[N, 8] x, float[M, 8] w, float[K] c) => (float[N, 8] y) {
        [product] t = MatMul (x, w) [sum] a = Add (t, c) [relu] y = Relu (a)
    }"""
    model = onnxeval.load(onnx.parser.parse_model(text))
    x, w = np.ones((2, 8), np.float32), np.ones((8, 8), np.float32)
    with pytest.raises(onnxeval.NodeError, match=r"sum \(Add-14\)"):
        model.run({"x": x, "w": w, "c": np.ones(3, np.float32)})
    with pytest.raises(onnxeval.NodeError, match=r"product \(MatMul-13\)"):
        model.run({"x": x, "w": w[:5], "c": np.ones(8, np.float32)})


@pytest.mark.parametrize("bias", [(5,), (1, 5), (1, 1, 5), (1, 1, 1, 5), (1, 1), (1,)])
@pytest.mark.parametrize("shape", [(4, 6), (2, 4, 6), (1, 1, 4, 6)])
def test_a_bias_on_any_axes(tier, shape, bias):
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    weights = {"w": rng.standard_normal((6, 5)).astype(np.float32), "b": rng.standard_normal(bias).astype(np.float32)}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)]))
    for _ in range(5):
        x = rng.standard_normal(shape).astype(np.float32)
        wanted = np.maximum(x @ weights["w"] + weights["b"], 0)
        got = model.run({"x": x})["y"]
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)

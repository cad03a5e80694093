"""What Gradient differentiates, with respect to what and where: the text, sentence by sentence."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from ops.training.differences import differences, gradient, model_of

import onnxeval
from onnxeval.registry import OpKey, Registry
from onnxeval.schema import known_versions

RNG = np.random.default_rng(5)
node = helper.make_node


def normal(*shape):
    return RNG.normal(size=shape)


def run(nodes, feeds, outputs, **options):
    return model_of(nodes, [*feeds], outputs, **options).run(feeds)


# The examples of the text

CONV_GEMM = [
    node("Conv", ["X", "W"], ["C"]),
    node("Flatten", ["C"], ["H"]),
    node("Gemm", ["H", "Z"], ["Y"]),
]
FEEDS = {"X": normal(2, 1, 4), "W": normal(2, 1, 2), "Z": normal(6, 3)}


def test_with_respect_to_some_of_the_inputs() -> None:
    model = model_of([*CONV_GEMM, gradient("WZ", "Y", ["dW", "dZ"], zs="X")], [*FEEDS], ["Y", "dW", "dZ"])
    got = model.run(FEEDS)
    np.testing.assert_allclose(got["dW"], differences(model, FEEDS, "W", "Y"), rtol=1e-6)
    np.testing.assert_allclose(got["dZ"], differences(model, FEEDS, "Z", "Y"), rtol=1e-6)


def test_with_respect_to_intermediate_values() -> None:
    got = run([*CONV_GEMM, gradient("HZ", "Y", ["dH", "dZ"])], FEEDS, ["H", "dH", "dZ"])
    np.testing.assert_allclose(got["dH"], np.broadcast_to(FEEDS["Z"].sum(1), (2, 6)))
    np.testing.assert_allclose(got["dZ"], np.broadcast_to(got["H"].sum(0)[:, None], (6, 3)))


def test_at_other_values_than_those_named() -> None:
    feeds = {**FEEDS, "H_1": normal(2, 6), "Z_1": normal(6, 3)}
    got = run([*CONV_GEMM, gradient("HZ", "Y", ["dH", "dZ"], inputs=["H_1", "Z_1"])], feeds, ["dH", "dZ"])
    np.testing.assert_allclose(got["dH"], np.broadcast_to(feeds["Z_1"].sum(1), (2, 6)))
    np.testing.assert_allclose(got["dZ"], np.broadcast_to(feeds["H_1"].sum(0)[:, None], (6, 3)))


def test_outputs_may_be_blank_or_left_out() -> None:
    for outputs in (["", "dZ"], ["dW"], ["dW", ""]):
        asked = [name for name in outputs if name]
        got = run([*CONV_GEMM, gradient("WZ", "Y", outputs, zs="X")], FEEDS, asked)
        full = run([*CONV_GEMM, gradient("WZ", "Y", ["dW", "dZ"], zs="X")], FEEDS, asked)
        for name in asked:
            np.testing.assert_array_equal(got[name], full[name])


def test_the_second_derivatives_of_a_loss() -> None:
    nodes = [
        node("Gemm", ["X", "W"], ["Y"]),
        node("Sub", ["Y", "L"], ["D"]),
        node("Exp", ["D"], ["E"]),
        node("ReduceSumSquare", ["E"], ["O"], keepdims=0),
        gradient("XW", "O", ["dX", "dW"], zs="L"),
        gradient("XW", "dW", ["dWdX", "dWdW"], zs="L"),
    ]
    feeds = {"X": normal(3, 2), "W": normal(2, 2), "L": normal(3, 2)}
    model = model_of(nodes, [*feeds], ["dX", "dW", "dWdX", "dWdW"])
    got = model.run(feeds)
    for name, target, of in (("dX", "O", "X"), ("dW", "O", "W"), ("dWdX", "dW", "X"), ("dWdW", "dW", "W")):
        np.testing.assert_allclose(got[name], differences(model, feeds, of, target), rtol=1e-5)


def test_derivatives_of_any_order() -> None:
    nodes = [node("Mul", ["x", "x"], ["s"]), node("Mul", ["s", "s"], ["d0"])]
    nodes += [gradient("x", f"d{order}", [f"d{order + 1}"]) for order in range(5)]
    got = run(nodes, {"x": np.array(3.0)}, [f"d{order}" for order in range(6)])
    assert [value.item() for value in got.values()] == [81, 108, 108, 72, 24, 0]


def test_values_that_zs_leave_out_are_those_of_the_graph() -> None:
    """The text wants all that determine y; what is missing keeps its value, and outer gradients see it."""
    nodes = [
        node("Exp", ["b"], ["e"]),
        node("Mul", ["a", "e"], ["y"]),
        gradient("a", "y", ["g"]),
        gradient("b", "g", ["h"]),
    ]
    got = run(nodes, {"a": np.array(2.0), "b": np.array(1.0)}, ["g", "h"])
    np.testing.assert_allclose([got["g"], got["h"]], np.e)


# What comes out


def test_the_elements_of_the_target_are_added_up() -> None:
    got = run([node("Mul", ["x", "x"], ["y"]), gradient("x", "y", ["g"])], {"x": np.array([1.0, 2.0])}, ["g"])
    assert got["g"].tolist() == [2, 4]


def test_zero_where_the_target_does_not_depend_on_a_variable() -> None:
    nodes = [node("Neg", ["a"], ["y"]), gradient("ab", "y", ["da", "db"])]
    got = run(nodes, {"a": np.ones(2), "b": np.ones((3, 1), np.float16)}, ["db"])
    assert got["db"].tolist() == [[0], [0], [0]]
    assert got["db"].dtype == np.float16


def test_the_target_may_be_a_variable() -> None:
    assert run([gradient("x", "x", ["g"])], {"x": np.zeros(2)}, ["g"])["g"].tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_gradients_have_the_type_of_their_variables(dtype) -> None:
    nodes = [
        node("Cast", ["x"], ["n"], to=TensorProto.BFLOAT16),
        node("Exp", ["n"], ["e"]),
        node("Cast", ["e"], ["y"], to=TensorProto.DOUBLE),
        gradient("x", "y", ["g"]),
    ]
    got = run(nodes, {"x": np.array([0.5, -1], dtype)}, ["g"])["g"]
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.exp([0.5, -1]), rtol=2**-8)


def test_the_target_may_be_of_16_bits() -> None:
    nodes = [node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16), gradient("x", "y", ["g"])]
    got = run(nodes, {"x": np.ones(2, np.float32)}, ["g"])["g"]
    assert (got.dtype, got.tolist()) == (np.float32, [1, 1])


def test_what_comes_in_steps_lets_nothing_back() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Cast", ["s"], ["f"], to=TensorProto.DOUBLE),
        node("ArgMax", ["x"], ["a"], keepdims=1),
        node("Cast", ["a"], ["i"], to=TensorProto.DOUBLE),
        node("Less", ["x", "x"], ["l"]),
        node("Cast", ["l"], ["b"], to=TensorProto.DOUBLE),
        node("Sum", ["f", "i", "b", "x"], ["y"]),
        gradient("x", "y", ["g"]),
    ]
    assert run(nodes, {"x": np.array([3.0])}, ["g"])["g"].tolist() == [1]


def test_empty_tensors() -> None:
    nodes = [node("Exp", ["x"], ["e"]), node("ReduceProd", ["e"], ["y"]), gradient("x", "y", ["g"])]
    assert run(nodes, {"x": np.zeros((0, 2))}, ["g"])["g"].shape == (0, 2)


def test_a_fed_initializer_is_seen() -> None:
    graph = helper.make_graph(
        [node("Mul", ["x", "k"], ["y"]), gradient("x", "y", ["g"])],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "xk"],
        [helper.make_tensor_value_info("g", TensorProto.FLOAT, [])],
        [onnx.numpy_helper.from_array(np.float32(2), "k")],
    )
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.preview.training", 1)]
    model = onnxeval.load(helper.make_model(graph, opset_imports=imports, ir_version=10))
    assert model.run({"x": np.float32(1)})["g"] == 2
    assert model.run({"x": np.float32(1), "k": np.float32(5)})["g"] == 5


# Kinks and extremes


@pytest.mark.parametrize(
    ("op_type", "inputs", "slopes"),
    [
        ("Abs", [[0.0, -2.0]], [[0, -1]]),
        ("Relu", [[0.0, 1.0]], [[0, 1]]),
        ("Max", [[1.0, 2.0], [1.0, 1.0]], [[0.5, 1], [0.5, 0]]),
        ("Min", [[1.0, 2.0], [1.0, 1.0]], [[0.5, 0], [0.5, 1]]),
        ("ReduceMax", [[3.0, 1.0, 3.0]], [[0.5, 0, 0.5]]),
        ("ReduceL2", [[0.0, 0.0]], [[0, 0]]),
        ("Pow", [[0.0, 0.0, 2.0], [2.0, 0.0, 0.0]], [[0, 0, 0], [0, 0, np.log(2)]]),
        ("Clip", [[-1.0, 0.0, 2.0], 0.0, 2.0], [[0, 1, 1], 1, 0]),
        ("Sigmoid", [[-1000.0, 0.0, 1000.0]], [[0, 0.25, 0]]),
        ("Tanh", [[-1000.0, 0.0, 1000.0]], [[0, 1, 0]]),
        ("Softplus", [[-1000.0, 0.0, 1000.0]], [[0, 0.5, 1]]),
        ("Elu", [[-1000.0, 1000.0]], [[0, 1]]),
        ("Mish", [[-1000.0, 1000.0]], [[0, 1]]),
        ("Gelu", [[-1000.0, 1000.0]], [[0, 1]]),
        ("ReduceLogSumExp", [[1000.0, 0.0, 1000.0]], [[0.5, 0, 0.5]]),
        ("Softmax", [[1000.0, 0.0]], [[0, 0]]),
        ("LpNormalization", [[0.0, 0.0]], [[0, 0]]),
    ],
)
def test_at_kinks_and_extremes(op_type, inputs, slopes) -> None:
    feeds = {f"x{place}": np.array(value) for place, value in enumerate(inputs)}
    outputs = [f"g{place}" for place in range(len(feeds))]
    got = run([node(op_type, [*feeds], ["y"]), gradient([*feeds], "y", outputs)], feeds, outputs)
    for name, slope in zip(outputs, slopes, strict=True):
        np.testing.assert_allclose(got[name], slope, atol=1e-12)


def test_of_equal_maxima_in_a_window_the_first_counts() -> None:
    nodes = [node("MaxPool", ["x"], ["y"], kernel_shape=[3]), gradient("x", "y", ["g"])]
    assert run(nodes, {"x": np.array([[[1.0, 1, 0]]])}, ["g"])["g"].tolist() == [[[1, 0, 0]]]


def test_layer_normalization_by_its_formula() -> None:
    x, scale = normal(3, 5).astype(np.float32), normal(5).astype(np.float32)
    weights = normal(3, 5).astype(np.float32)
    nodes = [
        node("LayerNormalization", ["x", "scale"], ["n"]),
        node("Mul", ["n", "weights"], ["y"]),
        gradient(["x"], "y", ["g"], zs=["scale", "weights"]),
    ]
    got = run(nodes, {"x": x, "scale": scale, "weights": weights}, ["g"])["g"]
    inverse = 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    normed = (x - x.mean(1, keepdims=True)) * inverse
    back = weights * scale
    expected = inverse * (back - back.mean(1, keepdims=True) - normed * (back * normed).mean(1, keepdims=True))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "InstanceNormalization"])
def test_sums_beyond_16_bits(op_type) -> None:
    x = normal(1, 1, 300, 300).astype(np.float16)
    parameters = {"scale": np.ones(1, np.float16), "bias": np.ones(1, np.float16)} if op_type[0] == "I" else {}
    nodes = [node(op_type, ["x", *parameters], ["n"]), node("Mul", ["n", "n"], ["y"]), gradient(["x"], "y", ["g"])]
    wide = {name: value.astype(np.float64) for name, value in {"x": x, **parameters}.items()}
    got, expected = run(nodes, {"x": x, **parameters}, ["g"])["g"], run(nodes, wide, ["g"])["g"]
    np.testing.assert_allclose(got.astype(float), expected, rtol=0.01, atol=0.005)


# Errors


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Det", ["x"], ["y"], name="volume"), gradient("x", "y", ["g"])], r"volume \(Det-22\) has no derivative"),
        (
            [node("Resize", ["x", "", "s"], ["y"], mode="linear"), gradient("x", "y", ["g"], zs="s")],
            r"node 0 \(Resize-19\) has no derivative in the mode 'linear'",
        ),
        (
            [node("ScatterND", ["x", "i", "x"], ["y"], reduction="mul"), gradient("x", "y", ["g"])],
            r"no derivative with the reduction 'mul'",
        ),
        (
            [
                node("Cast", ["x"], ["n"], to=TensorProto.FLOAT8E5M2),
                node("Cast", ["n"], ["y"], to=TensorProto.FLOAT),
                gradient("x", "y", ["g"]),
            ],
            r"no derivative from float8_e5m2 to float32",
        ),
        (
            [
                node("SequenceConstruct", ["x"], ["l"]),
                node("SequenceAt", ["l", "one"], ["y"]),
                gradient("x", "y", ["g"]),
            ],
            r"SequenceAt-11\) has no derivative here",
        ),
        (
            [node("Neg", ["x"], ["y"]), gradient("x", "y", ["g"], inputs=["x", "s"])],
            r"name 1 tensors \(x\), .* 2 inputs",
        ),
        ([node("Neg", ["x"], ["y"]), gradient("xx", "y", ["g"])], "name a tensor twice: x, x"),
        ([node("Neg", ["x"], ["y"]), gradient("x", "y", ["g", "h"])], "xs names 1 tensors, the node lists 2 outputs"),
        ([node("Neg", ["i"], ["y"]), gradient("i", "y", ["g"])], r'"i" is int64\[2, 1\], expected a tensor of float16'),
        ([node("Shape", ["x"], ["y"]), gradient("x", "y", ["g"])], r'"y" is int64\[2\], expected a tensor of float16'),
        ([node("Add", ["x", "i"], ["y"]), gradient("x", "y", ["g"])], r"gradient \(Gradient-1\) > node 0 \(Add-14\)"),
    ],
)
def test_what_fails_while_running(nodes, message) -> None:
    feeds = {
        "x": normal(2, 2).astype(np.float32),
        "i": np.array([[0], [1]]),
        "s": np.array([1.0, 2.0], np.float32),
        "one": np.array(0),
    }
    with pytest.raises(onnxeval.NodeError, match=message):
        run(nodes, feeds, ["g"])


@pytest.mark.parametrize(
    ("node_", "message"),
    [
        (gradient(["W", "Q"], "Y", ["g"], inputs=["W", "W"]), '"Q" is never defined'),
        (gradient(["W"], "Q", ["g"]), 'no node computes the value "Q"'),
        (gradient(["W", "H"], "Y", ["g"]), '"H" is computed from "W"'),
        (gradient(["H"], "Y", ["g"], zs=["X"]), '"H" is computed from "X"'),
        (gradient(["W"], "Y", ["g"], inputs=[""]), 'Gradient-1 needs its input 0 "Inputs", it is blank'),
    ],
)
def test_what_fails_while_compiling(node_, message) -> None:
    with pytest.raises(onnxeval.ModelError, match=message):
        run([*CONV_GEMM, node_], FEEDS, ["g"])


def test_an_unused_input_may_be_named() -> None:
    nodes = [node("Neg", ["a"], ["y"]), gradient("ab", "y", ["", "g"], inputs=["a", "a"])]
    assert run(nodes, {"a": np.ones(1), "b": np.ones(1)}, ["g"])["g"] == 0


# The table of rules


def test_every_version_of_an_operator_with_a_rule_has_one() -> None:
    registry = Registry.standard()
    from onnxeval.ops.training import _tape  # a private table, filled where the section is loaded

    for op_type, rules in _tape._RULES.items():
        for version in rules:
            assert OpKey("", op_type, version) in registry
        for version in known_versions("", op_type):
            assert _tape.rule_for(OpKey("", op_type, version)) is not None, f"{op_type}-{version} has no rule"

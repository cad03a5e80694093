"""What kernels make of constants once: the same results, wherever the constants stand."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnxeval
from onnxeval.fast.engine import native

RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(-128, 128, (40, 3)).astype(np.int8)
X = RNG.integers(0, 256, (2, 40)).astype(np.uint8)
WANTED = (X.astype(np.int64) - 7) @ (WEIGHTS.astype(np.int64) - 1)


@pytest.fixture(autouse=True)
def _without_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """They pack weights themselves."""
    monkeypatch.setenv("ONNXEVAL_NATIVE", "0")


def model_of(*, weights_fed: bool = False, zero_point=1) -> onnxeval.Model:
    constants = {"x_zero": np.uint8(7), "w_zero": np.asarray(zero_point, np.int8), "w": WEIGHTS}
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, [2, 40])]
    if weights_fed:
        del constants["w"]
        inputs.append(helper.make_tensor_value_info("w", onnx.TensorProto.INT8, [40, 3]))
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w", "x_zero", "w_zero"], ["y"])],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [2, 3])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))


def is_prepared(model: onnxeval.Model, **how) -> bool:
    (step,) = model.plan(**how).steps
    return "prepared" in step.attributes


def test_constant_weights_are_prepared() -> None:
    model = model_of()
    assert is_prepared(model)
    np.testing.assert_array_equal(model.run({"x": X})["y"], WANTED)
    assert not is_prepared(model, reference=True)
    np.testing.assert_array_equal(model.run({"x": X}, reference=True)["y"], WANTED)


def test_weights_that_compiled_kernels_pack_are_not_kept_as_floats_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONNXEVAL_NATIVE")
    if native() is None:
        pytest.skip("no compiled kernels")
    assert not is_prepared(model_of())


def test_fed_weights_are_not() -> None:
    model = model_of(weights_fed=True)
    assert not is_prepared(model)
    np.testing.assert_array_equal(model.run({"x": X, "w": WEIGHTS})["y"], WANTED)


def test_an_error_in_the_constants_is_told_when_the_model_runs() -> None:
    model = model_of(zero_point=[1, 2])
    assert not is_prepared(model)
    with pytest.raises(onnxeval.NodeError, match=r"b_zero_point of shape \[1, 2\]"):
        model.run({"x": X})


def test_sub_graphs_are_prepared() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (uint8[1, 2] x, bool c) => (int32[1, 1] y)
        <int8[2, 1] w = {3, 4}> {
            y = If (c) <
                then_branch = t () => (int32[1, 1] r) { r = MatMulInteger (x, w) },
                else_branch = e () => (int32[1, 1] s) { s = MatMulInteger (x, w) }
            >
        }"""
    model = onnxeval.load(onnx.parser.parse_model(text))
    (step,) = model.plan().steps
    assert all("prepared" in inner.attributes for body in step.subgraphs.values() for inner in body.steps)
    for condition in (True, False):
        assert model.run({"x": np.array([[1, 2]], np.uint8), "c": np.array(condition)})["y"].tolist() == [[11]]


@pytest.mark.parametrize("depth", [257, 300, 70_000])
def test_sums_beyond_float32_stay_exact(depth: int) -> None:
    a, b = np.full((1, depth), 255, np.uint8), np.full((depth, 2), -128, np.int8)
    b[0, 1] = 127
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, list(a.shape))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [1, 2])],
        [numpy_helper.from_array(b, "b")],
    )
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    wanted = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)  # the last depth wraps around
    np.testing.assert_array_equal(model.run({"a": a})["y"], wanted)

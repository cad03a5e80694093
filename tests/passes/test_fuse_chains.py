"""Chains: which steps are one, what an error in one says, and that nothing else changes."""

import numpy as np
import pytest
from onnx import numpy_helper, parser
from passes.plans import operators

import onnxeval

RNG = np.random.default_rng(2)


def model(body: str, inputs: str = "float[N,M] x, float[A,B] z", constants: dict | None = None, outputs="float y"):
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => ({outputs}) {{ {body} }}')
    for name, value in (constants or {}).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnxeval.load(proto)


def check(loaded, feeds, lengths) -> None:
    results, wanted = (loaded.run(feeds, reference=reference) for reference in (False, True))
    for name in wanted:
        # compiled kernels may differ in the last places
        np.testing.assert_allclose(results[name], wanted[name], rtol=1e-5, atol=1e-6)
    found = [len(step.fused) or 1 for step in loaded.plan().steps]
    assert found == lengths
    assert sorted(operators(loaded.plan())) == sorted(operators(loaded.plan(reference=True)))


def arrays(*shapes) -> dict:
    return {name: RNG.normal(size=shape).astype(np.float32) for name, shape in zip("xz", shapes, strict=False)}


def test_a_product_with_bias_residual_and_activation():
    constants = {"w": RNG.normal(size=(8, 6)).astype(np.float32), "b": np.ones(6, np.float32)}
    loaded = model("a = MatMul (x, w) c = Add (b, a) d = Add (c, z) y = Relu (d)", constants=constants)
    check(loaded, arrays((4, 8), (4, 6)), [4])
    (step,) = loaded.plan().steps
    assert step.label == "node 0 (MatMul-13) + node 1 (Add-14) + node 2 (Add-14) + node 3 (Relu-14)"


@pytest.mark.parametrize("several", ["", ", b"])
def test_a_sum_of_two_or_more_goes_on(several):
    constants = {"w": RNG.normal(size=(8, 6)).astype(np.float32), "b": np.ones(6, np.float32)}
    loaded = model(f"a = MatMul (x, w) d = Sum (z, a{several}) y = Relu (d)", constants=constants)
    check(loaded, arrays((4, 8), (4, 6)), [3])


@pytest.mark.parametrize("shape", [(6,), (1, 6), (1, 1, 6), (1,), (4, 1)])
@pytest.mark.parametrize("rows", [(4,), (2, 4)])
def test_a_bias_of_any_shape(shape, rows):
    constants = {"w": RNG.normal(size=(8, 6)).astype(np.float32), "b": RNG.normal(size=shape).astype(np.float32)}
    loaded = model("a = MatMul (x, w) c = Add (a, b) y = Relu (c)", "float x", constants=constants)
    loaded = onnxeval.load(_without_shapes(loaded.proto))
    feeds = {"x": RNG.normal(size=(*rows, 8)).astype(np.float32)}
    results = [loaded.run(feeds, reference=reference)["y"] for reference in (False, True)]
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


def _without_shapes(proto):
    for value in proto.graph.input:
        value.type.tensor_type.ClearField("shape")
    return proto


def test_a_residual_that_is_larger():
    loaded = model(
        "a = MatMul (x, w) y = Add (a, z)", "float[N,M] x, float[A,B,C] z", {"w": np.ones((8, 6), np.float32)}
    )
    check(loaded, arrays((4, 8), (2, 1, 6)), [2])
    check(loaded, arrays((1, 8), (3, 5, 6)), [2])


def test_what_is_read_twice():
    check(model("a = Exp (x) b = Mul (a, a) y = Sub (z, b)"), arrays((3, 4), (3, 4)), [3])
    check(
        model("a = Exp (x) b = Neg (a) c = Relu (a) y = Add (b, c)"), arrays((3, 4)) | arrays((3, 4), (3, 4)), [1, 1, 2]
    )
    check(model("a = Exp (x) y = Add (a, z)", outputs="float y, float a"), arrays((3, 4), (3, 4)), [1, 1])


def test_the_product_goes_on():
    constants = {"w": np.eye(4, dtype=np.float32)}
    loaded = model("a = MatMul (x, w) b = Exp (z) y = Add (a, b)", constants=constants)
    check(loaded, arrays((3, 4), (3, 4)), [1, 2])
    assert operators(loaded.plan()) == ["Exp", "MatMul", "Add"]


def test_large_arrays_are_written_in_place():
    feeds = arrays((200, 200), (200, 200))
    kept = {name: value.copy() for name, value in feeds.items()}
    loaded = model(
        "a = Add (x, z) b = Sub (z, a) c = Relu (b) d = Clip (c, low, high) y = Sqrt (d)",
        constants={"low": np.float32(0), "high": np.float32(2)},
    )
    for _ in range(2):
        check(loaded, feeds, [5])
    for name, value in feeds.items():
        np.testing.assert_array_equal(value, kept[name])


def test_many_steps_are_several_chains():
    body = " ".join(f"v{i + 1} = Neg ({f'v{i}' if i else 'x'})" for i in range(50))
    loaded = model(f"{body} y = Exp (v50)")
    lengths = [len(step.fused) for step in loaded.plan().steps]
    assert sum(lengths) == 51
    assert max(lengths) < 30


def test_an_error_names_its_own_node():
    loaded = model("a = Exp (x) [grow] b = Add (a, z) y = Neg (b)")
    for reference in (True, False):
        with pytest.raises(onnxeval.NodeError) as caught:
            loaded.run(arrays((3, 4), (3, 5)), reference=reference)
        assert str(caught.value).splitlines()[:2] == ["grow (Add-14)", "  inputs: a float32[3, 4], z float32[3, 5]"]


def test_a_type_that_does_not_fit_is_refused():
    loaded = model("a = Exp (x) [grow] b = Add (a, z) y = Neg (b)", "float[N,M] x, double[N,M] z")
    feeds = arrays((3, 4), (3, 4))
    feeds["z"] = feeds["z"].astype(np.float64)
    texts = []
    for reference in (True, False):
        with pytest.raises(onnxeval.NodeError, match="grow") as caught:
            loaded.run(feeds, reference=reference)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "double"])
def test_rank_0_keeps_its_type(dtype):
    loaded = model("a = Exp (x) b = Mul (a, a) y = Tanh (b)", f"{dtype} x", outputs=f"{dtype} y")
    x = np.asarray(0.75, loaded.inputs[0].dtype)
    results = [loaded.run({"x": x}, reference=reference)["y"] for reference in (False, True)]
    assert results[0].dtype == results[1].dtype == x.dtype
    assert results[0] == results[1]

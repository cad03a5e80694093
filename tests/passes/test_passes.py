"""Each pass by itself: what it rewrites, and what it must leave alone."""

import os
from unittest import mock

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from passes.plans import operators

import onnxeval
from onnxeval.limits import Limits

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'
RNG = np.random.default_rng(0)


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def labels(model: onnxeval.Model) -> list[str]:
    return [step.label for step in model.plan().steps]


def test_what_depends_on_no_input_is_computed_once() -> None:
    model = onnxeval.load(
        parse(
            f"""{HEADER} g (float[2] x) => (float[2] y) {{
                [two] k = Constant <value_float = 2.0> ()
                [square] s = Mul (k, k)
                [scale] y = Mul (x, s)
            }}"""
        )
    )
    assert labels(model) == ["scale (Mul-14)"]
    assert model.run({"x": np.array([1, 2], np.float32)})["y"].tolist() == [4, 8]


def test_an_error_among_constants_is_told_when_the_model_runs() -> None:
    model = onnxeval.load(
        parse(
            f"""{HEADER} g (float[2] x) => (float[M] y) {{
                a = Constant <value = float[2] {{1, 2}}> () b = Constant <value = float[3] {{1, 2, 3}}> ()
                [sum] c = Add (a, b) y = Mul (x, c)
            }}"""
        )
    )
    with pytest.raises(onnxeval.NodeError, match=r"sum \(Add-14\)"):
        model.run({"x": np.zeros(2, np.float32)})


def test_random_numbers_are_drawn_anew_each_run() -> None:
    model = onnxeval.load(parse(f"{HEADER} g () => (float[3] y) {{ y = RandomNormal <shape = [3]> () }}"))
    assert model.run({})["y"].tolist() != model.run({})["y"].tolist()
    assert model.run({}, seed=1)["y"].tolist() == model.run({}, seed=1)["y"].tolist()


def test_sub_graphs_see_the_constants_around_them() -> None:
    model = onnxeval.load(
        parse(
            f"""{HEADER} g (float[2] x, bool c) => (float[2] y) {{
                k = Constant <value_float = 2.0> ()
                y = If (c) <
                    then_branch = t () => (float[2] r) {{ s = Mul (k, k) r = Mul (x, s) }},
                    else_branch = e () => (float[2] r) {{ r = Identity (x) }}
                >
            }}"""
        )
    )
    (step,) = model.plan().steps
    assert [inner.label for inner in step.subgraphs["then_branch"].steps] == ["node 1 (Mul-14)"]
    assert model.run({"x": np.ones(2, np.float32), "c": np.array(True)})["y"].tolist() == [4, 4]


def test_identities_go_and_outputs_stay() -> None:
    model = onnxeval.load(
        parse(
            f"""{HEADER} g (float[2] x) => (float[2] y, float[2] z) {{
                a = Identity (x) b = Dropout (a) [neg] y = Neg (b) [out] z = Identity (a)
            }}"""
        )
    )
    assert labels(model) == ["neg (Neg-13)", "out (Identity-21)"]
    got = model.run({"x": np.array([1, 2], np.float32)})
    assert (got["y"].tolist(), got["z"].tolist()) == ([-1, -2], [1, 2])
    assert model.run({"x": np.array([1, 2], np.float32)}, outputs=["a", "b"])["b"].tolist() == [1, 2]


def conv_and_norm(opset: int, *, read_twice: bool) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], "norm"),
        helper.make_node("Add", ["n", "c" if read_twice else "n"], ["y"], "sum"),
    ]
    arrays = {
        "w": RNG.normal(size=(4, 3, 2, 2)),
        "scale": RNG.normal(size=4),
        "shift": RNG.normal(size=4),
        "mean": RNG.normal(size=4),
        "var": RNG.uniform(0.1, 2, size=4),
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 5, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


@pytest.mark.parametrize("opset", [7, 9, 13, 15, 21])
def test_batch_normalization_becomes_part_of_the_convolution(opset: int) -> None:
    model = onnxeval.load(conv_and_norm(opset, read_twice=False))
    (label,) = labels(model)
    first, second, third = label.split(" + ")
    assert first.startswith("conv (Conv-")
    assert second.startswith("norm (BatchNormalization-")
    assert third.startswith("sum (Add-")
    assert operators(model.plan()) == ["Conv", "Add"]
    x = RNG.normal(size=(1, 3, 5, 5)).astype(np.float32)
    wanted = model.run({"x": x}, reference=True)["y"]
    np.testing.assert_allclose(model.run({"x": x})["y"], wanted, rtol=1e-5, atol=1e-5)


def test_a_convolution_that_is_read_elsewhere_stays() -> None:
    model = onnxeval.load(conv_and_norm(15, read_twice=True))
    assert labels(model) == ["conv (Conv-11)", "norm (BatchNormalization-15) + sum (Add-14)"]
    model = onnxeval.load(conv_and_norm(15, read_twice=False))
    assert model.run({"x": np.zeros((1, 3, 5, 5), np.float32)}, outputs=["c", "y"])["c"].shape == (1, 4, 4, 4)


UNARY = ["Neg", "Relu", "Tanh", "Exp", "Identity", "Transpose", "Flatten", "Sigmoid"]
BINARY = ["Add", "Sub", "Mul"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_reused_memory_is_nobody_elses(data: st.DataObject) -> None:
    """Random graphs of element-wise steps and views on arrays large enough to be reused, against the readable path."""
    side = 100  # 100 x 100 float32 is above the least size that is reused
    names = ["x", "w"]
    nodes = []
    for place in range(data.draw(st.integers(2, 10))):
        op = data.draw(st.sampled_from(UNARY + BINARY))
        reads = [data.draw(st.sampled_from(names)) for _ in range(2 if op in BINARY else 1)]
        nodes.append(helper.make_node(op, reads, [f"v{place}"]))
        names.append(f"v{place}")
    outputs = data.draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True))
    info = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [side, side]) for name in ["x", *outputs]}
    w = np.linspace(-0.5, 0.5, side * side, dtype=np.float32).reshape(side, side)
    initializers = [numpy_helper.from_array(w, "w")]
    graph = helper.make_graph(nodes, "g", [info["x"]], [info[name] for name in outputs], initializers)
    model = onnxeval.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    x = np.linspace(-1, 1, side * side, dtype=np.float32).reshape(side, side)
    kept = x.copy()
    wanted = model.run({"x": x}, reference=True)
    for _ in range(2):
        with mock.patch.dict(os.environ, ONNXEVAL_NATIVE="0"):  # compiled curves may differ in the last place
            got = model.run({"x": x})
        for name in outputs:
            np.testing.assert_array_equal(got[name], wanted[name])
        np.testing.assert_array_equal(x, kept)


def test_memory_is_reused_at_all() -> None:
    model = onnxeval.load(parse(f"{HEADER} g (float[N] x) => (float[N] y) {{ a = Neg (x) y = Relu (a) }}"))
    with mock.patch.dict(os.environ, ONNXEVAL_NATIVE="0"):  # compiled kernels have memory of their own
        (step,) = model.plan().steps
    kernel = step.kernel.parts[1].quick
    assert kernel is not model.plan(reference=True).steps[1].kernel
    a = np.linspace(-1, 1, 10_000, dtype=np.float32)
    assert kernel(a) is a
    small = np.ones(4, np.float32)
    assert kernel(small) is not small


@pytest.mark.parametrize("branch", [False, True])
def test_a_function_on_many_paths_is_rewritten_once(branch: bool) -> None:
    """Each of these calls the next one twice: 2^60 paths lead to the last."""
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("f", 1)]
    last = 60
    functions = [
        helper.make_function(
            "f",
            f"F{k}",
            ["a"],
            ["b"],
            [
                helper.make_node(f"F{k + 1}", ["a"], ["c"], domain="f"),
                helper.make_node(f"F{k + 1}", ["c"], ["b"], domain="f"),
            ],
            imports,
        )
        for k in range(last)
    ]
    functions.append(helper.make_function("f", f"F{last}", ["a"], ["b"], [helper.make_node("Relu", "a", "b")], imports))
    call = helper.make_node("F0", ["x"], ["y"], domain="f")
    if branch:
        bodies = {
            name: helper.make_graph([call], name, [], [helper.make_empty_tensor_value_info("y")]) for name in "te"
        }
        call = helper.make_node("If", ["c"], ["y"], then_branch=bodies["t"], else_branch=bodies["e"])
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    graph = helper.make_graph(
        [call],
        "g",
        [value],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.array(True), "c")] if branch else [],
    )
    model = onnxeval.load(helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10))
    with pytest.raises(onnxeval.ResourceLimitError):
        model.run({"x": np.zeros(2, np.float32)}, limits=Limits(steps=1000))

"""Constant weights are packed once, however many steps and plans read them."""

import weakref

import numpy as np
import pytest
from onnx import helper, numpy_helper

import onnxeval
from onnxeval.fast._shared import shared


def branches(weights, operator):
    """A model whose two branches multiply by the same weights; one result is the other, negated."""
    integers = operator == "MatMulInteger"
    kind, result = (helper.np_dtype_to_tensor_dtype(weights.dtype), 6) if integers else (1, 1)

    def branch(name, last):
        nodes = [
            helper.make_node(operator, ["x", "w"], [f"{name} product"]),
            helper.make_node(last, [f"{name} product"], [name]),
        ]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, result, None)])

    graph = helper.make_graph(
        [
            helper.make_node(
                "If", ["which"], ["y"], then_branch=branch("one", "Identity"), else_branch=branch("two", "Neg")
            )
        ],
        "branches",
        [helper.make_tensor_value_info("which", 9, []), helper.make_tensor_value_info("x", kind, ["n", len(weights)])],
        [helper.make_tensor_value_info("y", result, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("operator", "packed"), [("MatMul", "Matrix"), ("MatMulInteger", "Integers")])
def test_branches_of_an_if_share_weights(kernels, monkeypatch, rng, operator, packed):
    weights = rng.integers(-9, 9, (70, 40)).astype(np.int8 if operator == "MatMulInteger" else np.float32)
    x = rng.integers(-9, 9, (8, 70)).astype(weights.dtype)
    made = []
    make = getattr(kernels, packed)
    monkeypatch.setattr(kernels, packed, lambda *given: made.append(given) or make(*given))
    model = onnxeval.load(branches(weights, operator))
    exact = x.astype(np.int64) @ weights.astype(np.int64)
    for _ in range(4):
        for which, sign in ((True, 1), (False, -1)):
            result = model.run({"which": np.array(which), "x": x})["y"]
            np.testing.assert_array_equal(result, sign * exact)
    assert len(made) == 1


def test_what_is_shared_lives_as_long_as_it_is_held():
    class Made:
        def __init__(self, constant):
            self.constant = constant

    constant, other = np.zeros(3), np.zeros(3)
    held = shared(Made, constant)
    assert shared(Made, constant) is held
    assert shared(Made, other) is not held
    last = weakref.ref(held)
    del held
    assert last() is None

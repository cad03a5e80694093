"""What the Python signature of a kernel demands of the nodes of an operator without a schema."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper
from typing_extensions import TypeAliasType

import onnxeval
from onnxeval.dtypes import Tensor
from onnxeval.errors import ModelError, UnsupportedOperators

if TYPE_CHECKING:
    from nowhere import Unknown

DOMAIN = "test.signature"
Axes = TypeAliasType("Axes", Sequence[int])  # a `type` statement, in Pythons that have none
One = TypeAliasType("One", Tensor)


@onnxeval.op("Blend", domain=DOMAIN, versions=(1,))
def blend(
    x: Tensor,
    y: Tensor | None,
    *,
    count: int,
    weight: float = 0.5,
    mode: str | None = None,
    axes: Sequence[int] = (),
    ends: tuple[float, ...] = (),
    table: Tensor | None = None,
    anything=None,
) -> tuple[Tensor, Tensor]:
    return x, x if y is None else y


@onnxeval.op("Once", domain=DOMAIN, versions=(1,))
def once(x: Tensor) -> Tensor:
    return x


@onnxeval.op("Loose", domain=DOMAIN, versions=(1,))
def loose(x, *, factor=1) -> "Unknown":
    return x


@onnxeval.op("Named", domain=DOMAIN, versions=(1,))
def named(x: One, *, axes: Axes | None = None) -> One:
    return x


@onnxeval.op("Many", domain=DOMAIN, versions=(1,))
def many(x: Tensor, *more: Tensor, n_outputs: int) -> tuple[Tensor, ...]:
    return (x,) * n_outputs


def model(op_type, inputs=("x",), outputs=("y",), **attributes):
    node = helper.make_node(op_type, inputs, outputs, domain=DOMAIN)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([node], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(DOMAIN, 1)], ir_version=10)


X = np.array([1, 2], np.float32)


def run(*args, **attributes):
    return onnxeval.load(model(*args, **attributes)).run({"x": X})["y"]


def test_right_nodes_run() -> None:
    table = helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])
    np.testing.assert_array_equal(
        run("Blend", count=1, weight=0.25, mode="a", axes=[0], ends=[1.0], table=table, anything=3), X
    )
    np.testing.assert_array_equal(run("Blend", ("x", "x"), ("y", "z"), count=1), X)
    np.testing.assert_array_equal(run("Blend", ("x", ""), ("y", "", ""), count=1), X)
    np.testing.assert_array_equal(run("Many", ("x", "x", "x"), ("y", "z", "u")), X)


def test_what_python_does_not_tell_is_not_checked() -> None:
    np.testing.assert_array_equal(run("Loose", factor="a string"), X)
    np.testing.assert_array_equal(run("Blend", count=1, anything=[1.0]), X)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "it needs the attribute count"),
        ({"count": 1.0}, '"count" is of type FLOAT, the operator takes INT'),
        ({"count": 1, "weight": 1}, '"weight" is of type INT, the operator takes FLOAT'),
        ({"count": 1, "mode": 3}, '"mode" is of type INT, the operator takes STRING'),
        ({"count": 1, "axes": 3}, '"axes" is of type INT, the operator takes INTS'),
        ({"count": 1, "axes": [1.0]}, '"axes" is of type FLOATS, the operator takes INTS'),
        ({"count": 1, "ends": [1]}, '"ends" is of type INTS, the operator takes FLOATS'),
        ({"count": 1, "table": [1]}, '"table" is of type INTS, the operator takes TENSOR'),
        ({"count": 1, "wieght": 1.0}, 'it has no attribute "wieght" .it has: count, weight, mode'),
    ],
)
def test_attributes(attributes, message) -> None:
    with pytest.raises(ModelError, match=message):
        run("Blend", **attributes)


def test_named_types() -> None:
    np.testing.assert_array_equal(run("Named", axes=[0]), X)
    with pytest.raises(ModelError, match='"axes" is of type FLOATS, the operator takes INTS'):
        run("Named", axes=[1.0])


def test_an_attribute_given_twice() -> None:
    twice = model("Blend", count=1)
    twice.graph.node[0].attribute.append(helper.make_attribute("count", 2))
    with pytest.raises(ModelError, match='the attribute "count" is given twice'):
        onnxeval.load(twice).run({"x": X})


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("Blend", ("x", "x", "x")), "it takes 2 inputs, 3 given"),
        (("Blend", ("", "x")), 'it needs its input 0 "x"'),
        (("Blend", ()), 'it needs its input 0 "x"'),
        (("Blend", ("x",), ("y", "z", "u")), "it gives 2 outputs, 3 listed"),
        (("Once", ("x",), ("y", "z")), "it gives 1 output, 2 listed"),
        (("Named", ("x",), ("y", "z")), "it gives 1 output, 2 listed"),
        (("Named", ("",)), 'it needs its input 0 "x"'),
    ],
)
def test_inputs_and_outputs(args, message) -> None:
    attributes = {"count": 1} if args[0] == "Blend" else {}
    with pytest.raises(ModelError, match=message):
        run(*args, **attributes)


@pytest.mark.parametrize(
    ("domain", "op_type", "reason"),
    [
        ("com.microsoft", "EPContext", "an execution provider compiled for its device"),
        ("com.microsoft", "PagedAttention", "updated in place"),
        ("com.microsoft", "SkipGroupNorm", "GroupNormalization-21"),
        ("com.microsoft", "BeamSearch", "generation loop around a decoder"),
        ("com.microsoft", "QOrderedMatMul", "in the order of a GPU's matrix units"),
        ("com.microsoft", "LongformerAttention", "no CPU kernel"),
        ("com.microsoft", "DecoderAttention", "no CPU kernel"),
        ("com.microsoft", "MatMulFpQ4", "use MatMulNBits"),
        ("com.microsoft", "SpeculativePrefixCommit", "export the decoder itself"),
        ("ai.onnx.contrib", "SentencepieceTokenizer", "onnxruntime-extensions"),
        ("com.ms.internal.nhwc", "Conv", "save the model with the CPU provider"),
        ("org.pytorch.aten", "ATen", "calls a function of PyTorch"),
        ("com.microsoft", "Nonsense", "neither a registered operator nor a function of the model"),
    ],
)
def test_refused_by_name(domain, op_type, reason) -> None:
    other = model("Once")
    other.graph.node[0].domain, other.graph.node[0].op_type = domain, op_type
    other.opset_import[0].domain = domain
    with pytest.raises(UnsupportedOperators, match=reason):
        onnxeval.load(other).run({"x": X})

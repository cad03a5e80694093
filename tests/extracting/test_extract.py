"""A part of a model: what it keeps, what it leaves out, and that it computes the same."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from extracting.parts import check_parts

import onnxeval
from onnxeval.random_feeds import make_feeds
from onnxeval.suite import load_cases

SAMPLES = sorted((Path(__file__).parents[2] / "sample_models").glob("*/model.onnx"))
#: A gradient's nodes are told by names in its attributes: a part of its graph has another.
ONNX = [case for case in load_cases() if case.kind == "simple" and "gradient" not in case.name]
HEAD = '<ir_version: 10, opset_import: ["": 21%s]>\n'


def model(text: str, domains: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD % domains + text)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_parts_of_the_samples(path):
    made = make_feeds(onnxeval.load(path), {}, {}, 0)
    check_parts(onnx.load(path), made.feeds, 12)


@pytest.mark.parametrize("case", ONNX, ids=lambda case: case.name)
def test_parts_of_onnx_s_own_models(case):
    proto = case.model
    given = {*onnxeval.graph.constants_of(proto.graph)}
    names = [value.name for value in proto.graph.input if value.name not in given]
    inputs, _ = next(iter(case.data_sets))
    check_parts(proto, dict(zip(names, inputs, strict=False)), 6)


BRANCHES = """
    g (float[N] x, bool c) => (float[N] y) <float[1] w = {2}, float[1] unused = {3}> {
        a = Mul(x, w)
        b = Neg(x)
        y = If (c) <
            then_branch = t () => (float[N] p) { p = Add(a, w) },
            else_branch = e () => (float[N] q) { q = If (c) <
                then_branch = i () => (float[N] r) { r = Identity(b) },
                else_branch = j () => (float[N] s) { s = Sub(b, a) }
            > }
        >
    }"""


def test_what_sub_graphs_capture_is_taken_along():
    part = onnxeval.extract(model(BRANCHES), ["b"], ["y"])
    assert [value.name for value in part.graph.input] == ["b", "x", "c"]
    assert [tensor.name for tensor in part.graph.initializer] == ["w"]
    assert [node.op_type for node in part.graph.node] == ["Mul", "If"]
    run = onnxeval.load(part).run
    x, b = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    assert run({"x": x, "b": b, "c": np.array(False)})["y"].tolist() == [8, 16]
    assert run({"x": x, "b": b, "c": np.array(True)})["y"].tolist() == [4, 6]
    assert onnxeval.check(part) == []


FUNCTIONS = """
    g (float[2] x) => (float[2] y) { a = loc.outer(x)  b = Relu(a)  y = other.unlike(b) }
    <domain: "loc", opset_import: ["": 21, "loc": 1]> outer (p) => (q) { r = loc.inner(p)  q = Neg(r) }
    <domain: "loc", opset_import: ["": 21]> inner (p) => (q) { q = Abs(p) }
    <domain: "other", opset_import: ["": 21]> unlike (p) => (q) { q = Exp(p) }"""


def test_functions_and_imports_are_those_that_are_called():
    whole = model(FUNCTIONS, ', "loc": 1, "other": 3')
    first = onnxeval.extract(whole, outputs=["b"])
    assert [f.name for f in first.functions] == ["outer", "inner"]
    assert [(i.domain, i.version) for i in first.opset_import] == [("", 21), ("loc", 1)]
    last = onnxeval.extract(whole, ["b"])
    assert [f.name for f in last.functions] == ["unlike"]
    assert [(i.domain, i.version) for i in last.opset_import] == [("", 21), ("other", 3)]
    assert onnxeval.check(first) == onnxeval.check(last) == []
    assert str(onnxeval.load(last).inputs[0].type) == "float32[2]"


def test_a_node_that_makes_more_than_is_given_keeps_its_other_outputs():
    whole = model("g (float[4] x) => (float[2] y) { a, b = Split <num_outputs = 2> (x)  y = Sub(a, b) }")
    part = onnxeval.extract(whole, ["a"])
    assert [value.name for value in part.graph.input] == ["a", "x"]
    feeds = {"a": np.array([10, 10], np.float32), "x": np.arange(4, dtype=np.float32)}
    assert onnxeval.load(part).run(feeds)["y"].tolist() == [8, 7]
    assert onnxeval.check(part) == []


def test_an_input_with_a_default_keeps_it_unless_it_is_named():
    whole = model("g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    kept = onnxeval.load(onnxeval.extract(whole))
    assert [(entry.name, entry.optional) for entry in kept.inputs] == [("x", False), ("w", True)]
    asked = onnxeval.load(onnxeval.extract(whole, ["w"]))
    assert [(entry.name, entry.optional) for entry in asked.inputs] == [("w", False), ("x", False)]


def test_what_is_declared_stays_and_what_is_not_needed_goes():
    whole = model(
        "g (float[N] x, float[N] z) => (float[N] y, float[N] v) <float[N] a, float[N] b>"
        "{ [first] a = Neg(x)  b = Exp(a)  y = Abs(b)  v = Neg(z) }"
    )
    whole.graph.doc_string, whole.producer_name = "what it is for", "its maker"
    whole.metadata_props.add(key="k", value="v")
    whole.graph.quantization_annotation.add(tensor_name="b")
    whole.graph.quantization_annotation.add(tensor_name="v")
    part = onnxeval.extract(whole, outputs=["y"])
    assert (part.graph.name, part.graph.doc_string, part.producer_name) == ("g", "what it is for", "its maker")
    assert part.metadata_props == whole.metadata_props
    assert part.graph.value_info == whole.graph.value_info
    assert part.graph.output[0] == whole.graph.output[0]
    assert [value.name for value in part.graph.input] == ["x"]
    assert [each.tensor_name for each in part.graph.quantization_annotation] == ["b"]
    assert part.graph.node[0].name == "first"
    inner = onnxeval.extract(whole, ["a"], ["b"])
    assert not inner.graph.value_info
    assert str(onnxeval.load(inner).inputs[0].type) == "float32[N]"


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (["nix"], ["y"], '"nix" is never defined'),
        ([], ["nix"], '"nix" is never defined'),
        (["y"], ["y"], "y would be an input and an output"),
        (["y"], ["a"], "no output depends on y"),
        (["o"], ["y"], 'nothing tells the type of the value "o"'),
    ],
)
def test_what_cannot_be(inputs, outputs, message):
    whole = model(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  o = com.acme.Odd(a)  y = Add(a, o) }", ', "com.acme": 1'
    )
    with pytest.raises(onnxeval.InputError) as caught:
        onnxeval.extract(whole, inputs, outputs)
    assert message in str(caught.value)


def test_the_whole_is_left_as_it_is():
    whole = model(BRANCHES)
    before = whole.SerializeToString()
    onnxeval.extract(whole, ["a"], ["y"])
    assert whole.SerializeToString() == before


def test_sparse_initializers():
    text = model("g (float[2] x) => (float[2] y) { y = Add(x, s) }")
    values = onnx.helper.make_tensor("s", 1, [1], [5.0])
    text.graph.sparse_initializer.append(
        onnx.helper.make_sparse_tensor(values, onnx.helper.make_tensor("i", 7, [1], [1]), [2])
    )
    part = onnxeval.extract(text)
    assert onnxeval.load(part).run({"x": np.zeros(2, np.float32)})["y"].tolist() == [0, 5]
    assert not onnxeval.extract(text, ["x", "s"]).graph.sparse_initializer

"""Rules on nodes and on functions: a minimal model that breaks each, and a near miss."""

import re
from collections.abc import Callable

import onnx
import pytest
from onnx import AttributeProto, ModelProto

import onnxeval


def check(model: object) -> list[onnxeval.Finding]:
    """The findings, but for what nobody reads: small models hold such things."""
    return onnxeval.check(model, ignore=["*/unused*"])


NEG = "g (float[2] x) => (float[2] y) {y = Neg(x)}"
HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]> '
FUNCTION = '<domain: "loc", opset_import: ["": {opset}, "loc": 1]> '


def model(text: str, change: Callable[[ModelProto], object] | None = None, opset: int = 21) -> ModelProto:
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}')
    if change is not None:
        change(proto)
    return proto


def node(line: str, opset: int = 21, change: Callable[[onnx.NodeProto], object] | None = None) -> ModelProto:
    """A model of one node that makes y, of those of x, b (bool) and i (int64) that it reads."""
    read = re.split(r"\W+", line.rpartition("(")[2])
    inputs = ", ".join(v for v in ("float[2] x", "bool[2] b", "int64[2] i") if v[-1] in read)
    text = f"g ({inputs}) => (float[2] y) {{{line}}}"
    return model(text, None if change is None else lambda m: change(m.graph.node[0]), opset)


def calls(
    body: str, *functions: str, opset: int = 21, change: Callable[[ModelProto], object] | None = None
) -> ModelProto:
    """A model whose nodes call functions of the domain loc, which import this opset."""
    text = f"{HEADER} g (float[2] x) => (float[2] y) {{{body}}} " + FUNCTION.format(opset=opset).join(["", *functions])
    proto = onnx.parser.parse_model(text)
    if change is not None:
        change(proto)
    return proto


def ints(name: str, *values: int) -> AttributeProto:
    return onnx.helper.make_attribute(name, list(values))


def branches(then: str) -> ModelProto:
    return model(
        "g (bool c, float[2] x) => (float[2] y) {y = If(c) <else_branch = e () => (float[2] b) {b = Neg(x)}, "
        f"then_branch = t () => ({then}) {{a = Abs(x) z = Neg(x)}}>}}"
    )


def refer(name: str) -> Callable[[ModelProto], object]:
    """Make the first node of the first function refer to an attribute."""

    def change(proto: ModelProto) -> None:
        reference = AttributeProto(name="alpha", ref_attr_name=name, type=AttributeProto.FLOAT)
        proto.functions[0].node[0].attribute.append(reference)

    return change


DOUBLE = "double (a) => (c) {c = Add(a, a)}"
TOP = "k = Constant<value_ints = [2]>() y, z = TopK(x, k)"
NOTHING = "nothing () => () {}"
LEAKY = "leaky <slope> (a) => (c) {c = LeakyRelu(a)}"

EXAMPLES = {
    "node/no-operator": (node("y = Neg(x)", change=lambda n: n.ClearField("op_type")), node("y = Neg(x)")),
    "node/unconnected": (
        calls("y = Neg(x)", NOTHING, change=lambda m: m.graph.node.add(op_type="nothing", domain="loc")),
        model("g () => (float y) {y = Constant<value_float = 1.0>()}"),
    ),
    "node/unknown-operator": (node("y = Negg(x)"), node("y = Neg(x)")),
    "node/foreign-operator": (node("y = LayerNormalization(x, x)", opset=16), node("y = LayerNormalization(x, x)")),
    "node/newer-operator": (node("y = Gelu(x)", opset=19), node("y = Gelu(x)", opset=20)),
    "node/deprecated-operator": (
        node("y = Upsample(x, x)", opset=10),
        node("s = Constant<value = float[1] {1.0}>() y = Upsample(x, s)", opset=9),
    ),
    "node/input-count": (node("y = Neg(x, x)"), node("y = Sum(x, x, x)")),
    "node/output-count": (node("y, z = Neg(x)"), node("y, z = Dropout(x)")),
    "node/absent-input": (node('y = Add(x, "")'), node('y = Clip(x, "", "")')),
    "node/absent-output": (
        model(f"g (float[2] x) => (float[2] y) {{{TOP}}}", lambda m: m.graph.node[1].output.__setitem__(1, "")),
        node("y = Dropout(x)", change=lambda n: n.output.append("")),
    ),
    "node/unknown-attribute": (node("y = Softmax<axes = 0>(x)"), node("y = Softmax<axis = 0, __note = 1>(x)")),
    "node/missing-attribute": (
        node("y = Concat(x)"),
        node("y = Concat<axis = 0>(x)"),
    ),
    "node/attribute-type": (node("y = Softmax<axis = 1.0>(x)"), node("y = Softmax<axis = 0>(x)")),
    "node/doubled-attribute": (
        node("y = Softmax<axis = 0>(x)", change=lambda n: n.attribute.append(n.attribute[0])),
        node("y = LpNormalization<axis = 0, p = 1>(x)"),
    ),
    "node/unnamed-attribute": (
        node("y = Softmax<axis = 0>(x)", change=lambda n: n.attribute[0].ClearField("name")),
        node("y = Softmax<axis = 0>(x)"),
    ),
    "node/untyped-attribute": (
        node("y = Softmax<axis = 0>(x)", change=lambda n: n.attribute[0].ClearField("type")),
        node("y = Softmax<axis = 0>(x)"),
    ),
    "node/attribute-value": (
        node("y = Softmax<axis = 0>(x)", change=lambda n: n.attribute[0].ints.append(1)),
        node("y = Softmax<axis = 0>(x)", change=lambda n: n.attribute[0].ClearField("i")),
    ),
    "node/constant-value": (
        model("g () => (int64 y) {y = Constant<value_int = 1, value_float = 1.0>()}"),
        model("g () => (int64 y) {y = Constant<value_int = 1>()}"),
    ),
    "node/branch-outputs": (branches("float[2] a, float[2] z"), branches("float[2] z")),
    "evaluation/no-kernel": (calls("y = loc.Free(x)"), calls("h = loc.double(x) y = Neg(h)", DOUBLE)),
    "function/unnamed": (
        calls("y = Neg(x)", DOUBLE, change=lambda m: m.functions[0].ClearField("name")),
        calls("y = loc.double(x)", DOUBLE),
    ),
    "function/no-domain": (
        calls("y = Neg(x)", DOUBLE, change=lambda m: m.functions[0].ClearField("domain")),
        calls("y = loc.double(x)", DOUBLE),
    ),
    "function/doubled": (
        calls("y = loc.double(x)", DOUBLE, DOUBLE),
        calls("y = loc.double(x)", DOUBLE, DOUBLE, change=lambda m: setattr(m.functions[1], "overload", "other")),
    ),
    "function/doubled-output": (
        calls("y, z = loc.two(x)", "two (a) => (c, c) {c = Neg(a)}"),
        calls("y, z = loc.two(x)", "two (a) => (c, d) {c = Neg(a) d = Abs(a)}"),
    ),
    "function/doubled-attribute": (
        calls("y = loc.leaky(x)", LEAKY, change=lambda m: m.functions[0].attribute.append("slope")),
        calls("y = loc.leaky(x)", LEAKY, change=lambda m: m.functions[0].attribute.append("other")),
    ),
    "function/recursive": (
        calls("y = loc.f(x)", "f (a) => (c) {c = loc.h(a)}", "h (a) => (c) {c = loc.f(a)}"),
        calls("y = loc.f(x)", "f (a) => (c) {b = loc.h(a) c = loc.h(b)}", "h (a) => (c) {c = Neg(a)}"),
    ),
    "function/shadows-operator": (
        calls("y = Neg(x)", "Neg (a) => (c) {c = Abs(a)}", change=lambda m: setattr(m.functions[0], "domain", "")),
        calls("y = loc.Neg(x)", "Neg (a) => (c) {c = Abs(a)}"),
    ),
    "function/opset-mismatch": (
        calls("y = loc.leak(x)", "leak (a) => (c) {c = LeakyRelu(a)}", opset=15),
        calls("y = loc.leak(x)", "leak (a) => (c) {c = LeakyRelu(a)}", opset=16),
    ),
    "function/undefined": (calls("h = loc.doble(x) y = Neg(x)", DOUBLE), calls("y = loc.double(x)", DOUBLE)),
    "function/input-count": (
        calls("y = loc.double(x, x)", DOUBLE),
        calls("y = loc.clip(x)", "clip (a, low) => (c) {c = Clip(a, low)}"),
    ),
    "function/output-count": (calls("y, z = loc.double(x)", DOUBLE), calls("y = loc.double(x)", DOUBLE)),
    "function/unknown-attribute": (
        calls("y = loc.leaky<slop = 1.0>(x)", LEAKY),
        calls("y = loc.leaky<slope = 1.0>(x)", LEAKY),
    ),
    "function/attribute-reference": (
        calls("y = loc.leaky(x)", LEAKY, change=refer("slop")),
        calls("y = loc.leaky(x)", LEAKY, change=refer("slope")),
    ),
    "type/absent-argument": (
        calls("y = loc.add(x)", "add (a, b) => (c) {c = Add(a, b)}"),
        calls("y = loc.add(x)", "add (a, b) => (c) {c = Clip(a, b)}"),
    ),
}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_model_that_breaks_it(rule: str) -> None:
    assert [finding.rule for finding in check(EXAMPLES[rule][0])] == [rule]


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_near_miss(rule: str) -> None:
    assert check(EXAMPLES[rule][1]) == []


def only(proto: ModelProto) -> onnxeval.Finding:
    (finding,) = check(proto)
    return finding


@pytest.mark.parametrize(
    ("proto", "hint"),
    [
        (node("y = relu(x)"), 'did you mean "Relu"?'),
        (node("y = Scaler(x)"), "it is an operator of ai.onnx.ml"),
        (node("y = Gelu(x)", opset=19), "it came with opset 20"),
        (node("y = Softmax<axes = 0>(x)"), 'did you mean "axis"?'),
        (node("y = ReduceSum<axes = [0], keepdims = 0>(x)"), "opset 11 had it; since 13 it is an input"),
        (node('y = SpaceToDepth<mode = "CRD", blocksize = 1>(x)'), "it came with opset 28"),
        (node("y = Neg(x, x)"), "inputs: X"),
        (node("y = Clip(x, x, x, x)"), "inputs: input, min?, max?"),
        (node("y = Scatter<axis = 0>(x, i, x)"), "use ScatterElements"),
        (calls("h = loc.doble(x) y = Neg(x)", DOUBLE), 'did you mean "double"?'),
    ],
)
def test_hints(proto: ModelProto, hint: str) -> None:
    assert only(proto).hint == hint


def test_a_function_body_sees_its_inputs_only() -> None:
    finding = only(calls("h = Neg(x) y = loc.f(h)", "f (a) => (c) {c = Add(a, h)}"))
    assert (finding.rule, finding.where) == ("graph/undefined-name", 'function[loc:f]/node[0] (Add) input 1 "h"')


def test_places_tell_the_overload() -> None:
    proto = calls(
        "y = Neg(x)", "f (a) => (c) {c = Neg(ghost)}", change=lambda m: setattr(m.functions[0], "overload", "v2")
    )
    assert only(proto).where == 'function[loc:f:v2]/node[0] (Neg) input 0 "ghost"'


def test_a_call_finds_the_overload() -> None:
    proto = calls("y = loc.double(x)", DOUBLE, change=lambda m: setattr(m.graph.node[0], "overload", "v2"))
    assert only(proto).message == 'no function "double" has the overload "v2"'


def test_nodes_alike_are_judged_alike() -> None:
    """What is found in a node is told for each, though clean ones of one kind are judged once."""
    found = check(model("g (float[2] x) => (float[2] y) {a = Neg(x) b = Neg(a, a) c = Neg(b) y = Neg(c, c)}"))
    assert [f.where for f in found] == ["graph/node[1] (Neg)", "graph/node[3] (Neg)"]


def test_an_attribute_of_the_main_graph_refers_to_nothing() -> None:
    proto = node("y = Softmax<axis = 0>(x)", change=lambda n: setattr(n.attribute[0], "ref_attr_name", "axis"))
    assert "node/attribute-value" not in {f.rule for f in check(proto)}
    assert "function/attribute-reference" in {f.rule for f in check(proto)}


def test_fifteen_faults_at_once() -> None:
    """Chained ones among them: each is told, none hides another."""
    proto = model(
        """g (float[2,3] x, float[4,5] z, int64[3] i, bool[2] b) => (float[7] out, float[2,3] ghost_out) {
            a = Negg(x)
            b1 = Gelu(x)
            c = Softmax<axes = 1>(x)
            d = Concat(x, x)
            e = Neg(x, x)
            f = MatMul(x, z)
            f2 = Neg(f)
            h = Add(f2, i)
            j = Not(x)
            k = Add(x, nothing)
            l = Relu(late)
            late = Abs(x)
            m = Reshape<allowzero = 1.5>(x, i)
            x = Exp(z)
            n = Conv(x, z)
            out = Neg(x)
        }""",
        opset=19,
    )
    rules = [f.rule for f in check(proto)]
    assert sorted(rules) == sorted(
        [
            "graph/unmade-output",
            "graph/undefined-name",
            "graph/order",
            "graph/redefined-name",
            "node/unknown-operator",
            "node/newer-operator",
            "node/unknown-attribute",
            "node/missing-attribute",
            "node/input-count",
            "node/attribute-type",
            "shape/matmul",
            "type/variable",
            "type/not-allowed",
            "shape/conv",
            "type/declared-output",
        ]
    )


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("node/absent-output", lambda node: node.output.__setitem__(0, "")),
        ("node/attribute-value", lambda node: node.attribute[0].ints.append(1)),
        ("function/attribute-reference", lambda node: setattr(node.attribute[0], "ref_attr_name", "ghost")),
        ("node/unknown-attribute", lambda node: setattr(node.attribute[0], "name", "valve")),
    ],
)
def test_a_fault_in_the_second_of_two_nodes_that_are_alike(
    rule: str, change: Callable[[onnx.NodeProto], object]
) -> None:
    proto = model("g () => (int64[1] y) {a = Constant<value = int64[1] {2}>() y = Constant<value = int64[1] {2}>()}")
    change(proto.graph.node[1])
    found = onnxeval.check(proto, select=[rule])
    assert [finding.where.startswith("graph/node[1]") for finding in found] == [True]

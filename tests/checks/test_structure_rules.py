"""Rules on the model message and on graphs: a minimal model that breaks each, and a near miss."""

from collections.abc import Callable

import onnx
import pytest
from onnx import ModelProto, TensorProto

import onnxeval


def check(model: object) -> list[onnxeval.Finding]:
    """The findings, but for what nobody reads: small models hold such things."""
    return onnxeval.check(model, ignore=["*/unused*"])


NEG = "g (float[2] x) => (float[2] y) {y = Neg(x)}"
#: A sub-graph that reads x from around it.
IF = """g (bool c, float[2] x) => (float[2] y) {{
    y = If(c) <then_branch = t () => (float[2] a) {{{then}}}, else_branch = e () => (float[2] b) {{b = Abs(x)}}>
}}"""
LOOP = """g (int64 n, bool c, float[2] x) => (float[2] y) {{
    y = Loop(n, c, x) <body = b (int64 i, bool k, float[2] {state}) => (bool k2, float[2] s2) {{
        k2 = Identity(k) s2 = Neg({state})}}>
}}"""


def model(text: str, change: Callable[[ModelProto], object] | None = None) -> ModelProto:
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    if change is not None:
        change(proto)
    return proto


def with_imports(*imports: tuple[str, int], text: str = NEG, ir_version: int = 10) -> ModelProto:
    proto = model(text)
    del proto.opset_import[:]
    proto.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in imports)
    proto.ir_version = ir_version
    return proto


def with_metadata(*keys: str) -> ModelProto:
    return model(NEG, lambda m: m.metadata_props.extend(onnx.StringStringEntryProto(key=k, value="1") for k in keys))


def weight(name: str) -> TensorProto:
    return onnx.helper.make_tensor(name, TensorProto.FLOAT, [2], [1, 2])


def weights(*names: str, ir_version: int = 10, text: str = NEG) -> ModelProto:
    proto = model(text, lambda m: m.graph.initializer.extend(map(weight, names)))
    proto.ir_version = ir_version
    return proto


EXAMPLES = {
    "proto/no-graph": (model(NEG, lambda m: m.ClearField("graph")), model(NEG)),
    "proto/no-ir-version": (model(NEG, lambda m: m.ClearField("ir_version")), model(NEG)),
    "proto/newer-ir-version": (
        with_imports(("", 21), ir_version=onnx.IR_VERSION + 1),
        with_imports(("", 21), ir_version=onnx.IR_VERSION),
    ),
    "proto/no-opset-import": (with_imports(), with_imports(ir_version=2, text=NEG.replace("Neg", "Identity"))),
    "proto/early-opset-import": (with_imports(("", 6), ir_version=2), with_imports(("", 6), ir_version=3)),
    "proto/opset-conflict": (with_imports(("", 21), ("ai.onnx", 20)), with_imports(("", 21), ("ai.onnx.ml", 5))),
    "proto/doubled-opset": (with_imports(("", 21), ("ai.onnx", 21)), with_imports(("", 21), ("com.acme", 21))),
    "proto/opset-version": (
        with_imports(("", onnx.defs.onnx_opset_version() + 1)),
        with_imports(("", onnx.defs.onnx_opset_version())),
    ),
    "proto/domain-not-imported": (
        model("g (float[2] x) => (float[2] y) {y = ai.onnx.ml.Scaler(x)}"),
        with_imports(("ai.onnx", 21)),
    ),
    "proto/doubled-metadata": (with_metadata("a", "a"), with_metadata("a", "b")),
    "graph/unnamed": (model(NEG, lambda m: m.graph.ClearField("name")), model(NEG)),
    "graph/undefined-name": (
        model("g (float[2] x) => (float[2] y) {h = Abs(x) y = Add(x, ghost)}"),
        model(IF.format(then="a = Neg(x)")),
    ),
    "graph/order": (
        model("g (float[2] x) => (float[2] y) {y = Neg(h) h = Abs(x)}"),
        model("g (float[2] x) => (float[2] y) {h = Abs(x) y = Neg(h)}"),
    ),
    "graph/cycle": (
        model("g (float[2] x) => (float[2] y) {a = Add(x, b) b = Neg(a) y = Abs(x)}"),
        model("g (float[2] x) => (float[2] y) {a = Add(x, x) b = Neg(a) y = Abs(b)}"),
    ),
    "graph/redefined-name": (
        model("g (float[2] x) => (float[2] y) {y = Neg(x) y = Abs(x)}"),
        model(IF.format(then="a = Neg(x)").replace("b)", "a)").replace("b =", "a =")),
    ),
    "graph/shadowed-name": (model(LOOP.format(state="x")), model(LOOP.format(state="s"))),
    "graph/doubled-input": (
        model("g (float[2] x, float[2] x) => (float[2] y) {y = Neg(x)}"),
        model("g (float[2] x, float[2] z) => (float[2] y) {y = Neg(x)}"),
    ),
    "graph/doubled-initializer": (weights("w", "w"), weights("w", "v")),
    "graph/doubled-output": (
        model("g (float[2] x) => (float[2] y, float[2] y) {y = Neg(x)}"),
        model("g (float[2] x) => (float[2] y, float[2] z) {y = Neg(x) z = Identity(y)}"),
    ),
    "graph/unnamed-value": (weights(""), weights("w")),
    "graph/unmade-output": (
        model("g (float[2] x) => (float[2] y, float[2] z) {y = Neg(x)}"),
        model("g (float[2] x) => (float[2] y, float[2] x) {y = Neg(x)}"),
    ),
    "graph/unreadable-name": (
        ModelProto.FromString(model(NEG.replace("y", "yy")).SerializeToString().replace(b"yy", b"\xff\xfe")),
        model(NEG.replace("y", "yy"), lambda m: setattr(m.graph.node[0], "name", "Größe")),
    ),
    "graph/initializer-not-input": (
        weights("w", ir_version=3),
        weights("w", ir_version=3, text="g (float[2] x, float[2] w) => (float[2] y) {y = Neg(x)}"),
    ),
    "graph/no-type": (
        model("g (float[2] x, float[2] z) => (float[2] y) {y = Neg(x)}", lambda m: m.graph.input[1].ClearField("type")),
        model(LOOP.format(state="s"), lambda m: m.graph.node[0].attribute[0].g.input[2].ClearField("type")),
    ),
    "graph/no-shape": (
        model(
            "g (float[2] x) => (float y) {y = Neg(x)}",
            lambda m: m.graph.output[0].type.tensor_type.ClearField("shape"),
        ),
        model("g (float[N] x) => (float[M] y) {y = Neg(x)}"),
    ),
    "graph/unknown-element-type": (
        model(NEG, lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", 99)),
        model(
            "g (float4e2m1[2] x) => (float4e2m1[2] y) {y = Identity(x)}",
            lambda m: (setattr(m.opset_import[0], "version", 23), setattr(m, "ir_version", 11)),
        ),
    ),
    "graph/negative-size": (
        model(NEG, lambda m: setattr(m.graph.output[0].type.tensor_type.shape.dim[0], "dim_value", -1)),
        model("g (float[0] x) => (float[0] y) {y = Neg(x)}"),
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


def test_places_are_told_through_subgraphs() -> None:
    proto = model(IF.format(then="a = Neg(ghost)"))
    proto.graph.node[0].name = "choose"
    finding = only(proto)
    assert finding.where == 'graph/node[0] (If "choose") then_branch/node[0] (Neg) input 0 "ghost"'
    assert str(finding).startswith("error: graph/node[0]")


def test_a_cycle_is_told_by_the_nodes() -> None:
    proto = model("g (float[2] x) => (float[2] y) {a = Add(x, b) b = Neg(a) y = Abs(x)}")
    proto.graph.node[0].name = "first"
    assert only(proto).message == "the nodes need one another: node[1] (Neg) -> first (Add) -> node[1] (Neg)"


def test_a_cycle_through_a_subgraph() -> None:
    proto = model(IF.format(then="a = Neg(late)"))
    proto.graph.node.append(onnx.helper.make_node("Abs", ["y"], ["late"]))
    assert only(proto).rule == "graph/cycle"


def test_each_cycle_is_told_and_nothing_else() -> None:
    text = "a = Add(x, b) b = Neg(a) c = Add(x, d) d = Neg(c) s = Neg(s) y = Abs(x)"
    assert [f.rule for f in check(model(f"g (float[2] x) => (float[2] y) {{{text}}}"))] == ["graph/cycle"] * 3


def test_order_beside_a_cycle() -> None:
    text = "y = Neg(late) a = Add(x, b) b = Neg(a) late = Abs(x)"
    rules = [f.rule for f in check(model(f"g (float[2] x) => (float[2] y) {{{text}}}"))]
    assert rules == ["graph/order", "graph/cycle"]


def test_types_are_known_in_an_unsorted_graph() -> None:
    proto = model("g (float[2] x) => (float[3] y) {y = Neg(h) h = Abs(x)}")
    assert [f.rule for f in check(proto)] == ["graph/order", "type/declared-output"]


def test_an_output_may_not_be_taken_from_around() -> None:
    proto = model(IF.format(then="h = Neg(x)").replace("=> (float[2] a)", "=> (float[2] x)"))
    finding = only(proto)
    assert (finding.rule, finding.where) == ("graph/unmade-output", 'graph/node[0] (If) then_branch/output[0] "x"')
    assert "Identity" in finding.hint


def test_a_subgraph_may_not_define_a_visible_name_again() -> None:
    finding = only(model(IF.format(then="x = Abs(x) a = Neg(x)")))
    assert finding.rule == "graph/redefined-name"
    assert "graph" in finding.message


def test_suggestions() -> None:
    assert only(model("g (float[2] conv1) => (float[2] y) {y = Neg(conv)}")).hint == 'did you mean "conv1"?'


def test_training_graphs_are_walked() -> None:
    proto = model(NEG)
    proto.training_info.add().algorithm.CopyFrom(onnx.parser.parse_graph("t () => (float[2] z) {z = Add(y, ghost)}"))
    assert only(proto).where == 'training_info[0]/algorithm/node[0] (Add) input 1 "ghost"'


def test_unused_unknown_imports_are_normal() -> None:
    assert check(with_imports(("", 21), ("com.microsoft.experimental", 1), ("org.pytorch.aten", 1))) == []


def test_the_long_name_of_the_standard_domain() -> None:
    proto = model(NEG)
    proto.graph.node[0].domain = "ai.onnx"
    assert only(proto).rule == "proto/domain-spelling"

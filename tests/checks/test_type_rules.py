"""Rules on types and shapes: a minimal model that breaks each, a near miss, and how the walk goes on after faults."""

from collections.abc import Callable

import onnx
import pytest
from onnx import ModelProto

import onnxeval


def check(model: object) -> list[onnxeval.Finding]:
    """The findings, but for what nobody reads: small models hold such things."""
    return onnxeval.check(model, ignore=["*/unused*"])


def model(text: str, change: Callable[[ModelProto], object] | None = None, opset: int = 21) -> ModelProto:
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}, "loc": 1]> {text}')
    if change is not None:
        change(proto)
    return proto


def of(inputs: str, line: str, output: str = "float[?,?]", opset: int = 21) -> ModelProto:
    """A model of these inputs, in which a line makes y."""
    for place in range(output.count("?")):
        output = output.replace("?", f"N{place}", 1)
    return model(f"g ({inputs}) => ({output} y) {{{line}}}", opset=opset)


def conv(x: str, w: str, more: str = "", attributes: str = "") -> ModelProto:
    return of(f"float{x} x, float{w} w{more}", f"y = Conv{attributes}(x, w{', b' if more else ''})", "float[?,?,?,?]")


EXAMPLES = {
    "type/not-allowed": (
        of("int64[2,3] x", "y = Floor(x)", "int64[?,?]"),
        of("bfloat16[2,3] x", "y = Floor(x)", "bfloat16[?,?]"),
    ),
    "type/variable": (
        of("float[2,3] x, double[2,3] z", "y = Add(x, z)"),
        of("float[2,3] x, int64[2] z", "y = Reshape(x, z)"),
    ),
    "type/refused": (
        of("float[2,3] x", "y = RandomUniformLike<dtype = 7>(x)"),
        of("float[2,3] x", "y = RandomUniformLike<dtype = 1>(x)"),
    ),
    "shape/refused": (
        of("float[2,3] x", "y = Flatten<axis = 3>(x)"),
        of("float[2,3] x", "y = Flatten<axis = 2>(x)"),
    ),
    "shape/concat": (
        of("float[2,3] x, float[2,4] z", "y = Concat<axis = 0>(x, z)"),
        of("float[2,3] x, float[2,4] z", "y = Concat<axis = 1>(x, z)"),
    ),
    "type/modulo": (
        of("float[2,3] x", "y = Mod(x, x)", opset=27),
        of("float[2,3] x", "y = Mod(x, x)", opset=28),
    ),
    "shape/negative": (conv("[1,1,2,2]", "[1,1,4,4]"), conv("[1,1,3,3]", "[1,1,3,3]")),
    "shape/broadcast": (
        of("float[2,3] x, float[2,4] z", "y = Add(x, z)"),
        of("float[2,3] x, float[2,1] z", "y = Add(x, z)"),
    ),
    "shape/matmul": (
        of("float[2,3] x, float[4,5] z", "y = MatMul(x, z)"),
        of("float[2,3] x, float[3,5] z", "y = MatMul(x, z)"),
    ),
    "shape/gemm": (
        of("float[2,3] x, float[4,5] z", "y = Gemm(x, z)"),
        of("float[2,3] x, float[5,3] z", "y = Gemm<transB = 1>(x, z)"),
    ),
    "shape/conv": (conv("[1,4,5,5]", "[2,3,1,1]"), conv("[1,4,5,5]", "[2,2,1,1]", attributes="<group = 2>")),
    "type/declared-output": (
        of("float[2,3] x", "y = Neg(x)", "float[2,4]"),
        of("float[2,?] x".replace("?", "K"), "y = Neg(x)", "float[2,4]"),
    ),
    "type/declared-value": (
        model("g (float[2] x) => (float[2] y) <float[3] h> {h = Neg(x) y = Abs(h)}"),
        model("g (float[2] x) => (float[2] y) <float[M] h> {h = Neg(x) y = Abs(h)}"),
    ),
    "type/declared-initializer": (
        model(
            "g (float[2] x, float[3] w = {1, 2}) => (float[2] y) {y = Add(x, x)}",
            lambda m: m.graph.initializer[0].dims.__setitem__(0, 2),
        ),
        model("g (float[2] x, float[2] w = {1, 2}) => (float[2] y) {y = Add(x, w)}"),
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
    ("proto", "message"),
    [
        (of("float[2,3] x, double[2,3] z", "y = Add(x, z)"), 'it is float64, "x" is float32: Add-14 wants one type'),
        (of("float[2,3] x, float[2,4] z", "y = Add(x, z)"), "[2, 3] and [2, 4] do not broadcast: axis -1 has 3 and 4"),
        (of("float[2,3] x, float[4,5] z", "y = MatMul(x, z)"), "[2, 3] x [4, 5]: the inner sizes are 3 and 4"),
        (of("float x, float[4,5] z", "y = MatMul(x, z)", "float[?]"), "[] x [4, 5]: a MatMul takes no scalars"),
        (of("float[3] x, float[4,5] z", "y = MatMul(x, z)", "float[?]"), "the inner sizes are 3 and 4"),
        (
            of("float[2,3] x, float[4,5] z", "y = Gemm<transA = 1>(x, z)"),
            "A [2, 3], B [4, 5] (Aᵀ): the inner sizes are 2",
        ),
        (of("float[2,3,1] x, float[3,5] z", "y = Gemm(x, z)"), "A [2, 3, 1] has rank 3"),
        (conv("[1,4,5,5]", "[2,3,1]"), "the ranks are 4 and 3"),
        (conv("[1,4,5,5]", "[3,2,1,1]", attributes="<group = 2>"), "3 output channels do not divide into 2 groups"),
        (conv("[1,4,5,5]", "[2,4,1,1]", ", float[3] b"), "the bias must be one number a channel"),
        (conv("[1,1,2,2]", "[1,1,4,4]"), "the shape would be [1, 1, -1, -1]"),
        (
            of("float[2,3] x", "y = Neg(x)", "float[2,4]"),
            "float32[2, 4] is declared, what graph/node[0] (Neg) makes is",
        ),
        (
            of("float[2,3] x, float[2,4] z", "y = Concat<axis = 0>(x, z)"),
            "input 0 is [2, 3], input 1 [2, 4]: they are joined along axis 0, and differ on axis 1",
        ),
        (
            of("float[2,3] x, float[K,3] u, float[2,3,1] z", "y = Concat<axis = 0>(x, u, z)"),
            "input 0 is [2, 3], input 2 [2, 3, 1]: the ranks are 2 and 3",
        ),
        (of("float[2,3] x", "y = Flatten<axis = 3>(x)"), "(inputs: input float32[2, 3])"),
    ],
)
def test_messages_hold_the_values(proto: ModelProto, message: str) -> None:
    assert message in only(proto).message


def test_constant_inputs_are_written_out() -> None:
    text = "g (float[2,3] x) => (float[N, M] y) <int64[2] s = {-1, -1}> {y = Reshape(x, s)}"
    assert only(model(text)).message.endswith("(inputs: data float32[2, 3], shape int64[2] = [-1, -1])")


def test_faults_down_the_line_are_told_too() -> None:
    proto = model(
        """g (float[2,3] x, float[4,5] z, int64[3] i) => (float[2,3] y) {
            a = MatMul(x, z)
            b = Relu(a)
            c = Add(b, i)
            d = Softmax(x)
            y = Add(d, z)
        }"""
    )
    assert [(f.rule, f.where[:13]) for f in check(proto)] == [
        ("shape/matmul", "graph/node[0]"),
        ("type/variable", "graph/node[2]"),
        ("shape/broadcast", "graph/node[4]"),
    ]


def test_faults_that_inference_can_live_with_hide_nothing() -> None:
    proto = model(
        """g (float[2,3] x, int64[1,1] i, float[1,3] u) => (float[2,4] y) {
            a = ScatterND<reduction = "least">(x, i, u)
            b = Concat<axis = 2>(a, a)
            y = Neg(a)
        }"""
    )
    assert [f.rule for f in check(proto)] == ["value/name", "value/axis", "type/declared-output"]


def test_faults_that_leave_the_shape_open_lead_to_no_others() -> None:
    text = 'g (float[1,1,5,5] x) => (float[1,1,5,5] y) {y = MaxPool<kernel_shape = [3,3], auto_pad = "SAME">(x)}'
    assert only(model(text)).rule == "value/name"


def test_constants_are_carried_through_shape_arithmetic() -> None:
    text = """g (float[2,3,4] x) => (float[{}] y) {{
        s = Shape(x)
        last = Constant<value_ints = [2]>()
        n = Gather<axis = 0>(s, last)
        minus = Constant<value = int64[1] {{-1}}>()
        t = Concat<axis = 0>(minus, n)
        y = Reshape(x, t)
    }}"""
    assert check(model(text.format("6,4"))) == []
    assert only(model(text.format("4,6"))).message.endswith("makes is float32[6, 4]")


def test_an_initializer_is_a_constant() -> None:
    text = "g (float[2,3] x) => (float[{}] y) <int64[1] s = {{-1}}> {{y = Reshape(x, s)}}"
    assert check(model(text.format("6"))) == []
    assert only(model(text.format("5"))).rule == "type/declared-output"


BRANCHES = """g (bool c, float[2] x, float[3] z) => (float[{}] y) {{
    y = If(c) <then_branch = t () => (float[2] a) {{a = Add(x, {})}}, else_branch = e () => (float[2] b) {{b = Abs(x)}}>
}}"""


def test_branches_are_walked() -> None:
    assert check(model(BRANCHES.format("2", "x"))) == []
    assert only(model(BRANCHES.format("3", "x"))).rule == "type/declared-output"
    finding = only(model(BRANCHES.format("2", "z")))
    assert (finding.rule, finding.where) == ("shape/broadcast", "graph/node[0] (If) then_branch/node[0] (Add)")


LOOP = """g (int64 n, bool c, {state} x) => ({state} y, float[N,4] z) {{
    y, z = Loop(n, c, x) <body = b (int64 i, bool k, {state} s) => (bool k2, {state} s2, float[3] e) {{
        k2 = Identity(k) s2 = Neg(s) e = Neg(s)}}>
}}"""


def test_scan_outputs_of_a_loop_are_known() -> None:
    assert [f.rule for f in check(model(LOOP.format(state="float[3]")))] == ["type/declared-output"]


def test_a_loops_body_gets_types_from_the_node() -> None:
    proto = model(LOOP.format(state="double[3]").replace("N,4", "N,3"))
    for value in proto.graph.node[0].attribute[0].g.input:
        value.ClearField("type")
    found = {(f.rule, f.where) for f in check(proto)}
    assert ("type/declared-output", 'graph/node[0] (Loop) body/output[2] "e"') in found


SCAN = """g (float[2] s, float[5,3] x) => (float[2] t, float[{}] y) {{
    t, y = Scan <num_scan_inputs = 1, {}body = b (float[2] u, float[3] row) => (float[2] v, float[3] out) {{
        v = Identity(u) out = Neg(row)}}> (s, x)
}}"""


def test_the_slices_of_a_scan() -> None:
    assert check(model(SCAN.format("5,3", ""))) == []
    assert check(model(SCAN.format("3,5", "scan_output_axes = [1], "))) == []
    assert {f.rule for f in check(model(SCAN.format("5,4", "")))} == {"type/declared-output"}


def test_a_sequence_maps_body_gets_its_elements() -> None:
    text = """g (seq(float[2]) s) => (seq(float[2]) t) {
        t = SequenceMap(s) <body = b (float[2] x, float[2] z) => (float[2] y) {y = Add(x, z)}>
    }"""
    proto = model(text.replace(", float[2] z", "").replace("Add(x, z)", "MatMul(x, ghost)"))
    assert "graph/undefined-name" in {f.rule for f in check(proto)}
    assert check(model(text.replace(", float[2] z", "").replace("Add(x, z)", "Neg(x)"))) == []


FUNCTION = """ g (float[2] x, float[3] z, double[2] d) => (float[2] y) {{{}}}
    <domain: "loc", opset_import: ["": 21]> add (a, b) => (c) {{h = Neg(a) c = Add(h, b)}}"""


def test_function_bodies_are_judged_with_the_types_of_their_calls() -> None:
    assert check(model(FUNCTION.format("y = loc.add(x, x)"))) == []
    finding = only(model(FUNCTION.format("h = loc.add(x, x) y = loc.add(h, z)")))
    assert (finding.rule, finding.where) == ("shape/broadcast", "function[loc:add]/node[1] (Add)")
    assert finding.message.endswith("(called from graph/node[1] (add))")
    found = check(model(FUNCTION.format("y = loc.add(x, d) h = loc.add(x, z)")))
    assert [f.rule for f in found] == ["type/variable", "shape/broadcast"]


def test_attributes_of_a_call_reach_the_body() -> None:
    text = """ g (float[2,3] x) => (float[3,2] y) {{y = loc.turn{}(x)}}
        <domain: "loc", opset_import: ["": 21]> turn <perm> (a) => (c) {{c = Transpose<perm: ints = @perm>(a)}}"""
    assert check(model(text.format("<perm = [1, 0]>"))) == []
    assert check(model(text.format(""))) == []
    assert only(model(text.format("<perm = [0, 1]>"))).rule == "type/declared-output"


def test_operators_without_inference_of_their_own() -> None:
    """Their schema's function body tells the shape."""
    assert only(of("float[2,3] x, float[3] z", "y = GreaterOrEqual(x, z)", "bool[3,3]")).rule == "type/declared-output"
    line = "y = MeanVarianceNormalization<axes = [0]>(x)"
    assert check(of("float[5,2] x", line, "float[5,2]")) == []
    assert only(of("float[5,2] x", line, "float[5,2,1]")).rule == "type/declared-output"


def test_sparse_initializers_are_dense_to_their_readers() -> None:
    proto = model("g (float[2,3] x) => (float[2,3] y) {y = Add(x, w)}")
    values = onnx.helper.make_tensor("w", 1, [1], [1.0])
    indices = onnx.helper.make_tensor("", 7, [1], [4])
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2, 3]))
    assert check(proto) == []

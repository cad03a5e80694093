"""Rules on shapes that cannot work, and on named dimensions: the messages, and what passes by a hair."""

import onnx
import pytest
from onnx import ModelProto

import onnxeval


def model(inputs: str, line: str, output: str = "float[?,?]", opset: int = 21) -> ModelProto:
    for place in range(output.count("?")):
        output = output.replace("?", f"Y{place}", 1)
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": {opset}]> g ({inputs}) => ({output} y) {{{line}}}'
    )


def told(proto: ModelProto) -> list[tuple[str, str]]:
    return [(f.rule, f.message) for f in onnxeval.check(proto, ignore=["graph/unused-*"])]


@pytest.mark.parametrize(
    ("inputs", "line", "message"),
    [
        ("float[2,3] x, float[3,5] w, float[5] c", "y = Gemm(x, w, c)", ""),
        ("float[2,3] x, float[3,5] w, float[2,1] c", "y = Gemm(x, w, c)", ""),
        ("float[2,3] x, float[3,5] w, float[N] c", "y = Gemm(x, w, c)", ""),
        ("float[2,3] x, float[3,5] w, float[2] c", "y = Gemm(x, w, c)", "C [2] does not broadcast to [2, 5]"),
        (
            "float[3,2] x, float[5,3] w, float[1,2,5] c",
            "y = Gemm<transA = 1, transB = 1>(x, w, c)",
            "C [1, 2, 5] does not",
        ),
        ("float[2,3] x, float[3] s", "y = PRelu(x, s)", ""),
        ("float[2,3] x, float[2] s", "y = PRelu(x, s)", "slope [2] does not broadcast to [2, 3]"),
        ("float[2,3] x, float[2,3] s", "y = LayerNormalization<axis = 0>(x, s)", ""),
        ("float[2,3] x, float[2,3] s", "y = LayerNormalization(x, s)", "scale [2, 3] does not broadcast to [3]"),
    ],
)
def test_one_way(inputs: str, line: str, message: str) -> None:
    found = told(model(inputs, line))
    assert [rule for rule, _ in found] == (["shape/one-way-broadcast"] if message else [])
    assert not message or found[0][1].startswith(message)


@pytest.mark.parametrize(
    ("inputs", "line", "message"),
    [
        ("float[2,4,3] x, float[3,5] w", "y = MatMul(x, w)", ""),
        ("float[2,4,3] x, float[1,3,5] w", "y = MatMul(x, w)", ""),
        ("float[2,4,3] x, float[3,3,5] w", "y = MatMul(x, w)", "[2, 4, 3] x [3, 3, 5]: the axes before the matrices"),
    ],
)
def test_products_of_stacks(inputs: str, line: str, message: str) -> None:
    found = told(model(inputs, line, "float[?,?,?]"))
    assert [rule for rule, _ in found] == (["shape/matmul"] if message else [])
    assert not message or found[0][1].startswith(message)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{-1, 2}", ""),
        ("{0, 3}", ""),
        ("{0, -1}", ""),
        ("{3, 2}", ""),
        ("{4, 2}", "[2, 3] has 6 elements, they make no [4, 2]"),
        ("{-1, 4}", "[2, 3] has 6 elements, they make no [-1, 4]"),
        ("{0, 2}", "[2, 3] has 6 elements, they make no [2, 2]"),
    ],
)
def test_reshape(target: str, message: str) -> None:
    text = f"g (float[2,3] x) => (float[Y, Z] y) <int64[2] s = {target}> {{y = Reshape(x, s)}}"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    assert told(proto) == ([("shape/reshape", message)] if message else [])


def test_reshape_of_nothing() -> None:
    text = "g (float[0,3] x) => (float[Y, Z] y) <int64[2] s = {{{}}}> {{y = Reshape<allowzero = 1>(x, s)}}"
    for target, rules in (("5, 0", []), ("5, 1", ["shape/reshape"])):
        proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text.format(target)}')
        assert [rule for rule, _ in told(proto)] == rules


@pytest.mark.parametrize(
    ("inputs", "line", "message"),
    [
        ("float[1,8,2,2] x", "y = DepthToSpace<blocksize = 2>(x)", ""),
        ("float[1,6,2,2] x", "y = DepthToSpace<blocksize = 2>(x)", "[1, 6, 2, 2]: axis 1 has 6, no multiple of 4"),
        ("float[1,2,4,3] x", "y = SpaceToDepth<blocksize = 2>(x)", "[1, 2, 4, 3]: axis 3 has 3, no multiple of 2"),
        ("float[1,N,4,M] x", "y = SpaceToDepth<blocksize = 2>(x)", ""),
    ],
)
def test_blocks(inputs: str, line: str, message: str) -> None:
    assert told(model(inputs, line, "float[?,?,?,?]")) == ([("shape/blocks", message)] if message else [])


@pytest.mark.parametrize(
    ("numbers", "line", "message"),
    [
        ("{0, 2}", "y = Gather<axis = 1>(x, i)", ""),
        ("{-3, -1}", "y = Gather<axis = 1>(x, i)", ""),
        ("{0, 3}", "y = Gather<axis = 1>(x, i)", "index 3 is outside axis 1 of [2, 3]"),
        ("{-3, 0}", "y = Gather(x, i)", "index -3 is outside axis 0 of [2, 3]"),
    ],
)
def test_constant_indices(numbers: str, line: str, message: str) -> None:
    text = f"g (float[2,3] x) => (float[Y, Z] y) <int64[2] i = {numbers}> {{{line}}}"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    assert told(proto) == ([("shape/index", message)] if message else [])


# Layers


@pytest.mark.parametrize(
    ("inputs", "line", "message"),
    [
        ("float[1,3,5,5] x, float[3,2,3,3] w, float[2] b", "y = ConvTranspose(x, w, b)", ""),
        ("float[1,3,5,5] x, float[4,2,3,3] w", "y = ConvTranspose(x, w)", "X [1, 3, 5, 5], W [4, 2, 3, 3]: 3 channels"),
        (
            "float[1,3,5,5] x, float[3,2,3,3] w, float[3] b",
            "y = ConvTranspose(x, w, b)",
            "W [3, 2, 3, 3], B [3]: the bias",
        ),
        ("float[1,4,5,5] x, float[4,2,3,3] w, float[4] b", "y = ConvTranspose<group = 2>(x, w, b)", ""),
        (
            "float[1,3,5,5] x, float[2,3,3,3] w",
            "y = Conv<kernel_shape = [3, 5]>(x, w)",
            "X [1, 3, 5, 5], W [2, 3, 3, 3]: k",
        ),
        ("float[1,3,5,5] x, float[2,N,3,3] w", "y = Conv<kernel_shape = [3, 3]>(x, w)", ""),
    ],
)
def test_convolutions(inputs: str, line: str, message: str) -> None:
    found = told(model(inputs, line, "float[?,?,?,?]"))
    assert [rule for rule, _ in found] == (["shape/conv"] if message else [])
    assert not message or found[0][1].startswith(message)


def test_a_quantised_convolution() -> None:
    inputs = "uint8[1,{},5,5] x, float s, uint8 z, int8[2,3,1,1] w, float[2] ws, int8[2] wz, float t, uint8 o"
    line = "y = QLinearConv(x, s, z, w, ws, wz, t, o)"
    assert told(model(inputs.format(3), line, "uint8[?,?,?,?]")) == []
    assert [rule for rule, _ in told(model(inputs.format(4), line, "uint8[?,?,?,?]"))] == ["shape/conv"]


def test_groups_of_channels() -> None:
    line = "y = GroupNormalization<num_groups = {}>(x, s, s)"
    inputs = "float[1,6,5,5] x, float[6] s"
    assert told(model(inputs, line.format(3), "float[?,?,?,?]")) == []
    assert told(model(inputs, line.format(4), "float[?,?,?,?]")) == [
        ("shape/channels", "6 channels do not divide into 4 groups")
    ]


@pytest.mark.parametrize(
    ("operator", "gates", "more", "rules"),
    [
        ("RNN", 1, "", []),
        ("GRU", 3, "", []),
        ("LSTM", 4, "", []),
        ("LSTM", 3, "", ["shape/recurrent"] * 2),
        ("GRU", 3, ', direction = "bidirectional"', ["shape/recurrent"] * 2),
    ],
)
def test_recurrent_layers(operator: str, gates: int, more: str, rules: list[str]) -> None:
    inputs = f"float[5,1,3] x, float[1,{gates * 4},3] w, float[1,{gates * 4},4] r"
    found = told(model(inputs, f"y = {operator}<hidden_size = 4{more}>(x, w, r)", "float[?,?,?,?]"))
    assert [rule for rule, _ in found] == rules


# Named dimensions


def test_a_dimension_that_two_nodes_need_differently() -> None:
    text = """g (float[2,N] x, float[{},2] z, float[3,5] w, float[4,5] v) => (float[2,5] y) {{
        a = MatMul(x, w)  t = Transpose(z)  b = MatMul(t, v)  y = Add(a, b)
    }}"""
    head = '<ir_version: 10, opset_import: ["": 21]> '
    assert told(onnx.parser.parse_model(head + text.format("M"))) == []
    (finding,) = onnxeval.check(onnx.parser.parse_model(head + text.format("N")))
    assert (finding.rule, finding.where) == ("shape/symbol", "graph/node[2] (MatMul)")
    assert finding.message == '"N" would be 4, and 3 at graph/node[0] (MatMul)'


def test_dimensions_that_a_product_makes_equal() -> None:
    text = """g (float[2,N] x, float[M,5] z, float[3,5] w, float[4,2] v) => (float[2,5] y) {
        a = MatMul(x, z)  b = MatMul(x, w)  t = Transpose(z)  c = MatMul(t, v)  d = Transpose(c)
        e = Add(a, b)  y = Add(d, e)
    }"""
    (finding,) = onnxeval.check(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}'))
    assert (finding.rule, finding.message) == ("shape/symbol", '"M" would be 4, and 3 at graph/node[1] (MatMul)')


def test_a_name_that_stands_for_two_sizes() -> None:
    text = "g (float[2] x, float[3] z) => (float[N] a, float[N] b) {a = Neg(x) b = Neg(z)}"
    (finding,) = onnxeval.check(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}'))
    assert (finding.rule, finding.severity) == ("type/declared-symbol", "warning")
    assert finding.where == 'graph/output[1] "b"'
    assert finding.message == '"N" would be 3, and 2 at graph/output[0] "a"'


def test_names_that_leave_sizes_open_contradict_nothing() -> None:
    text = """g (float[N,4] x, float[N,4] z) => (float[M,4] y, float[K] k, float[N,4] same) <float[M,4] h> {
        h = Add(x, z)  y = Neg(h)  k = ReduceSum<keepdims = 0>(x, axes)  same = Abs(z)
    }"""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    proto.graph.initializer.append(onnx.helper.make_tensor("axes", 7, [1], [1]))
    assert onnxeval.check(proto) == []

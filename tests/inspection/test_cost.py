"""MACs against numbers counted by hand, and memory."""

import numpy as np
import onnx.parser
import pytest

from onnxeval.checks.recording import record
from onnxeval.inspection.cost import cost_of
from onnxeval.inspection.summary import summarise
from onnxeval.loader import load_model


def recorded(text: str):
    head = '<ir_version: 10, opset_import: ["": 23, "com.microsoft": 1, "loc": 1]>\n'
    return record(load_model(onnx.parser.parse_model(head + text)))


@pytest.mark.parametrize(
    ("graph", "macs"),
    [
        ("(float[2, 3, 5, 5] x, float[4, 3, 3, 3] w) => (float[2, 4, 3, 3] y) { y = Conv(x, w) }", 2 * 4 * 9 * 27),
        (
            "(float[1, 4, 5, 5] x, float[4, 1, 3, 3] w) => (float[1, 4, 5, 5] y) "
            "{ y = Conv<group = 4, pads = [1, 1, 1, 1]>(x, w) }",
            4 * 25 * 9,
        ),
        (
            "(float[1, 3, 4, 4] x, float[3, 2, 2, 2] w) => (float[1, 2, 8, 8] y) "
            "{ y = ConvTranspose<strides = [2, 2]>(x, w) }",
            3 * 16 * 2 * 4,
        ),
        ("(float[7, 2, 3] x, float[3, 5] w) => (float[7, 2, 5] y) { y = MatMul(x, w) }", 7 * 2 * 5 * 3),
        ("(float[3, 2] x, float[5, 3] w) => (float[2, 5] y) { y = Gemm<transA = 1, transB = 1>(x, w) }", 2 * 5 * 3),
        ('(float[2, 3] x, float[3, 4] w) => (float[2, 4] y) { y = Einsum<equation = "ij,jk->ik">(x, w) }', 24),
        (
            '(float[6, 2, 3] x, float[6, 3, 4] w) => (float[6, 2, 4] y) { y = Einsum<equation = "...ij,...jk">(x, w) }',
            6 * 24,
        ),
        (
            "(float[5, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r) => (float[5, 1, 2, 4] y) "
            "{ y = LSTM<hidden_size = 4>(x, w, r) }",
            5 * 2 * 4 * 4 * (3 + 4),
        ),
        (
            "(float[1, 8, 5, 16] q, float[1, 2, 7, 16] k, float[1, 2, 7, 32] v) => (float[1, 8, 5, 32] y) "
            "{ y = Attention(q, k, v) }",
            8 * 5 * 7 * (16 + 32),
        ),
        (
            "(float[1, 5, 32] q, float[1, 7, 32] k, float[1, 7, 16] v) => (float[1, 5, 16] y) "
            "{ y = Attention<q_num_heads = 2, kv_num_heads = 2>(q, k, v) }",
            2 * 5 * 7 * (16 + 8),
        ),
        ("(float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }", 0),
        ("(float[N, 3] x, float[3, 4] w) => (float[N, 4] y) { y = MatMul(x, w) }", None),
        ("(float[2] x) => (float[2] y) { y = com.acme.Odd(x) }", None),
    ],
)
def test_macs(graph, macs):
    (node,) = cost_of(recorded(f"g {graph}")).nodes
    assert node.macs == macs


def test_attention_counts_the_keys_of_the_past():
    inputs = "float[1, 1, 1, 4] q, float[1, 1, 1, 4] k, float[1, 1, 1, 4] v, float[1, 1, 9, 4] p, float[1, 1, 9, 4] r"
    outputs = "float[1, 1, 1, 4] y, float[1, 1, 10, 4] a, float[1, 1, 10, 4] b"
    graph = f"g ({inputs}) => ({outputs}) {{ y, a, b = Attention(q, k, v, , p, r) }}"
    assert cost_of(recorded(graph)).macs == 10 * (4 + 4)


def test_what_stands_inside_counts():
    function = '<domain: "loc", opset_import: ["": 23]> Twice (a, w) => (c) { b = MatMul(a, w)  c = MatMul(b, w) }'
    graph = "g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y) { t = loc.Twice(x, w)  y = loc.Twice(t, w) }\n"
    assert [node.macs for node in cost_of(recorded(graph + function)).nodes] == [36, 36]


def test_of_an_if_the_dearer_branch_counts_or_the_one_that_is_taken():
    branches = """If(c) <then_branch = t () => (float[2, 3] a) { a = MatMul(x, w) },
        else_branch = e () => (float[2, 3] b) { b = Identity(x) }>"""
    graph = f"g (bool c, float[2, 3] x, float[3, 3] w) => (float[2, 3] y) {{ y = {branches} }}"
    assert cost_of(recorded(graph)).macs == 18
    taken = f"g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y) <bool c = {{0}}> {{ y = {branches} }}"
    assert cost_of(recorded(taken)).macs == 0


def test_of_a_loop_each_trip_counts():
    graph = """g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y) <int64 n = {5}> {
        y = Loop(n, , x) <body = b (int64 i, bool c, float[2, 3] h) => (bool d, float[2, 3] k)
            { d = Identity(c)  k = MatMul(h, w) }> }"""
    assert cost_of(recorded(graph)).macs == 5 * 18


def test_of_a_scan_each_step_counts():
    graph = """g (float[7, 2, 3] x, float[3, 3] w) => (float[7, 2, 3] y) {
        y = Scan(x) <num_scan_inputs = 1, body = b (float[2, 3] h) => (float[2, 3] k) { k = MatMul(h, w) }> }"""
    assert cost_of(recorded(graph)).macs == 7 * 18


def test_memory_is_what_is_alive_at_once():
    graph = """g (float[10] x) => (float[10] y) {
        a = Neg(x)  b = Abs(a)  c = Concat<axis = 0>(b, b, b)  d = ReduceSum<keepdims = 1>(c)  y = Mul(x, d) }"""
    # x (40 bytes) lives until the end; the most is x, b and c: 40 + 40 + 120
    assert cost_of(recorded(graph)).peak == 200
    assert [node.bytes for node in cost_of(recorded(graph)).nodes] == [40, 40, 120, 4, 40]


def test_weights_are_no_activations_and_packed_as_in_the_file():
    graph = """g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}, int4[3] q = {1, 2, 3}> {
        k = Constant<value = float[4] {1, 2, 3, 4}>()  t = Mul(x, w)  y = Add(t, k) }"""
    seen = recorded(graph)
    cost = cost_of(seen)
    assert cost.peak == 3 * 16 - 16
    assert [(node.parameters, node.macs) for node in cost.nodes] == [(4, 0), (4, 0)]
    summary = summarise(seen)
    assert [(p.dtype, p.tensors, p.elements, p.bytes) for p in summary.parameters] == [
        ("float32", 2, 8, 32),
        ("int4", 1, 3, 2),
    ]
    assert summary.operators == (("Add-14", 1), ("Constant-23", 1), ("Mul-14", 1))


def test_sizes_are_followed_through_shape_arithmetic():
    graph = """g (float[2, 3, 4] x) => (float[M, N] y) <int64[1] one = {1}, int64[1] minus = {-1}> {
        s = Shape(x)  n = Shape<start = 2>(x)  t = ConstantOfShape<value = int64[1] {1}>(one)
        p = Concat<axis = 0>(n, minus)  u = Mul(p, t)  y = Reshape(x, u) }"""
    assert recorded(graph).values["y"].shape == (4, 6)
    assert np.prod(recorded(graph).values["y"].shape) == 24

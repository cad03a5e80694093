"""Rules on what is used and by whom: unused parts, kernels, Gradient, features of later versions, fields, weights."""

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxeval
from onnxeval.registry import STANDARD, OpKey, op


def parsed(text: str, *imports: str, opset: int = 21, ir_version: int = 10) -> ModelProto:
    domains = "".join(f', "{name}": 1' for name in imports)
    return onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}{domains}]> {text}')


def found(model: ModelProto) -> list[tuple[str, str]]:
    return [(finding.rule, finding.where) for finding in onnxeval.check(model)]


# Unused


def test_what_only_unused_nodes_need_is_counted() -> None:
    (finding,) = onnxeval.check(parsed("g (float[2] x) => (float[2] y) {a = Abs(x) b = Exp(a) c = Neg(b) y = Neg(x)}"))
    assert (finding.rule, finding.where) == ("graph/unused-node", "graph/node[2] (Neg)")
    assert (finding.message, finding.hint) == ('nobody reads "c"', "2 more nodes here serve no output")


def test_sub_graphs_read_what_they_capture() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        h = Mul(x, w)
        y = If(c) <then_branch = t () => (float[2] a) {a = Neg(h)},
                   else_branch = e () => (float[2] b) {b = Abs(x) u = Exp(b)}>
    }"""
    assert found(parsed(text)) == [("graph/unused-node", "graph/node[1] (If) else_branch/node[1] (Exp)")]


def test_one_output_that_is_read_is_enough() -> None:
    assert found(parsed("g (float[2] x) => (float[2] y) {y, mask = Dropout(x)}")) == []


def test_what_an_operator_of_unknown_effect_makes_may_be_left_unread() -> None:
    rules = [
        rule for rule, _ in found(parsed("g (float[2] x) => (float[2] y) {t = com.acme.Log(x) y = Neg(x)}", "com.acme"))
    ]
    assert rules == ["evaluation/no-kernel"]


def test_a_body_may_ignore_what_the_node_gives() -> None:
    text = """g (int64 n, bool c, float[2] x) => (float[2] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool k, float[2] s) => (bool k2, float[2] s2) {
            k2 = Identity(k) s2 = Neg(s)}>
    }"""
    assert found(parsed(text)) == []


def test_training_reads_values_of_the_main_graph() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) <float w = {1}> {h = Mul(x, w) y = Neg(x)}")
    assert [rule for rule, _ in found(proto)] == ["graph/unused-node"]
    proto.training_info.add().algorithm.CopyFrom(onnx.parser.parse_graph("t () => (float[2] z) {z = Neg(h)}"))
    assert found(proto) == []


# Kernels


def test_an_operator_of_onnxruntime_is_known() -> None:
    gelu = "g (float[2] x) => (float[N] y) {y = com.microsoft.Gelu(x)}"
    assert found(parsed(gelu, "com.microsoft")) == []


@pytest.mark.parametrize(
    ("line", "rule", "message"),
    [
        ("y = com.microsoft.Gelu(x, x)", "node/input-count", "com.microsoft.Gelu has 1 input, 2 given"),
        ("y, z = com.microsoft.Gelu(x)", "node/output-count", "com.microsoft.Gelu gives 1 output, 2 taken"),
        (
            "y = com.microsoft.Gelu<alpha = 1.0>(x)",
            "node/unknown-attribute",
            'com.microsoft.Gelu has no attribute "alpha"',
        ),
        (
            "y = com.microsoft.FusedMatMul(x)",
            "node/absent-input",
            'com.microsoft.FusedMatMul needs its input 1 "b", it is not given',
        ),
        (
            "y = com.microsoft.FusedMatMul<transA = 1.0>(x, x)",
            "node/attribute-type",
            "it is of type FLOAT, com.microsoft.FusedMatMul declares INT",
        ),
        (
            "h = Shape(x) y = com.microsoft.FusedMatMul(x, h)",
            "type/not-allowed",
            "com.microsoft.FusedMatMul does not take int64 here",
        ),
        (
            "h = CastLike(x, k) y = com.microsoft.BiasGelu(x, h)",
            "type/variable",
            'it is float64, "x" is float32: com.microsoft.BiasGelu wants one type',
        ),
        (
            "y, a, b, c, z = com.microsoft.GroupQueryAttention<num_heads = 1, kv_num_heads = 1>(x, x, x, x, x, i, i)",
            "node/output-count",
            "com.microsoft.GroupQueryAttention gives 4 outputs, 5 taken",
        ),
        (
            "y = com.microsoft.GroupNorm(x, x, x)",
            "evaluation/no-kernel",
            "nothing here runs it: com.microsoft.GroupNorm is not run: it is written for a device",
        ),
        (
            "y = com.microsoft.Gelluu(x)",
            "evaluation/no-kernel",
            "nothing here runs it: com.microsoft.Gelluu is neither a registered operator nor a function of the model",
        ),
    ],
)
def test_kernels_describe_operators_outside_the_standard(line: str, rule: str, message: str) -> None:
    findings = onnxeval.check(
        parsed(
            f"g (float[2,2] x) => (float[N,M] y) <int32[1] i = {{1}}, double k = {{0}}> {{{line}}}",
            "com.microsoft",
        ),
        ignore=["graph/unused-*"],
    )
    assert [finding.rule for finding in findings] == [rule]
    assert findings[0].message.startswith(message)


@pytest.mark.parametrize(
    ("line", "rule", "message"),
    [
        ("y = SimplifiedLayerNormalization<epsilonn = 1.0>(x, x)", "node/unknown-attribute", "epsilonn"),
        ("y = SimplifiedLayerNormalization<axis = 1.0>(x, x)", "node/attribute-type", "is of type FLOAT"),
        ("y = SimplifiedLayerNormalization(x)", "node/absent-input", 'needs its input 1 "scale"'),
        ("y, a, b = SimplifiedLayerNormalization(x, x)", "node/output-count", "gives 2 outputs, 3 taken"),
        ("i = Shape(x) y = SimplifiedLayerNormalization(i, x)", "type/not-allowed", "does not take int64"),
        ("y = SimplifiedLayerNormalization(x, x)", "", ""),
    ],
)
def test_an_operator_of_onnxruntime_under_the_standards_domain(line: str, rule: str, message: str) -> None:
    findings = onnxeval.check(parsed(f"g (float[2,2] x) => (float[N,M] y) {{{line}}}"))
    told = [f for f in findings if f.rule != "node/foreign-operator"]
    assert len(findings) == len(told) + 1
    assert [f.rule for f in told] == [rule] * bool(rule)
    assert all(message in f.message for f in told)


def test_a_kernel_of_ones_own_is_known() -> None:
    key = OpKey("com.acme.test", "Twice", 1)
    text = "g (float[2] x) => (float[N] y) {y = com.acme.test.Twice(x)}"
    assert [rule for rule, _ in found(parsed(text, "com.acme.test"))] == ["evaluation/no-kernel"]
    if key not in STANDARD:

        @op("Twice", domain="com.acme.test", versions=(1,))
        def twice(x, *, factor: int):
            return x * factor

    assert [rule for rule, _ in found(parsed(text, "com.acme.test"))] == ["node/missing-attribute"]
    assert found(parsed(text.replace("Twice(", "Twice<factor = 2>("), "com.acme.test")) == []


def test_a_function_beside_a_kernel_is_not_called() -> None:
    text = """g (float[2] x) => (float[N] y) {y = com.microsoft.Gelu(x)}
        <domain: "com.microsoft", opset_import: ["": 21]> Gelu (a) => (c) {c = Neg(a)}"""
    (finding,) = onnxeval.check(parsed(text, "com.microsoft"))
    assert (finding.rule, finding.message) == (
        "function/shadows-operator",
        "onnxeval has com.microsoft.Gelu itself: the function is never called",
    )


# Gradient

GRADIENT = """g (float[2] x, float[2] w) => (float[2] d) {{
    h = Mul(x, w)  y = Exp(h)  d = ai.onnx.preview.training.Gradient<{}>({})
}}"""


@pytest.mark.parametrize(
    ("attributes", "inputs", "message"),
    [
        ('xs = ["x"], zs = ["w"], y = "y"', "x, w", None),
        ('xs = ["h"], y = "y"', "h", None),
        ('xs = ["x"], zs = ["w"], y = "y"', "x", "xs and zs name 2 values, 1 inputs are given"),
        ('xs = ["v"], y = "y"', "x", 'it names "v", which the graph does not have'),
        ('xs = ["x"], y = "q"', "x", 'it names "q", which the graph does not have'),
        ('xs = ["x"], zs = ["h"], y = "y"', "x, h", 'the value "h" is computed from "x", it is not independent of it'),
        ('xs = ["x"], y = "w"', "x", 'its target "w" is an input: no node computes it'),
    ],
)
def test_gradient(attributes: str, inputs: str, message: str | None) -> None:
    proto = parsed(GRADIENT.format(attributes, inputs), "ai.onnx.preview.training")
    errors = [(f.rule, f.message) for f in onnxeval.check(proto) if f.severity == "error"]
    assert errors == ([] if message is None else [("node/gradient", message)])


def test_gradient_in_a_function() -> None:
    text = """g (float[2] x) => (float[2] d) {{d = loc.slope(x)}}
        <domain: "loc", opset_import: ["": 21, "ai.onnx.preview.training": 1]> slope (a) => (d) {{
            y = Mul(a, a)  d = ai.onnx.preview.training.Gradient<xs = ["{}"], y = "y">(a)
        }}"""
    assert found(parsed(text.format("a"), "loc")) == []
    assert [rule for rule, _ in found(parsed(text.format("b"), "loc"))] == ["node/gradient"]


# Versions and fields


@pytest.mark.parametrize(
    ("text", "needed", "feature"),
    [
        ("g (bfloat16[2] x) => (bfloat16[2] y) {y = Identity(x)}", 4, "bfloat16"),
        ("g (float8e4m3fn[2] x) => (float8e4m3fn[2] y) {y = Identity(x)}", 9, "float8_e4m3fn"),
        ("g (seq(int4[2]) x) => (seq(int4[2]) y) {y = Identity(x)}", 10, "int4"),
        ("g (optional(float[2]) x) => (optional(float[2]) y) {y = Identity(x)}", 8, "an optional type"),
    ],
)
def test_types_of_later_versions(text: str, needed: int, feature: str) -> None:
    def told(ir_version: int) -> list[str]:
        model = parsed(text, opset=21, ir_version=ir_version)
        return [f.message for f in onnxeval.check(model, select=["proto/early-feature"])]

    assert told(needed) == []
    assert told(needed - 1)[0].endswith(f"came with IR version {needed}, the model says {needed - 1}")


def test_parts_of_later_versions() -> None:
    def told(change, ir_version: int) -> list[str]:
        model = parsed("g (float[2] x) => (float[2] y) {y = Neg(x)}", ir_version=ir_version)
        change(model)
        return [f.rule for f in onnxeval.check(model, select=["proto/early-feature"])]

    changes = {
        5: lambda m: m.graph.quantization_annotation.add(tensor_name="x"),
        7: lambda m: m.training_info.add(),
        10: lambda m: m.graph.node[0].metadata_props.add(key="a", value="b"),
        11: lambda m: m.graph.node[0].device_configurations.add(),
    }
    for needed, change in changes.items():
        assert told(change, needed) == []
        assert told(change, needed - 1) == ["proto/early-feature"]


def test_unknown_fields_have_a_place() -> None:
    model = parsed("g (float[2] x) => (float[2] y) {y = Neg(x)}")
    model.graph.MergeFromString(bytes([0xF8, 0x7F, 1]))
    (finding,) = onnxeval.check(model)
    assert (finding.rule, finding.where, finding.message) == (
        "proto/unknown-field",
        "graph",
        "a GraphProto has no field 2047",
    )


# Weights


def holding(array: np.ndarray, data_type: int | None = None) -> ModelProto:
    proto = parsed("g (float[2] x) => (float[2] y) {y = Neg(x)}", ir_version=13)
    tensor = (
        numpy_helper.from_array(array, "w")
        if data_type is None
        else helper.make_tensor("w", data_type, array.shape, array.ravel().tolist())
    )
    proto.graph.initializer.append(tensor)
    return proto


def weights(proto: ModelProto) -> list[tuple[str, str]]:
    return [(f.rule, f.message) for f in onnxeval.check(proto, select=["tensor"])]


@pytest.mark.parametrize(
    "data_type",
    [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16],
)
def test_nan_and_infinity(data_type: int) -> None:
    array = np.ones((2, 3))
    assert weights(holding(array, data_type)) == []
    array[1, 2] = np.nan
    assert weights(holding(array, data_type)) == [("tensor/nan", "1 of 6 elements is NaN, the first at [1, 2]")]
    array[0] = -np.inf
    assert weights(holding(array, data_type)) == [
        ("tensor/nan", "1 of 6 elements is NaN, the first at [1, 2]"),
        ("tensor/infinity", "3 of 6 elements are infinite, the first at [0, 0]"),
    ]


def test_bounds_and_masks_may_be_infinite() -> None:
    assert weights(holding(np.array([np.inf], np.float32))) == []
    assert weights(holding(np.array(-np.inf, np.float32))) == []
    assert weights(holding(np.where(np.tri(4), 0, -np.inf).astype(np.float32))) == []


def test_a_large_tensor_among_small_ones() -> None:
    large = np.zeros(2**21 + 5, np.float32)
    large[-2] = np.nan
    proto = holding(np.ones(4, np.float32))
    proto.graph.initializer.append(numpy_helper.from_array(large, "large"))
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1, np.nan], np.float32), "small"))
    assert [(f.where, f.message) for f in onnxeval.check(proto, select=["tensor"])] == [
        ('graph/initializer[1] "large"', "1 of 2097157 elements is NaN, the first at [2097155]"),
        ('graph/initializer[2] "small"', "1 of 2 elements is NaN, the first at [1]"),
    ]


def test_tables_of_predictors_hold_nan_for_missing_values() -> None:
    text = "g (float[N, 1] x) => (float[N, 1] y) {y = ai.onnx.ml.TreeEnsemble<nodes_splits = float[1] {1.0}>(x)}"
    proto = parsed(text, "ai.onnx.ml", ir_version=13)
    proto.graph.node[0].attribute[0].t.float_data[0] = np.nan
    assert weights(proto) == []
    proto.graph.node[0].op_type = "Constant"
    proto.graph.node[0].domain = ""
    assert [rule for rule, _ in weights(proto)] == ["tensor/nan"]

"""Nodes that chance came upon: each is refused in words of ours, with the values, and check does not fall over it."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from standard.one_node import f32, i64, run, strings

import onnxeval
from onnxeval.files.protobuf import message_of
from onnxeval.values import Sequence

ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"
I8 = np.zeros((1, 1, 2, 2), np.int8)
TREE = {
    "leaf_targetids": [0],
    "leaf_weights": numpy_helper.from_array(f32([1])),
    "n_targets": 1,
    "nodes_falseleafs": [1],
    "nodes_falsenodeids": [0],
    "nodes_featureids": [0],
    "nodes_modes": numpy_helper.from_array(np.zeros(1, np.uint8)),
    "nodes_splits": numpy_helper.from_array(f32([1])),
    "nodes_trueleafs": [1],
    "nodes_truenodeids": [0],
    "tree_roots": [0],
}
REFUSED: dict[str, tuple[str, str, int, list[Any], dict[str, Any], str]] = {
    "blocks of nothing": (
        "",
        "DepthToSpace",
        13,
        [np.zeros((1, 0, 1, 1), np.float32)],
        {"blocksize": 2**40},
        "holds nothing, but its sizes are too large",
    ),
    "a rank too many": (
        "",
        "Less",
        1,
        [f32([1, 2]), f32([[1], [2]])],
        {"broadcast": 1},
        r"\[2, 1\] does not fit",
    ),
    "axis that needs a huge rank": (
        "",
        "Sub",
        1,
        [f32([1]), f32([1, 2])],
        {"broadcast": 1, "axis": -(2**63)},
        r"shape \[2\] does not fit into \[1\] at axis -9223372036854775808",
    ),
    "scores without features": (
        ML,
        "LinearRegressor",
        1,
        [np.zeros((1, 0), np.float32)],
        {"targets": 2**62},
        "takes 36,893,488,147,419,103,232 bytes",
    ),
    "a window without end": ("", "HannWindow", 17, [i64(2**62)], {}, r"float64\[4611686018427387904\] takes"),
    "empty and too large": (
        "",
        "RandomNormal",
        1,
        [],
        {"shape": [0, 2**62, 4]},
        "holds nothing, but its sizes",
    ),
    "empty, reshaped too large": (
        "",
        "Reshape",
        14,
        [np.zeros(0, np.float32), i64([2**62, 4, 0])],
        {"allowzero": 1},
        "holds nothing, but its sizes are too large to count",
    ),
    "stacks of matrices": (
        "",
        "MatMul",
        13,
        [np.zeros((4, 1, 3), np.float32), np.zeros((5, 3, 2), np.float32)],
        {},
        r"the stacks of matrices of shapes \[4\] and \[5\] do not broadcast",
    ),
    "keys of rank 1": (
        "",
        "Attention",
        23,
        [np.zeros((1, 1, 1, 1), np.float32), f32([1]), f32([1]), f32([[1]])],
        {},
        "K has rank 1, expected 3 or 4",
    ),
    "weights without axes": ("", "ConvInteger", 10, [I8, np.int8(1), None, np.int8(1)], {}, "the weights have rank 0"),
    "no axes to keep a ratio of": (
        "",
        "Resize",
        19,
        [f32(1.0), None, None, i64([])],
        {"keep_aspect_ratio_policy": "not_larger", "mode": "cubic", "nearest_mode": "x"},
        "nearest_mode 'x'",
    ),
    "an attribute's scalar": (
        ML,
        "TreeEnsemble",
        5,
        [f32([[1]])],
        {**TREE, "nodes_splits": numpy_helper.from_array(f32(1.0))},
        "nodes_splits has rank 0, expected 1",
    ),
    "an attribute's strings": (
        ML,
        "TreeEnsembleRegressor",
        3,
        [f32([[1]])],
        {"base_values_as_tensor": helper.make_tensor("", TensorProto.STRING, [1], [b"x"]), "n_targets": 1},
        "base_values_as_tensor is string, expected numbers",
    ),
    "a default that its type cannot hold": (
        ML,
        "LabelEncoder",
        4,
        [strings("a")],
        {
            "keys_strings": ["a"],
            "values_tensor": numpy_helper.from_array(np.int16([1])),
            "default_int64": 99999,
        },
        "default_int64 99999 is outside",
    ),
    "heads that are not there": (
        "",
        "Attention",
        24,
        [np.zeros((1, 2, 1, 1), np.float32)] * 3,
        {"q_num_heads": 3},
        r"q_num_heads is 3, an input of shape \[1, 2, 1, 1\] has 2 heads",
    ),
    "heads that do not turn": (
        "",
        "RotaryEmbedding",
        23,
        [np.zeros((1, 2, 1, 2), np.float32), np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1), np.float32)],
        {"num_heads": 1},
        "num_heads is 1, an input of rank 4 has 2 heads",
    ),
    "a way to round that is not used": (
        "",
        "Cast",
        24,
        [f32([1])],
        {"to": 7, "round_mode": "x"},
        "round_mode 'x' is none",
    ),
    "a policy that is not used": (
        "",
        "Resize",
        19,
        [f32([1]), None, f32([2])],
        {"keep_aspect_ratio_policy": "x"},
        "keep_aspect_ratio_policy 'x' is none of",
    ),
    "a ratio that is not used": (
        "",
        "Dropout",
        22,
        [f32([1]), f32([1, 2])],
        {},
        r"ratio has shape \[2\], expected a scalar",
    ),
    "modes between two": (
        ML,
        "TreeEnsemble",
        5,
        [f32([[1]])],
        {**TREE, "nodes_modes": numpy_helper.from_array(f32([0.5]))},
        "nodes_modes are float32, expected integers",
    ),
    "an absent tensor among several": (TRAINING, "Adagrad", 1, [f32(1), i64(1), None, f32(1), f32(1)], {}, "is blank"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_node_is_refused(what: str) -> None:
    domain, op_type, opset, inputs, attributes, message = REFUSED[what]
    with pytest.raises(onnxeval.OnnxEvalError, match=message):
        run(domain, op_type, opset, inputs, 1, attributes)


def test_adam_follows_its_formula_out_of_the_numbers() -> None:
    """beta^T above 1 leaves a root of a negative number: NaN, as in IEEE arithmetic."""
    given = [f32(1), i64(9), f32([1]), f32([1]), f32([1]), f32([1])]
    for beta in (2.0, 1e30):
        x, *_ = run(TRAINING, "Adam", 1, given, 3, {"beta": beta})
        assert np.isnan(x).all()


@pytest.mark.parametrize("op_type", ["Elu", "LeakyRelu"])
@pytest.mark.parametrize("alpha", [np.nan, np.inf, -np.inf])
def test_a_factor_for_negative_numbers_leaves_the_others_alone(op_type: str, alpha: float) -> None:
    (y,) = run("", op_type, 6, [f32([0, 1, np.inf])], 1, {"alpha": float(alpha)})
    assert y.tolist() == [0, 1, np.inf]


def test_steps_that_no_window_takes_may_be_huge() -> None:
    x, w = np.ones((1, 1, 3, 2), np.float32), np.ones((1, 1, 3, 1), np.float32)
    attributes = {"strides": [2**62, 1], "dilations": [1, 2**62]}
    (y,) = run("", "Conv", 11, [x, w], 1, attributes)
    assert y.tolist() == [[[[3, 3]]]]


def test_the_indices_of_no_maxima() -> None:
    x = np.zeros((4, 2, 0), np.float32)
    y, indices = run("", "MaxPool", 11, [x], 2, {"kernel_shape": [1], "auto_pad": "SAME_LOWER"})
    assert y.shape == indices.shape == (4, 2, 0)


@pytest.mark.parametrize("made", ["Cast<to = 1>(c)", "Cast<to = 8>(c)", "SequenceConstruct(c)"])
def test_the_condition_of_a_loop_stays_a_bool(made: str) -> None:
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (int64 n, bool b, float x) => (float y) {'
        f"y = Loop(n, b, x) <body = f (int64 i, bool c, float s) => (bool d, float t) {{d = {made} t = Neg(s)}}>}}"
    )
    with pytest.raises(onnxeval.NodeError, match=r"the body's condition is .*, expected a bool"):
        onnxeval.load(model).run({"n": 2, "b": True, "x": 1.0})


def test_an_empty_sequence_is_no_tensor() -> None:
    model = parser.parse_model('<ir_version: 10, opset_import: ["": 21]> g (float x) => (float y) {y = Softmax(x)}')
    model.graph.input[0].ClearField("type")
    with pytest.raises(onnxeval.NodeError, match=r'input "input" is seq\(unknown\), allowed: bfloat16'):
        onnxeval.load(model).run({"x": Sequence()})


def test_a_function_is_called_without_what_its_body_needs() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21, "loc": 1]> g (float[2] x) => (float[2] y) {y = loc.f(x)}
        <domain: "loc", opset_import: ["": 21]> f (a, b) => (c) {c = Add(a, b)}"""
    )
    with pytest.raises(onnxeval.NodeError, match='input 1 "B" is absent, Add-14 needs it'):
        onnxeval.load(model).run({"x": f32([1, 2])})


@pytest.mark.parametrize(
    ("node", "rule"),
    [
        ("LayerNormalization<axis = 9223372036854775807>(x, s)", "value/axis"),
        ("GatherND<batch_dims = -3>(x, i)", "value/number"),
        ("Einsum<equation = 'a-b'>(x)", "value/equation"),
        (f"Einsum<equation = '{'aa,' * 200}!'>(x)", "value/equation"),
    ],
)
def test_what_breaks_the_standards_own_inference_is_found_before(node: str, rule: str) -> None:
    text = node.replace("'", '"')
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[2,2,2] x, float[2] s, int64[2,1,2] i) => (float y) '
        f"{{y = {text}}}"
    )
    model.graph.output[0].ClearField("type")
    assert rule in {finding.rule for finding in onnxeval.check(model)}


def test_a_split_of_other_parts_than_outputs() -> None:
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[6] x) => (float[N] a) {a, b = Split<num_outputs = 1>(x)}'
    assert [finding.rule for finding in onnxeval.check(parser.parse_model(text))] == ["value/parts"]


@pytest.mark.parametrize(
    "node",
    ["Reshape(x, w)", "Gather<axis = 0>(x, w)", "Squeeze(x, w)", "ReduceSum(x, w)", "CumSum(x, w)", "Expand(x, w)"],
)
@pytest.mark.parametrize(
    "values", [strings("a", "b"), np.array([1j, 2j]), np.array([np.nan, 1]), np.array([True, False])]
)
def test_constants_of_a_wrong_type_are_told_by_the_rule_of_types(node: str, values: Any) -> None:
    text = f'<ir_version: 10, opset_import: ["": 21]> g (float[2,2] x) => (float y) {{y = {node}}}'
    model = parser.parse_model(text)
    model.graph.output[0].ClearField("type")
    tensor = message_of(values, "w")
    assert isinstance(tensor, TensorProto)
    model.graph.initializer.append(tensor)
    assert "type/not-allowed" in {finding.rule for finding in onnxeval.check(model)}
    model.graph.input.append(parser.parse_graph("g (int64[2] w) => () {}").input[0])
    assert "type/declared-initializer" in {finding.rule for finding in onnxeval.check(model)}

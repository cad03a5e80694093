"""What a run is held against, value by value, and the node where a difference begins."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import onnxeval
from onnxeval.comparing import Tolerance
from onnxeval.errors import EngineError, InputError, MissingExtra
from onnxeval.versus import verdict

X = np.array([[[1, 2, 3], [0, 1, 2]], [[2, 2, 2], [3, 0, 1]]], np.float32)


def load(text: str, opset: int = 21) -> onnxeval.Model:
    return onnxeval.load(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}'))


def versus(model, feeds, other, names=None, **options) -> verdict.Report:
    """Against all values inside, by default."""
    names = [*model.values] if names is None else names
    return verdict.versus(model, feeds, model.run(feeds, names), other, **options)


def differing(report: verdict.Report) -> list[str]:
    return [row.name for row in report.rows if row.differs]


def test_softmax_before_13_normalises_rows_and_the_reference_evaluator_an_axis():
    """The text of version 11: the input is coerced to 2-D at ``axis``."""
    model = load("g (float[2, 2, 3] x) => (float[2, 2, 3] y) { a = Neg(x) b = Softmax<axis = 1>(a) y = Sqrt(b) }", 11)
    report = versus(model, {"x": X}, "reference")
    assert report.other == "ReferenceEvaluator"
    assert report.version == onnx.__version__
    assert differing(report) == ["b", "y"]
    assert report.first == report.own
    assert report.first.row.node == "node 1 (Softmax-11)"
    assert [(o.name, o.state, o.comparison.agrees) for o in report.first.operands] == [("a", "compared", True)]
    exponents = np.exp(-X)
    right, wrong = (exponents / exponents.sum(axis, keepdims=True) for axis in ((1, 2), 1))
    assert report.first.row.comparison.max_abs == pytest.approx(np.abs(right - wrong).max(), rel=1e-5)
    assert not report.first.alone.agrees


def test_batch_normalization_before_14_has_no_training_mode_and_adds_epsilon():
    model = load(
        """g (float[2, 2, 3] x) => (float[2, 2, 3] y)
        <float[2] scale = {1, 2}, float[2] b = {0, 1}, float[2] mean = {0.5, 0.5}, float[2] var = {1, 3}>
        { a = Abs(x) y = BatchNormalization(a, scale, b, mean, var) }""",
        9,
    )
    report = versus(model, {"x": X}, "reference")
    assert report.own is not None
    assert report.own.row.node == "node 1 (BatchNormalization-9)"
    states = {operand.name: operand.state for operand in report.own.operands}
    assert states == {"a": "compared", "scale": "constant", "b": "constant", "mean": "constant", "var": "constant"}


_NETWORK = """g (float[2, 2, 3] x) => (float[2, 2, 3] y)
    <float[3] w = {1, 2, 3}, float[2, 1] v = {4, 5}, float[3] u = {6, 7, 8}>
    { a = Mul(x, w) b = Relu(a) c = Add(b, v) d = Abs(c) y = Sub(d, u) }"""


@pytest.mark.parametrize(
    ("weight", "maker", "after"), [("w", "a", "abcdy"), ("v", "c", "cdy"), ("u", "y", "y")], ids=["w", "v", "u"]
)
def test_a_planted_weight_shows_at_its_node(weight, maker, after):
    model, other = load(_NETWORK), load(_NETWORK)
    for tensor in other.proto.graph.initializer:
        if tensor.name == weight:
            changed = numpy_helper.to_array(tensor) + np.float32(0.5)
            tensor.CopyFrom(numpy_helper.from_array(changed, weight))
    other = onnxeval.load(other.proto)
    report = versus(model, {"x": X}, other)
    assert differing(report) == [weight, *after]
    assert report.first == report.own
    assert report.first.row.name == maker
    operands = {operand.name: operand for operand in report.first.operands}
    assert operands.pop(weight).comparison.max_abs == 0.5
    assert all(o.state == "given" or o.comparison.agrees for o in operands.values())
    assert versus(model, {"x": X}, load(_NETWORK)).agrees


_ROUNDED = "g (float[3] x) => (float[3] y) <float[1] w = {%s}> { a = Mul(x, w) b = Floor(a) y = Neg(b) }"


def test_what_only_passes_on_small_differences_is_told_apart():
    feeds = {"x": np.array([1, 2, 3], np.float32)}
    report = versus(load(_ROUNDED % "1"), feeds, load(_ROUNDED % "0.999999"))
    assert differing(report) == ["b", "y"]
    assert report.first.row.name == "b"
    assert 0 < report.first.operands[0].comparison.max_abs < 1e-5
    assert report.first.alone.agrees
    assert report.own is None
    assert report.all_alone
    exact = versus(load(_ROUNDED % "1"), feeds, load(_ROUNDED % "0.999999"), tolerance=lambda _name: Tolerance(ulp=0))
    assert exact.first.row.name == "a"
    assert exact.own == exact.first


def test_the_same_is_found_where_the_graph_is_written_backwards():
    backwards = load("g (float[2, 2, 3] x) => (float[2, 2, 3] y) { y = Abs(b) b = Exp(a) a = Neg(x) }")
    forwards = load("g (float[2, 2, 3] x) => (float[2, 2, 3] y) { a = Neg(x) b = Sin(a) y = Abs(b) }")
    report = versus(backwards, {"x": X}, forwards)
    assert [row.name for row in report.rows] == ["a", "b", "y"]
    assert report.first.row.name == "b"


def test_inputs_that_were_not_compared_are_not_known():
    model = load("g (float[2, 2, 3] x) => (float[2, 2, 3] y) { a = Neg(x) b = Softmax(a) y = Sqrt(b) }", 11)
    report = versus(model, {"x": X}, "reference", ["y"])
    assert [(operand.name, operand.state) for operand in report.first.operands] == [("b", "not shown")]
    assert report.first.alone is None
    assert not report.all_alone


_LOOP = """g (int64 n, float[2] x) => (float[2] y) <bool yes = {1}> {
    step = %s(x)
    y = Loop(n, yes, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w)
        { d = Identity(c) w = %s(v, step) }>
    }"""


def test_what_a_body_reads_from_outside_counts_as_an_input():
    feeds = {"n": np.array(3), "x": np.array([1, 2], np.float32)}
    report = versus(load(_LOOP % ("Neg", "Add")), feeds, load(_LOOP % ("Neg", "Sub")))
    assert differing(report) == ["y"]
    assert {o.name: o.state for o in report.own.operands}["step"] == "compared"
    report = versus(load(_LOOP % ("Neg", "Add")), feeds, load(_LOOP % ("Abs", "Add")))
    assert differing(report) == ["step", "y"]
    assert report.own.row.name == "step"


def test_nan_and_infinities_are_values_as_others():
    model = load("g (float[4] x) => (float[4] y) { a = Log(x) y = Sqrt(x) }")
    assert versus(model, {"x": np.array([-1, 0, 1, np.inf], np.float32)}, "reference").agrees
    other = load("g (float[4] x) => (float[4] y) { a = Neg(x) y = Sqrt(x) }")
    assert differing(versus(model, {"x": np.array([-1, 0, 1, np.inf], np.float32)}, other)) == ["a"]


def test_floats_of_two_types_are_compared_and_other_types_differ():
    model = load("g (float[3] x) => (float[3] y, int64[3] k) { y = Exp(x) k = Cast<to = 7>(x) }")
    other = load("g (float16[3] x) => (float16[3] y, int32[3] k) { y = Exp(x) k = Cast<to = 6>(x) }")
    report = versus(model, {"x": np.array([1, 2, 3], np.float32)}, other, tolerance=lambda _name: Tolerance(rtol=2e-3))
    assert report.notes == ("the model is given x as float16",)
    exponentials, whole = report.rows
    assert exponentials.comparison.agrees
    assert 0 < exponentials.comparison.max_rel <= 2**-11 + 1e-6
    assert exponentials.note == "float16 in the model"
    assert whole.comparison.reason == "k is int64[3], int32[3] is expected"
    assert report.first.row is whole


def test_values_that_one_side_has():
    model = load("g (float[3] x) => (float[3] y, float[3] z) { a = Neg(x) y = Exp(a) z = Abs(x) }")
    other = load("g (float[3] x) => (float[3] y, float[3] n) { b = Neg(x) y = Exp(b) n = Abs(x) }")
    feeds = {"x": np.array([1, 2, 3], np.float32)}
    report = versus(model, feeds, other, ["y", "z"])
    assert [(row.name, row.comparison is not None) for row in report.rows] == [("y", True), ("z", False)]
    assert report.agrees
    assert report.extra == ("n",)
    assert versus(model, feeds, other).extra == ("b", "n")
    with pytest.raises(InputError, match="nothing can be compared: a: the model has no such value"):
        versus(model, feeds, other, ["a"])
    with pytest.raises(InputError, match="nothing to compare: no node of the model makes x"):
        versus(model, feeds, "reference", ["x"])


def test_inputs_that_the_other_model_lacks_or_wants():
    model = load("g (float[1] x, float[1] unused) => (float[1] y) { y = Neg(x) }")
    feeds = {"x": np.array([1], np.float32), "unused": np.array([1], np.float32)}
    report = versus(model, feeds, load("g (float[1] x) => (float[1] y) { y = Neg(x) }"))
    assert report.notes == ("the model has no input unused",)
    with pytest.raises(InputError, match='the model: no value for the input "z"'):
        versus(model, feeds, load("g (float[1] z) => (float[1] y) { y = Neg(z) }"))


def test_random_numbers_of_two_models_are_the_same():
    model = load("g () => (float[3] y) { y = RandomNormal<shape = [3]>() }")
    results = model.run({}, seed=5)
    assert verdict.versus(model, {}, results, model, seed=5).agrees
    assert not verdict.versus(model, {}, results, model, seed=6).agrees


def test_what_the_reference_evaluator_raises_is_its_own_message_without_a_traceback():
    model = load("g (uint8[1] x) => (float[1] y) <float s = {2}> { y = DequantizeLinear(x, s) }", 10)
    with pytest.raises(EngineError, match="ReferenceEvaluator cannot run the model: ") as caught:
        versus(model, {"x": np.array([4], np.uint8)}, "reference")
    assert "Traceback" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 10


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("onnxeval.benchmark.measuring.find_spec", lambda _name: None)
    model = load("g (float[1] x) => (float[1] y) { y = Neg(x) }")
    with pytest.raises(MissingExtra, match="the engine onnxruntime needs the extra `compare`"):
        versus(model, {"x": np.array([1], np.float32)}, "onnxruntime")


def test_the_readable_kernels_can_be_held_against_the_others():
    model = load(_NETWORK)
    results = model.run({"x": X}, [*model.values], reference=True)
    assert verdict.versus(model, {"x": X}, results, model, lambda _name: Tolerance(ulp=0), reference=True).agrees

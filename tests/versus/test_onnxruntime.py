"""onnxruntime as the other side: every type that flows, data outside the file, and what it cannot run."""

import platform
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import onnxeval
from onnxeval.errors import EngineError, InputError
from onnxeval.random_feeds import make_feeds
from onnxeval.versus import verdict

pytest.importorskip("onnxruntime")

SAMPLES = Path(__file__).parents[2] / "sample_models"


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')


def against(model, feeds, names=None) -> verdict.Report:
    return verdict.versus(model, feeds, model.run(feeds, [*model.values] if names is None else names), "onnxruntime")


@pytest.mark.parametrize("name", ["digits", "depth_to_space_13", "max_pool_12", "collatz"])
def test_every_value_of_the_samples_agrees(name):
    model = onnxeval.load(SAMPLES / name / "model.onnx")
    feeds = make_feeds(model, {}, {}, seed=1).feeds
    report = against(model, feeds)
    assert report.agrees
    assert {row.name for row in report.rows} == {n for node in model.proto.graph.node for n in node.output if n}
    assert all(row.comparison is not None for row in report.rows)
    assert (report.first, report.own) == (None, None)


def test_nothing_is_written_beside_the_model(tmp_path):
    model = parsed("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    onnx.save(model, tmp_path / "m.onnx")
    assert against(onnxeval.load(tmp_path / "m.onnx"), {"x": np.array([1, 2], np.float32)}).agrees
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


_TYPES = {
    "float16": "g (float16[2] x) => (float16[2] y) { y = Add(x, x) }",
    "bfloat16": "g (bfloat16[2] x) => (bfloat16[2] y) { f = Cast<to = 1>(x) y = Cast<to = 16>(f) }",
    "float8": "g (float8e5m2[2] x) => (float8e4m3fn[2] y) { f = Cast<to = 1>(x) y = Cast<to = 17>(f) }",
    "int4": "g (int4[3] x) => (uint4[3] y) { f = Cast<to = 1>(x) g = Abs(f) y = Cast<to = 21>(g) }",
    "string": "g (string[2] x) => (string[2] y) { y = StringConcat(x, x) }",
    "bool": "g (bool[2] x) => (bool[2] y) { y = Not(x) }",
    "sequence": """g (float[2] x) => (float[2] y) {
        s = SequenceConstruct(x, x) n = SequenceLength(s) i = Sub(n, n) y = SequenceAt(s, i) }""",
    "optional": "g (float[2] x) => (float[2] y) { o = Optional(x) y = OptionalGetElement(o) }",
    "several": """g (int64[2] x) => (string[2] y) {
        b = Cast<to = 16>(x) s = SequenceConstruct(x, x) y = Cast<to = 8>(x) f = Cast<to = 1>(b) }""",
}


@pytest.mark.parametrize("name", _TYPES)
def test_every_type_is_compared(name):
    model = onnxeval.load(parsed(_TYPES[name]))
    report = against(model, make_feeds(model, {}, {}, seed=1).feeds)
    assert report.agrees
    assert all(row.comparison is not None for row in report.rows)


_NO_WAY = {
    "sequences or maps": ("seq(float[1])", "SequenceLength", [np.array([1], np.float32)]),
    "strings": ("string[2]", "Size", np.array(["a", "b"], object)),
}


@pytest.mark.parametrize("what", _NO_WAY)
def test_what_cannot_come_out_says_why(what):
    """What goes in only by the way of NumPy, and a bfloat16 that comes out only by the other."""
    declared, operator, value = _NO_WAY[what]
    model = onnxeval.load(parsed(f"g ({declared} s) => (int64 n) {{ n = {operator}(s) b = Cast<to = 16>(n) }}"))
    report = against(model, {"s": value})
    assert [(row.name, row.comparison is not None) for row in report.rows] == [("n", True), ("b", False)]
    assert f"takes no {what} beside types that NumPy lacks" in report.rows[1].note
    with pytest.raises(InputError, match="nothing can be compared: b: onnxruntime"):
        against(model, {"s": value}, ["b"])


def with_external_data(folder: Path) -> None:
    """A model of a large weight in a file of its own, and of another in a sub-graph."""
    model = parsed(
        """g (float[4] x, bool c) => (float[4] y) <float[4] w = {1, 2, 3, 4}> {
            a = Mul(x, w)
            y = If(c) <
                then_branch = t () => (float[4] p) <float[4] v = {5, 6, 7, 8}> { p = Add(a, v) },
                else_branch = e () => (float[4] q) { q = Neg(a) }>
        }"""
    )
    inside = model.graph.node[1].attribute[0].g.initializer[0]
    for tensor in (model.graph.initializer[0], inside):
        tensor.raw_data = np.array(tensor.float_data, np.float32).tobytes()
        tensor.ClearField("float_data")
        onnx.external_data_helper.set_external_data(tensor, "weights.bin")
    folder.mkdir()
    onnx.save(model, folder / "m.onnx")


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_external_data_is_found_through_links_too(tmp_path, engine):
    with_external_data(tmp_path / "data")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for number, name in enumerate(("m.onnx", "weights.bin")):
        (tmp_path / "data" / name).rename(tmp_path / "data" / f"blob{number}")
        (snapshot / name).symlink_to(tmp_path / "data" / f"blob{number}")
    model = onnxeval.load(snapshot / "m.onnx")
    feeds = {"x": np.array([1, 2, 3, 4], np.float32), "c": np.array(True)}
    report = verdict.versus(model, feeds, model.run(feeds, ["a", "y"]), engine)
    assert report.agrees
    assert [row.name for row in report.rows] == ["a", "y"]


def test_large_files_and_texts_and_bytes(tmp_path):
    weights = np.arange(2**19, dtype=np.float32).reshape(1, -1)
    model = parsed("g (float[1] x) => (float[1, 524288] y) { a = Neg(x) y = Mul(a, w) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "large.onnx")
    feeds = {"x": np.array([2], np.float32)}
    assert against(onnxeval.load(tmp_path / "large.onnx"), feeds).agrees
    assert against(onnxeval.load(model), feeds).agrees
    small = parsed("g (float[1] x) => (float[1] y) { a = Neg(x) y = Exp(a) }")
    (tmp_path / "small.onnxtxt").write_text(onnx.printer.to_text(small))
    assert against(onnxeval.load(tmp_path / "small.onnxtxt"), feeds).agrees


def test_an_initializer_that_is_fed():
    model = parsed("g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }")
    feeds = {"x": np.array([2, 3], np.float32), "w": np.array([5, 7], np.float32)}
    assert against(onnxeval.load(model), feeds).agrees


def test_what_it_cannot_run_is_its_own_message():
    model = onnxeval.load(parsed("g (double[2] x) => (double[2] y) { y = Erf(x) }"))
    with pytest.raises(EngineError) as caught:
        against(model, {"x": np.array([1.0, 2.0])})
    assert str(caught.value).startswith(
        "onnxruntime cannot run the model: Could not find an implementation for Erf(13)"
    )


def test_results_of_another_weight_differ_from_its_node_on():
    model = onnxeval.load(SAMPLES / "digits" / "model.onnx")
    feeds = {"picture": np.load(SAMPLES / "digits" / "digit_7.npy")}
    changed = onnx.load(SAMPLES / "digits" / "model.onnx")
    tensor = next(tensor for tensor in changed.graph.initializer if tensor.name == "conv2_w")
    weights = onnx.numpy_helper.to_array(tensor).copy()
    weights[3, 2, 1, 1] += 0.5
    tensor.CopyFrom(onnx.numpy_helper.from_array(weights, "conv2_w"))
    results = onnxeval.load(changed).run(feeds, [*model.values])
    report = verdict.versus(model, feeds, results, "onnxruntime")
    assert next(row.name for row in report.rows if row.differs) == "strokes"
    assert report.first.row.node == "conv2 (Conv-11)"
    assert report.first.alone.agrees  # what the engine made of its inputs is right


def test_pools_that_lose_rows():
    """``auto_pad`` says that there are ceil(input / stride) elements: docs/differences.md."""
    model = onnxeval.load(
        parsed(
            """g (float[1, 1, 4] x) => (float[1, 1, 4] y) {
            a = Abs(x)
            b = MaxPool<kernel_shape = [2], dilations = [2], auto_pad = "SAME_UPPER">(a)
            y = Neg(b)
        }"""
        )
    )
    report = against(model, {"x": np.array([[[1, 2, 3, 4]]], np.float32)})
    assert report.own == report.first
    assert report.own.row.node == "node 1 (MaxPool-12)"
    assert report.own.row.comparison.reason == "b is float32[1, 1, 4], float32[1, 1, 3] is expected"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="elsewhere such a division is none")
def test_an_engine_that_dies():
    """The least integer over -1: docs/differences.md."""
    model = onnxeval.load(parsed("g (int32[1] x, int32[1] z) => (int32[1] y) { y = Div(x, z) }"))
    with pytest.raises(EngineError, match="onnxruntime cannot run the model: the process of onnxruntime "):
        against(model, {"x": np.array([-(2**31)], np.int32), "z": np.array([-1], np.int32)})

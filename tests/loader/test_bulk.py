"""Weights of large files are held once: what is read beside the message is what the message holds."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxeval
from onnxeval import bulk, loader

X = np.array([1, -2], np.float32)


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "LARGE_FILE", 0)
    monkeypatch.setattr(bulk, "_LARGE_DATA", 1)
    monkeypatch.setattr(bulk, "_FEWEST_BYTES", 1)


def test_a_file_of_many_small_fields_is_left_to_the_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_MOST_FIELDS", 1000)
    path = tmp_path / "m.onnx"
    onnx.save(model(), path)
    assert bulk.read_apart(path) is not None
    path.write_bytes(model().SerializeToString() + b"\x08\x0a" * 1000)  # the IR version, again and again
    assert bulk.read_apart(path) is None
    monkeypatch.setattr(bulk, "_MOST_FIELDS", 2**20)
    assert bulk.read_apart(path) is not None
    monkeypatch.setattr(bulk, "_FEWEST_BYTES", 4)
    assert bulk.read_apart(path) is None


def model() -> ModelProto:
    """Weights in an initializer, in attributes, in a sub-graph, in a function, sparse and dense, raw and typed."""
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "loc": 1]> g (float[2] x, bool c) => (float[2] y)
            <float[2] typed = {5, 6}> {
            w = Constant <value = float[2] {0, 0}> ()
            t = If (c) <
                then_branch = one () => (float[2] r) <float[2] v = {0, 0}> { r = Mul (x, v) },
                else_branch = other () => (float[2] r) { r = Identity (x) }
            >
            u = Mul (t, w)
            s = Add (u, raw)
            z = Add (s, sparse)
            q = Add (z, typed)
            y = loc.f (q)
        }
        <domain: "loc", opset_import: ["" : 21]>
        f (a) => (b) { c = Constant <value = float[2] {0, 0}> () b = Add (a, c) }"""
    )

    def put(tensor: TensorProto, *values: float) -> None:
        tensor.CopyFrom(numpy_helper.from_array(np.array(values, np.float32), tensor.name))

    put(proto.graph.initializer.add(name="raw"), 100, 200)
    put(proto.graph.node[0].attribute[0].t, 3, 4)
    put(proto.graph.node[1].attribute[0].g.initializer[0], 7, 8)
    put(proto.functions[0].node[0].attribute[0].t, 1000, 2000)
    values = numpy_helper.from_array(np.array([0.5], np.float32), "sparse")
    proto.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1])), [2])
    )
    return proto


MODEL = model()
FEEDS = {"x": X, "c": np.array(True)}
EXPECTED = X * [7, 8] * [3, 4] + [100, 200] + [0, 0.5] + [5, 6] + [1000, 2000]


def test_data_anywhere_in_the_file_is_read_beside_the_message(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(MODEL.SerializeToString())
    loaded = loader.load_model(path)
    where = np.array([1])  # the index of the sparse one
    values = [np.array(v, np.float32) for v in ([0.5], [3, 4], [7, 8], [100, 200], [1000, 2000])]
    assert sorted(a.tobytes() for a in loaded.held.values()) == sorted(a.tobytes() for a in (where, *values))
    assert all(array.ctypes.data % 16 == 0 for array in loaded.held.values())
    assert "raw_data" not in str(loaded.proto)
    assert onnxeval.load(path).run(FEEDS)["y"].tolist() == EXPECTED.tolist()


def test_the_file_is_not_needed_any_more(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(MODEL.SerializeToString())
    loaded = onnxeval.load(path)
    path.unlink()
    assert loaded.run(FEEDS)["y"].tolist() == EXPECTED.tolist()


def test_the_reference_that_stands_for_the_data_is_right(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(MODEL.SerializeToString())
    proto = loader.load_model(path).proto
    assert numpy_helper.to_array(proto.graph.initializer[1], str(tmp_path)).tolist() == [100, 200]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.float_data.append(1),
        lambda t: t.external_data.add(key="location", value="x"),
        lambda t: t.segment.SetInParent(),
    ],
)
def test_a_tensor_that_contradicts_itself_is_left_as_it_is(tmp_path: Path, change) -> None:
    proto = ModelProto.FromString(MODEL.SerializeToString())
    change(proto.graph.initializer[1])
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    assert loader.load_model(path).proto.graph.initializer[1] == proto.graph.initializer[1]


def test_a_field_given_twice_counts_as_in_the_standard_encoding(tmp_path: Path) -> None:
    """Messages in a row merge; of plain fields the last counts."""
    extra = ModelProto()
    extra.graph.name = "other"
    path = tmp_path / "model.onnx"
    path.write_bytes(MODEL.SerializeToString() + extra.SerializeToString())
    loaded = onnxeval.load(path)
    assert loaded.proto.graph.name == "other"
    assert loaded.run(FEEDS)["y"].tolist() == EXPECTED.tolist()


def outcome(source: Path | bytes) -> object:
    try:
        loaded = onnxeval.load(source)
        return {name: value.tolist() for name, value in loaded.run(FEEDS).items()}
    except onnxeval.OnnxEvalError as error:
        return type(error)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_comes_to_the_same_as_its_bytes(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(MODEL.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "double"])):
            case "flip":
                content[place] = data.draw(st.integers(0, 255))
            case "cut":
                del content[place : place + data.draw(st.integers(1, 9))]
            case _:
                content[place:place] = content[place : place + 9]
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert str(outcome(path)) == str(outcome(bytes(content)))


def test_nesting_without_end_is_left_to_the_parser(tmp_path: Path) -> None:
    """A graph in an attribute of a node of a graph ..., deeper than protobuf goes."""

    def wrapped(field: int, content: bytes) -> bytes:
        return bulk._varint(field << 3 | 2) + bulk._varint(len(content)) + content

    graph = b""
    for _ in range(5000):
        graph = wrapped(1, wrapped(5, wrapped(6, graph)))
    path = tmp_path / "model.onnx"
    path.write_bytes(wrapped(7, graph))
    with pytest.raises(onnxeval.ModelError, match="is not an ONNX model"):
        onnxeval.load(path)

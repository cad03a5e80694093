"""A model to a file: every format, data inside and beside it, nothing half-written."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import onnxeval
from onnxeval import saving
from onnxeval.errors import ModelError, OutputError
from onnxeval.external import Files
from onnxeval.loader import load_model, parse_model
from onnxeval.saving import model_bytes, save_model

TEXT = '<ir_version: 10, opset_import: ["": 21]> g (float[2000] x) => (float[2000] y) { a = Add(x, w)  y = Mul(a, v) }'
W, V = np.arange(2000, dtype=np.float32), np.full(2000, 0.1, np.float32)
X = np.ones(2000, np.float32)


def whole() -> onnx.ModelProto:
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.initializer.extend([numpy_helper.from_array(W, "w"), numpy_helper.from_array(V, "v")])
    return proto


def results(path):
    return onnxeval.load(path).run({"x": X})["y"]


@pytest.mark.parametrize("suffix", [".onnx", ".onnxtxt", ".textproto", ".json"])
@pytest.mark.parametrize("beside", [False, True])
def test_every_format(tmp_path, monkeypatch, suffix, beside):
    if beside:
        monkeypatch.setattr(saving, "_MOST_INSIDE", 10_000)
    path = tmp_path / f"m{suffix}"
    notes = save_model(whole(), path)
    assert [file.name for file in sorted(tmp_path.iterdir())] == [path.name, f"{path.name}.data"][: 1 + beside]
    assert bool(notes) == beside
    assert np.array_equal(results(path), (X + W) * V)
    if suffix == ".onnx":
        onnx.checker.check_model(path, full_check=True)
        assert np.array_equal(numpy_helper.to_array(onnx.load(path).graph.initializer[0]), W)


@pytest.mark.parametrize("beside", [False, True])
def test_external_data_comes_along(tmp_path, monkeypatch, beside):
    source = tmp_path / "source"
    source.mkdir()
    onnx.save(whole(), source / "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    if beside:
        monkeypatch.setattr(saving, "_MOST_INSIDE", 10_000)
    loaded = load_model(source / "m.onnx")
    save_model(loaded.proto, tmp_path / "m.onnx", Files(loaded.folders, loaded.held))
    (source / "weights").unlink()
    assert np.array_equal(results(tmp_path / "m.onnx"), (X + W) * V)
    assert (tmp_path / "m.onnx.data").exists() == beside


def test_data_that_is_not_there(tmp_path):
    onnx.save(whole(), tmp_path / "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "weights").unlink()
    loaded = load_model(tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="weights"):
        save_model(loaded.proto, tmp_path / "n.onnx", Files(loaded.folders))
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]


def test_the_model_s_own_data_is_not_written_over(tmp_path):
    onnx.save(whole(), tmp_path / "m.onnx", save_as_external_data=True, location="n.onnx.data", size_threshold=0)
    loaded = load_model(tmp_path / "m.onnx")
    for name in ("n.onnx", "n.onnx.data"):
        with pytest.raises(OutputError, match="holds the model's own data"):
            save_model(loaded.proto, tmp_path / name, Files(loaded.folders))
    assert np.array_equal(results(tmp_path / "m.onnx"), (X + W) * V)


@pytest.mark.parametrize("beside", [False, True])
def test_nothing_half_written_stays(tmp_path, monkeypatch, beside):
    def full(*_):
        raise OSError(28, "No space left on device")

    if beside:
        monkeypatch.setattr(saving, "_MOST_INSIDE", 10_000)
    (tmp_path / "m.onnx").write_text("what was there")
    monkeypatch.setattr(saving.Path, "write_bytes", full)
    with pytest.raises(OutputError, match="No space left"):
        save_model(whole(), tmp_path / "m.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]
    assert (tmp_path / "m.onnx").read_text() == "what was there"


def test_texts_for_people_may_be_left_out_and_nothing_else():
    proto = whole()
    proto.graph.doc_string = "what it is for"
    _, notes = model_bytes(proto, "m.onnxtxt")
    assert notes == ["onnxtxt leaves out what doc_string says"]
    assert model_bytes(proto, "m.json")[1] == model_bytes(proto, "m.onnx")[1] == []
    proto.graph.quantization_annotation.add(tensor_name="x")
    with pytest.raises(ModelError, match="without loss"):
        model_bytes(proto, "m.onnxtxt")


@pytest.mark.parametrize("suffix", ["onnxtxt", "textproto", "json"])
@pytest.mark.parametrize(
    "name", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "UINT64", "BOOL", "INT4", "FLOAT8E5M2"]
)
def test_numbers_in_a_text_are_the_same_to_the_last_bit(tmp_path, name, suffix):
    """Or the text is refused: onnx's own cannot say all."""
    element_type = onnx.TensorProto.DataType.Value(name)
    size = 8 if name == "INT4" else 16 * onnx.helper.tensor_dtype_to_np_dtype(element_type).itemsize
    data = np.random.default_rng(0).integers(0, 2 if name == "BOOL" else 256, size, np.uint8)
    tensor = onnx.TensorProto(name="w", data_type=element_type, dims=[16], raw_data=data.tobytes())
    proto = onnx.parser.parse_model('<ir_version: 11, opset_import: ["": 23]> g () => (float[16] y) { y = Neg(w) }')
    proto.graph.initializer.append(tensor)
    try:
        content, _ = model_bytes(proto, f"m.{suffix}")
    except ModelError as error:
        assert suffix == "onnxtxt"
        assert "cannot be written as onnxtxt" in str(error)  # noqa: PT017
        return
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(content)
    one, other = (numpy_helper.to_array(each.graph.initializer[0]) for each in (proto, parse_model(path).proto))
    assert one.tobytes() == other.tobytes()

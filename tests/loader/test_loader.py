"""Files of every format, and files that are no models."""

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, numpy_helper

import onnxeval
from onnxeval.loader import load_model

MODEL = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
)
X = np.array([1, -2], np.float32)


@pytest.mark.parametrize("suffix", [".onnx", ".pb", ".json", ".onnxtxt", ".textproto", ".model"])
def test_every_format_of_onnx_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    known = suffix not in (".pb", ".model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx calls its text format experimental
        onnx.save_model(MODEL, path, format=None if known else "protobuf")
    assert onnxeval.load(path).run({"x": X})["y"].tolist() == [-1, 2]
    assert onnxeval.load(str(path)).run({"x": X})["y"].tolist() == [-1, 2]


def test_bytes_and_protos_are_read() -> None:
    assert onnxeval.load(MODEL.SerializeToString()).run({"x": X})["y"].tolist() == [-1, 2]
    assert onnxeval.load(MODEL).run({"x": X})["y"].tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (b"", "is empty", ""),
        (b"PK\x03\x04" + bytes(20), "is not an ONNX model", "zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "is not an ONNX model", "git lfs pull"),
        (b"<!DOCTYPE html><html>", "is not an ONNX model", "HTML"),
        (MODEL.SerializeToString()[:-5], "is not an ONNX model", ""),
        (ModelProto(ir_version=10).SerializeToString(), "has no graph", ""),
        (ModelProto(ir_version=9999, graph=MODEL.graph).SerializeToString(), "IR version 9999", "upgrade"),
    ],
)
def test_a_file_that_is_no_model_is_told(tmp_path: Path, content: bytes, message: str, hint: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(onnxeval.ModelError, match=message) as raised:
        onnxeval.load(path)
    assert hint in raised.value.hint
    assert str(path) in str(raised.value)


def test_an_empty_path_is_not_the_current_folder():
    with pytest.raises(onnxeval.ModelError, match="the path of the model is empty"):
        onnxeval.load("")


def test_a_path_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(onnxeval.ModelError, match=r"cannot read the model .*none.onnx: No such file"):
        onnxeval.load(tmp_path / "none.onnx")
    with pytest.raises(onnxeval.ModelError, match="Is a directory") as raised:
        onnxeval.load(tmp_path)
    assert raised.value.hint == ""
    (tmp_path / "model.onnx").touch()
    with pytest.raises(onnxeval.ModelError, match="Is a directory") as raised:
        onnxeval.load(tmp_path)
    assert raised.value.hint == f"it holds {tmp_path / 'model.onnx'}"


def test_a_file_that_need_not_end_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(onnxeval.ModelError, match="cannot read the model /dev/zero: it is a device"):
        onnxeval.load("/dev/zero")
    path = tmp_path / "zeros.onnx"
    with path.open("wb") as file:
        file.truncate(2**32)
    with pytest.raises(onnxeval.ModelError, match="has 4,294,967,296 bytes, protobuf parses up to 2,147,483,647"):
        onnxeval.load(path)


@pytest.mark.parametrize(
    "text",
    [
        "g (bool c) => (float y) {" + "y = If (c) <then_branch = t () => (float y) {" * 50_000,
        f"g (float x) => ({'seq(' * 50_000} y) {{}}",
    ],
    ids=["graphs", "types"],
)
def test_text_that_would_overflow_the_stack_of_its_parser(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.onnxtxt").write_text(text)
    with pytest.raises(onnxeval.ModelError, match="nests brackets"):
        onnxeval.load(tmp_path / "deep.onnxtxt")


def test_brackets_in_strings_and_comments_do_not_nest(tmp_path: Path) -> None:
    text = f'''<ir_version: 10, opset_import: ["": 21], doc_string: "{"([" * 2000}\\"">  # {"{" * 2000}
        g (float[2] x) => (float[2] y) {{ y = Neg (x) }}'''
    (tmp_path / "flat.onnxtxt").write_text(text)
    onnxeval.load(tmp_path / "flat.onnxtxt")


def test_text_that_does_not_parse_is_told_in_text(tmp_path: Path) -> None:
    (tmp_path / "a.onnxtxt").write_text("hello")
    with pytest.raises(onnxeval.ModelError, match=r"\(onnxtxt\): \[ParseError at position .*\nError context: hello"):
        onnxeval.load(tmp_path / "a.onnxtxt")


def test_external_data_beside_the_model_is_found(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) <float[2] w> { y = Mul (x, w) }'
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array([3, 4], np.float32), "w"))
    path = tmp_path / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").exists()
    assert onnxeval.load(path).run({"x": X})["y"].tolist() == [3, -8]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_gives_an_error_of_ours_or_a_result(data: st.DataObject) -> None:
    """Bytes changed, cut out or doubled anywhere: nothing but an OnnxEvalError may escape."""
    content = bytearray(MODEL.SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "double"])):
            case "flip":
                content[place] = data.draw(st.integers(0, 255))
            case "cut":
                del content[place : place + data.draw(st.integers(1, 5))]
            case _:
                content[place:place] = content[place : place + 5]
        if not content:
            return
    try:
        model = onnxeval.load(bytes(content))
        model.run({entry.name: X for entry in model.inputs})
    except onnxeval.OnnxEvalError:
        pass


@pytest.mark.parametrize("name", ["w", "xy"])
def test_a_name_that_is_not_text_is_told(name: str) -> None:
    model = ModelProto()
    model.CopyFrom(MODEL)
    model.graph.initializer.add(name="w", data_type=1, dims=[1], raw_data=bytes(4))
    model.graph.node.add(op_type="Neg", input=["xy"], output=["z"])
    content = model.SerializeToString().replace(
        bytes([len(name)]) + name.encode(), bytes([len(name)]) + b"\xff" * len(name)
    )
    with pytest.raises(onnxeval.ModelError, match="that is not UTF-8"):
        onnxeval.load(content)


def _with_bytes(model: ModelProto, size: int) -> ModelProto:
    """The model with the text NAME in the place of bytes that are no text, grown to a size."""
    content = model.SerializeToString().replace(b"NAME", b"\xff" * 4)
    grown = ModelProto.FromString(content)
    grown.graph.initializer.add(name="w", data_type=2, dims=[size], raw_data=bytes(size))
    return grown


@pytest.mark.parametrize("size", [1, 2**24])  # the larger one is not read a second time
def test_names_that_are_not_text_are_told_wherever_they_stand(size: int) -> None:
    places = {
        "domain": lambda model: model.opset_import.add(domain="NAME"),
        "op_type": lambda model: model.graph.node.add(op_type="NAME"),
        "output": lambda model: model.graph.node.add(op_type="Neg", output=["NAME"]),
        "ref_attr_name": lambda model: model.graph.node[0].attribute.add(ref_attr_name="NAME"),
        "dim_param": lambda model: model.graph.input[0].type.tensor_type.shape.dim.add(dim_param="NAME"),
        "key": lambda model: model.metadata_props.add(key="NAME"),
        "overload": lambda model: model.functions.add(overload="NAME"),
    }
    for field, put in places.items():
        model = ModelProto()
        model.CopyFrom(MODEL)
        put(model)
        with pytest.raises(onnxeval.ModelError, match=f"a {field} that is not UTF-8"):
            onnxeval.load(_with_bytes(model, size))


@pytest.mark.parametrize("size", [1, 2**24])
def test_prose_may_be_of_any_encoding(size: int) -> None:
    model = ModelProto()
    model.CopyFrom(MODEL)
    model.doc_string = model.producer_name = model.graph.node[0].doc_string = "NAME"
    assert onnxeval.load(_with_bytes(model, size)).run({"x": X})["y"].tolist() == [-1, 2]


def test_the_source_of_a_model_from_a_path_is_the_path(tmp_path: Path) -> None:
    onnx.save_model(MODEL, tmp_path / "a.onnx")
    assert load_model(tmp_path / "a.onnx").source == str(tmp_path / "a.onnx")

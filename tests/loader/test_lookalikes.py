"""Files that are no models are told what they are; broken models, where they break."""

import gzip
import io
import json
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnxeval

MODEL = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["": 21]> g (float[64] x) => (float[64] y) { h = Neg(x)  y = Add(h, w) }'
)
MODEL.graph.initializer.append(numpy_helper.from_array(np.linspace(0, 9, 64).astype(np.float32), "w"))
DATA = MODEL.SerializeToString()


def zipped(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_DOT_", ".").replace("_IN_", "/"), content)
    return buffer.getvalue()


def tarred(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        about = tarfile.TarInfo("model.onnx")
        about.size = len(content)
        archive.addfile(about, io.BytesIO(content))
    return buffer.getvalue()


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


HEADER = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
FILES = {
    "PyTorch file": zipped(archive_IN_data_DOT_pkl=b"", archive_IN_version=b"3"),
    "older PyTorch file": pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2),
    "Keras model": zipped(config_DOT_json=b"{}", model_DOT_weights_DOT_h5=b""),
    "inner.onnx is in it": zipped(inner_DOT_onnx=DATA),
    ".npz archive": zipped(x_DOT_npy=saved(np.ones(3))),
    "this is a zip archive": zipped(any_DOT_txt=b""),
    "a damaged one": zipped(inner_DOT_onnx=DATA)[:100],
    "NumPy array": saved(np.ones(3)),
    "safetensors": len(HEADER).to_bytes(8, "little") + HEADER + bytes(8),
    "TensorFlow Lite": b"\x1c\0\0\0TFL3" + bytes(64),
    "GGUF": b"GGUF\3\0\0\0" + bytes(32),
    "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(32),
    "onnxruntime's own format": b"\x1c\0\0\0ORTM" + bytes(64),
    "gzip": gzip.compress(DATA),
    "tar archive": tarred(DATA),
    "zeros alone": bytes(4096),
    "HTML": b"<!DOCTYPE html><html>404</html>",
    'begins with "Not Found"': b"Not Found\n",
    "name it .onnxtxt": onnx.printer.to_text(MODEL).encode(),
    "name it .json": b'{"irVersion": "8", "graph": {}}',
    "rewritten as text": DATA.decode("utf-8", "replace").encode(),
}


@pytest.mark.parametrize("what", FILES)
def test_other_formats(what: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(FILES[what])
    (finding,) = onnxeval.check(path)
    assert finding.rule == "file/unreadable"
    assert what in finding.hint
    with pytest.raises(onnxeval.ModelError) as caught:
        onnxeval.load(path)
    assert caught.value.hint == finding.hint


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("m.onnxtxt", DATA, "name it .onnx"),
        ("m.json", DATA, "name it .onnx"),
        ("m.onnxtxt", onnx.printer.to_text(MODEL).encode("utf-16"), "save it as UTF-8"),
        ("m.json", b"\xef\xbb\xbf{}", "byte order mark"),
    ],
)
def test_the_wrong_suffix(name: str, content: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    (finding,) = onnxeval.check(tmp_path / name)
    assert (finding.rule, what in finding.hint) == ("file/unreadable", True)


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (numpy_helper.from_array(np.ones((2, 3), np.float32), "x"), "a TensorProto"),
        (numpy_helper.from_array(np.ones((200, 3), np.float32)), "a TensorProto"),
        (numpy_helper.from_array(np.array(["a", "b"], object), "x"), "a TensorProto"),
        (numpy_helper.from_list([np.ones(3, np.float32)], "s"), "a SequenceProto"),
        (MODEL.graph, "a GraphProto"),
        (
            onnx.parser.parse_function('<domain: "loc", opset_import: ["": 21]> twice (a) => (c) { c = Add(a, a) }'),
            "a FunctionProto",
        ),
    ],
    ids=["tensor", "tensor without a name", "strings", "sequence", "graph", "function"],
)
def test_other_messages_of_onnx(message: object, what: str) -> None:
    (finding,) = onnxeval.check(message.SerializeToString())
    assert finding.rule == "file/unreadable"
    assert what in finding.message
    assert finding.hint


def test_a_model_without_a_graph_is_a_model() -> None:
    model = onnx.ModelProto(ir_version=8, producer_name="pytorch", producer_version="2.0")
    model.opset_import.add(version=21)
    assert [finding.rule for finding in onnxeval.check(model.SerializeToString())] == ["proto/no-graph"]


def test_a_file_cut_short_says_how_much_is_missing() -> None:
    for length in range(5, len(DATA)):
        (finding,) = onnxeval.check(DATA[:length])
        if finding.rule == "file/unreadable":
            assert "the file is cut short" in finding.message, length
            graph = len(MODEL.graph.SerializeToString())
            if "graph takes" in finding.message:
                assert f"graph takes {graph} bytes" in finding.message


def test_bytes_that_break_inside() -> None:
    place = DATA.index(b"Neg") - 2  # the key of the node's op_type
    (finding,) = onnxeval.check(DATA[:place] + b"\x07" + DATA[place + 1 :])
    assert finding.message.endswith(f"there is no field that begins like this (at byte {place} in graph/node[0])")
    (finding,) = onnxeval.check(DATA[: place + 1] + b"\x7f" + DATA[place + 2 :])
    assert "op_type takes 127 bytes, " in finding.message
    assert f"(at byte {place} in graph/node[0])" in finding.message

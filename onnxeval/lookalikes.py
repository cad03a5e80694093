"""What a file is that is no ONNX model: another format, another message of ONNX, a model damaged on the way."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import FunctionProto, GraphProto, ModelProto, SequenceProto, TensorProto

#: A few first bytes, where they stand, and what they tell.
_SIGNS: Sequence[tuple[int, bytes, str]] = (
    (0, b"version https://git-lfs", "this is a Git LFS pointer; fetch the file with `git lfs pull`"),
    (0, b"\x89HDF", "this is an HDF5 file (a Keras model?); export it to ONNX first"),
    (0, b"\x93NUMPY", "this is a NumPy array, not a model"),
    (4, b"ORTM", "this is onnxruntime's own format, not ONNX; check the .onnx file it was made from"),
    (4, b"TFL3", "this is a TensorFlow Lite model; convert it to ONNX first (tf2onnx reads it)"),
    (0, b"GGUF", "this is a GGUF file (weights for llama.cpp), not ONNX"),
    (0, b"ftrt", "this is a TensorRT engine; check the .onnx file it was built from"),
    (0, b"\x1f\x8b", "this is compressed with gzip; unpack it first"),
    (0, b"\xfd7zXZ", "this is compressed with xz; unpack it first"),
    (0, b"BZh", "this is compressed with bzip2; unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "this is compressed with Zstandard; unpack it first"),
    (0, b"7z\xbc\xaf\x27\x1c", "this is a 7-Zip archive; unpack it first"),
    (257, b"ustar", "this is a tar archive; unpack it first"),
    (0, b"\x89PNG", "this is a picture (PNG), not a model"),
    (0, b"\xff\xd8\xff", "this is a picture (JPEG), not a model"),
    (0, b"\x7fELF", "this is a program or a shared library, not a model"),
    (0, b"MZ", "this is a program or a library of Windows, not a model"),
    (0, b"%PDF", "this is a PDF document, not a model"),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05][\x8a\x95}c\x5d\x28\x58\x8c]")
#: So much of a file is looked at for what it is.
_START = 4096
#: What takes the place of bytes that are no UTF-8 when a file is rewritten as text.
_REPLACED = b"\xef\xbf\xbd"


def looks_like(data: bytes, file_format: str) -> str:
    """A word on what does not parse as a model of that format: what else it is; "" where nothing tells."""
    for offset, sign, what in _SIGNS:
        if data.startswith(sign, offset):
            return what
    if data.startswith(b"PK\x03\x04"):
        return _archive(data)
    if _PICKLE.match(data):
        return "this is a Python pickle (an older PyTorch file, or scikit-learn's?); export the model to ONNX first"
    if int.from_bytes(data[:8], "little") <= len(data) - 8 and data[8:9] == b"{":
        return "this is a safetensors file: weights without a graph; export the model to ONNX first"
    if data.count(0) == len(data):
        return "the file holds zeros alone, as an interrupted copy does; fetch it again"
    if file_format != "protobuf":
        return _wrong_suffix(data)
    return _text(data[:_START]) or _damage(data)


def _archive(data: bytes) -> str:
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError):
        return "this is a zip archive, a damaged one"
    if inner := next((name for name in names if name.endswith(".onnx")), None):
        return f"this is a zip archive, {inner} is in it; unpack it first"
    if any(name.endswith(("data.pkl", "constants.pkl")) for name in names):
        return "this is a PyTorch file (weights or TorchScript); export the model with torch.onnx.export first"
    if any(name.endswith(".weights.h5") for name in names):
        return "this is a Keras model; export it to ONNX first"
    if names and all(name.endswith(".npy") for name in names):
        return "this is an .npz archive of NumPy arrays, not a model"
    return "this is a zip archive"


def _text(start: bytes) -> str:
    """What a text is: another of the formats that models are written in, a page, a message of a server."""
    try:
        text = start.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4:  # not just cut in a character
            return ""
        text = start[: error.start].decode().strip()
    if not text or not all(character.isprintable() or character.isspace() for character in text):
        return ""
    if re.match(r"<\s*ir_version\s*:", text):
        return "this is a model in ONNX's text format; name it .onnxtxt"
    if text.startswith("{") and ('"irVersion"' in text or '"graph"' in text):
        return "this is a model in JSON; name it .json"
    if re.search(r"^ir_version: \d", text, re.MULTILINE):
        return "this is a model in protobuf's text format; name it .textproto"
    if re.match(r"<\?xml|<net\b", text):
        return "this is an XML file (an OpenVINO model?), not ONNX"
    if text.startswith("<"):
        return "this looks like an HTML or XML page, perhaps a download that failed"
    return f'this is a text, perhaps a download that failed; it begins with "{" ".join(text[:60].split())}"'


def _wrong_suffix(data: bytes) -> str:
    """What a file is that should be a model written as text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "this is UTF-16; save it as UTF-8"
    if data.startswith(b"\xef\xbb\xbf"):
        return "the file begins with a byte order mark; save it as UTF-8 without one"
    try:
        is_binary = ModelProto.FromString(data).HasField("graph")
    except (DecodeError, RecursionError):
        return ""
    return "this is a model in protobuf's binary format; name it .onnx" if is_binary else ""


def _damage(data: bytes) -> str:
    """What copying a binary file as text leaves behind."""
    if data.count(_REPLACED) * 50 > len(data):
        return "the file was rewritten as text, what is no UTF-8 in it is lost; copy it as binary"
    ends = data.count(b"\n")
    if ends > 20 and data.count(b"\r\n") == ends:
        return "each line feed follows a carriage return: was the file copied as text (git's autocrlf, FTP)?"
    return ""


# Other messages


def other_message(data: bytes) -> tuple[str, str]:
    """What a file is that holds no graph of a model, and what to do about it; "" and "" where it is nothing known."""
    if foreign := _foreign(data):
        return foreign
    for kind, is_sure, what, hint in _MESSAGES:
        try:
            message = kind.FromString(data)
        except (DecodeError, RecursionError):
            continue
        if len(UnknownFieldSet(message)) == 0 and is_sure(message):
            return what, hint
    return "", ""


def _is_tensor(tensor: Any) -> bool:
    is_typed = tensor.data_type > 0 and tensor.data_type in TensorProto.DataType.values()
    return is_typed and len(tensor.ListFields()) > 1 and not tensor.HasField("segment")


def _is_sequence(sequence: Any) -> bool:
    return sequence.elem_type > 0 and any(field.name.endswith("_values") for field, _ in sequence.ListFields())


def _is_graph(graph: Any) -> bool:
    return len(graph.node) > 0 and all(node.op_type for node in graph.node)


def _is_function(function: Any) -> bool:
    return bool(function.name and function.opset_import) and _is_graph(function)


_DATA = "the models of a suite lie in the folder above such files; `run --input` takes them"
_MESSAGES: Sequence[tuple[Any, Callable[[Any], bool], str, str]] = (
    (TensorProto, _is_tensor, "the data of one tensor (a TensorProto)", _DATA),
    (SequenceProto, _is_sequence, "the data of a sequence (a SequenceProto)", _DATA),
    (GraphProto, _is_graph, "a graph without the model around it (a GraphProto)", "onnx.helper.make_model wraps it"),
    (
        FunctionProto,
        _is_function,
        "a function without a model (a FunctionProto)",
        "it belongs among the functions of a model",
    ),
)


def _foreign(data: bytes) -> tuple[str, str] | None:
    """Messages of others, by the fields they have outside."""
    try:
        fields = [(field.field_number, field.wire_type) for field in UnknownFieldSet(Empty.FromString(data))]
    except (DecodeError, RecursionError):
        return None
    start = data[:_START]
    if set(fields) == {(1, 0), (2, 2)} and b"serve" in data:
        return "a TensorFlow SavedModel, it seems", "tf2onnx converts the folder around it"
    if fields[:1] == [(1, 2)] and any(op in start for op in (b"Placeholder", b"Const", b"NoOp")) and b"dtype" in start:
        return "a TensorFlow graph, it seems", "tf2onnx converts it"
    if fields[:2] == [(1, 0), (2, 2)] and any(number >= 200 for number, _ in fields):  # the kinds of Core ML's models
        return "a Core ML model, it seems", "check the model that it was converted from"
    return None

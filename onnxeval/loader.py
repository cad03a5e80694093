"""A path, bytes or a ModelProto -> a ModelProto and the folders its external data may lie in."""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from onnx import IR_VERSION, ModelProto, TensorProto

from onnxeval.bulk import LARGE_FILE, Held, read_apart
from onnxeval.errors import ModelError


class Loaded(NamedTuple):
    """A parsed model. ``source`` is what messages call it.

    Data in ``held`` stands in ``proto`` as external data of the model's own file.
    """

    proto: ModelProto
    source: str
    folders: tuple[Path, ...]
    held: Held = MappingProxyType({})


#: onnx's name of the format of .onnx files.
_BINARY = "protobuf"
#: Protobuf parses no larger messages.
_LARGEST = 2**31 - 1
#: onnx's parser of text takes a part of the C stack for each bracket that is open.
_DEEPEST_TEXT = 500


def load_model(model: str | os.PathLike[str] | bytes | ModelProto) -> Loaded:
    """`parse_model`, weights of large files apart.

    Raises ModelError for a model of a future IR version, without a graph, or with unreadable names as well.
    """
    loaded = None if isinstance(model, (ModelProto, bytes)) else _parse_apart(_path(model))
    if loaded is None:
        loaded = parse_model(model)
    _refuse_nonsense(loaded)
    return loaded


def parse_model(model: str | os.PathLike[str] | bytes | ModelProto) -> Loaded:
    """Parse a model, whatever it says; external data stays where it is until a tensor is asked for.

    A path's suffix decides the format, as onnx's own serialisers name them: ``.onnx`` and ``.pb``, ``.onnxtxt``,
    ``.textproto``, ``.json``; any other is read as ``.onnx``. Raises ModelError where it does not parse.
    """
    if isinstance(model, ModelProto):
        return Loaded(model, "the model", ())
    if isinstance(model, bytes):
        return Loaded(_parse(model, _BINARY, "the model"), "the model", ())
    path = _path(model)
    return Loaded(_parse(_read(path), _format(path), str(path)), str(path), _folders(path))


def _path(model: str | os.PathLike[str]) -> Path:
    if model == "":  # which Path takes for the current folder
        raise ModelError("the path of the model is empty")
    return Path(model)


def _parse_apart(path: Path) -> Loaded | None:
    """A large file with its weights read once; None where `parse_model` has to look at it."""
    try:
        is_large = _format(path) == _BINARY and path.is_file() and path.stat().st_size >= LARGE_FILE
        apart = read_apart(path) if is_large else None
    except (OSError, ValueError, DecodeError):
        return None
    return None if apart is None else Loaded(apart[0], str(path), _folders(path), apart[1])


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if stat.S_ISCHR(about.st_mode) or stat.S_ISBLK(about.st_mode):
                raise ModelError(f"cannot read the model {path}: it is a device, which need not end")
            if about.st_size > _LARGEST:
                raise ModelError(f"the model {path} has {about.st_size:,} bytes, protobuf parses up to {_LARGEST:,}")
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        hint = "/dev/stdin reads it from standard input" if str(path) == "-" else _in_folder(path)
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"cannot read the model {path}: {reason}", hint=hint) from error


def _in_folder(path: Path) -> str:
    """The models in a folder, for who gave that for one of them."""
    try:
        found = sorted(str(inner) for inner in path.glob("*.onnx"))[:3]
    except (OSError, ValueError):
        return ""
    return f"it holds {', '.join(found)}" if found else ""


def _format(path: Path) -> str:
    if path.suffix == ".onnx":
        return _BINARY
    import onnx.serialization  # which imports what reads the other formats

    return onnx.serialization.registry.get_format_from_file_extension(path.suffix) or _BINARY


def _folders(path: Path) -> tuple[Path, ...]:
    """Beside the path, and beside what it links to: model caches link a model and its data into one folder."""
    try:
        return (path.absolute().parent, path.resolve().parent)
    except OSError as error:  # the current folder is gone
        raise ModelError(f"cannot tell which folder the model {path} is in: {error.strerror}") from error


def _parse(data: bytes, file_format: str, source: str) -> ModelProto:
    if not data:
        raise ModelError(f"{source} is empty, not an ONNX model")
    if file_format == "onnxtxt" and (depth := _nesting(data)) > _DEEPEST_TEXT:
        raise ModelError(f"{source} nests brackets {depth} deep, onnx's parser of text is safe up to {_DEEPEST_TEXT}")
    try:
        # What the serialisers raise for broken data is theirs to choose: decode, parse, value and key errors.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # onnx calls its text format experimental each time
            is_binary = file_format == _BINARY
            proto: Any = ModelProto.FromString(data) if is_binary else onnx.load_model_from_string(data, file_format)
    except Exception as error:
        from onnxeval.lookalikes import looks_like
        from onnxeval.wire import broken_place

        hint = looks_like(data, file_format)
        reason = error.args[0].decode(errors="replace") if _holds_bytes(error) else str(error)
        if file_format == _BINARY:
            if not hint:
                _refuse_other_message(data, source)
            reason = broken_place(data) or reason
        raise ModelError(f"{source} is not an ONNX model ({file_format}): {reason}", hint=hint) from error
    if file_format == _BINARY and not proto.HasField("graph"):
        _refuse_other_message(data, source)
    return proto  # type: ignore[no-any-return]  # onnx leaves it untyped


def _refuse_other_message(data: bytes, source: str) -> None:
    from onnxeval.lookalikes import other_message

    what, hint = other_message(data)
    if what:
        raise ModelError(f"{source} is not an ONNX model but {what}", hint=hint)


_BRACKETS = rb'(?s)"(?:\\.|[^"\\])*"|#[^\n]*|=>|[(<{\[]|[)>}\]]'


def _nesting(text: bytes) -> int:
    """How deep brackets of all kinds stand inside one another, outside of strings and comments."""
    depth = deepest = 0
    for match in re.finditer(_BRACKETS, text):
        if (token := match[0]) in b"(<{[":
            depth += 1
            deepest = max(deepest, depth)
        elif token in b")>}]":
            depth = max(depth - 1, 0)
    return deepest


def _holds_bytes(error: Exception) -> bool:
    """Whether the message is bytes, as that of onnx's parser of text is."""
    return len(error.args) == 1 and isinstance(error.args[0], bytes)


def _refuse_nonsense(loaded: Loaded) -> None:
    proto = loaded.proto
    if proto.ir_version > IR_VERSION:
        raise ModelError(
            f"{loaded.source} has IR version {proto.ir_version}, the installed onnx {onnx.__version__} "
            f"knows versions up to {IR_VERSION}",
            hint="upgrade the onnx package, or export the model for an older IR version",
        )
    if not _is_text(proto):
        _refuse_bad_text(proto, loaded.source)
    if not proto.HasField("graph"):
        raise ModelError(f"{loaded.source} has no graph: it is not an ONNX model")


#: The field of a FileDescriptorProto that says so; of several the last one counts.
_PROTO3 = b"b\x06proto3"
#: Messages of so many bytes are written and read once more to see whether their strings are text.
_SMALL = 2**24


def _is_text(proto: ModelProto) -> bool:
    """Whether all strings are sure to be UTF-8.

    ONNX's messages are of proto2, which does not say; the parser of proto3 does.
    """
    if proto.ByteSize() > _SMALL:
        return False
    try:
        _strict_message().FromString(proto.SerializeToString())
    except (DecodeError, UnicodeDecodeError):  # the latter from protobuf without its compiled parser
        return False
    return True


@cache
def _strict_message() -> Any:
    """The class of ModelProto as if its file was of proto3."""
    pool = DescriptorPool()
    pool.AddSerializedFile(ModelProto.DESCRIPTOR.file.serialized_pb + _PROTO3)
    return GetMessageClass(pool.FindMessageTypeByName(ModelProto.DESCRIPTOR.full_name))


#: Prose for people, in whatever encoding its writer had.
_PROSE = frozenset({"doc_string", "producer_name", "producer_version"})


def _refuse_bad_text(message: Any, source: str) -> None:
    """Raise ModelError where a name is not UTF-8: protobuf hands it on as bytes."""
    for field, value in _fields_of(message):
        if field.type == FieldDescriptor.TYPE_STRING:
            texts = (value,) if isinstance(value, (str, bytes)) else value
            wrong = [text for text in texts if type(text) is bytes]
            if wrong and field.name not in _PROSE:
                raise ModelError(f"{source} holds a {field.name} that is not UTF-8: {wrong[0][:40]!r}")
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in (value,) if hasattr(value, "ListFields") else value:
                _refuse_bad_text(inner, source)


def _fields_of(message: Any) -> Iterable[tuple[Any, Any]]:
    """The fields of a message that are set, but of a tensor only those with names: its elements would be copied."""
    if isinstance(message, TensorProto):
        fields = TensorProto.DESCRIPTOR.fields_by_name
        return [(fields[name], getattr(message, name)) for name in ("name", "external_data")]
    return message.ListFields()  # type: ignore[no-any-return]  # protobuf is untyped

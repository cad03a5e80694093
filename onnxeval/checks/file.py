"""Rules on the file: whether there is a model at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import ModelProto
from onnx.serialization import registry

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.errors import ModelError
from onnxeval.loader import Loaded, load_model


@dataclass(frozen=True, slots=True)
class Source:
    """What was read: ``loaded`` is None where ``error`` says why there is no model."""

    name: str
    loaded: Loaded | None
    error: str = ""
    hint: str = ""


def read_source(model: str | os.PathLike[str] | bytes | ModelProto) -> Source:
    """Read and parse a model, whatever it says. A path's suffix decides the format, as in `load_model`."""
    if isinstance(model, ModelProto):
        return Source("model", Loaded(model, "the model", ()))
    name = "model" if isinstance(model, bytes) else os.fspath(model)
    try:
        return Source(name, _parsed(model))
    except Exception:  # what onnx's serialisers raise for broken data is theirs to choose
        pass
    try:
        return Source(name, load_model(model))
    except (ModelError, ValueError) as error:  # ValueError: a path with a NUL in it
        return Source(name, None, str(error).removeprefix(name).strip(), getattr(error, "hint", ""))


def _parsed(model: str | os.PathLike[str] | bytes) -> Loaded:
    if isinstance(model, bytes):
        return Loaded(_proto(model, None), "the model", ())
    path = Path(model)
    proto = _proto(path.read_bytes(), registry.get_format_from_file_extension(path.suffix))
    return Loaded(proto, str(model), (path.absolute().parent, path.resolve().parent))


def _proto(data: bytes, file_format: str | None) -> ModelProto:
    if not data:
        raise ValueError("empty")
    return onnx.load_model_from_string(data, file_format or "protobuf")


@rule("file/unreadable", "error", Source)
def unreadable(source: Source) -> Faults:
    """The file cannot be opened, is empty, or does not parse as a model; nothing else can be said of it."""
    if source.loaded is None:
        yield Fault(source.name, source.error, source.hint)

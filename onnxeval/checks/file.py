"""Rules on the file: whether there is a model at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import ModelProto

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
    """Read and parse a model. A model that cannot be run for what it says is read all the same."""
    name = "model" if isinstance(model, bytes | ModelProto) else os.fspath(model)
    if isinstance(model, ModelProto):
        return Source(name, Loaded(model, "the model", ()))
    try:
        return Source(name, load_model(model))
    except ModelError as error:
        if (loaded := _parsed(model)) is not None:
            return Source(name, loaded)
        return Source(name, None, str(error).removeprefix(name).strip(), error.hint)
    except ValueError as error:  # a path with a NUL in it
        return Source(name, None, str(error))


def _parsed(model: str | os.PathLike[str] | bytes) -> Loaded | None:
    """A model that parses, though `load_model` refuses it."""
    try:
        if isinstance(model, bytes):
            return Loaded(onnx.load_model_from_string(model), "the model", ()) if model else None
        if not os.path.getsize(model):
            return None
        folder = os.path.dirname(os.path.abspath(model))
        return Loaded(onnx.load_model(model, load_external_data=False), os.fspath(model), (Path(folder),))
    except Exception:  # what onnx's serialisers raise for broken data is theirs to choose
        return None


@rule("file/unreadable", "error", Source)
def unreadable(source: Source) -> Faults:
    """The file cannot be opened, is empty, or does not parse as a model; nothing else can be said of it."""
    if source.loaded is None:
        yield Fault(source.name, source.error, source.hint)

"""Rules on the file: whether there is a model at all."""

from __future__ import annotations

import os
from dataclasses import dataclass

from onnx import ModelProto

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.errors import ModelError
from onnxeval.loader import Loaded, parse_model


@dataclass(frozen=True, slots=True)
class Source:
    """What was read: ``loaded`` is None where ``error`` says why there is no model."""

    name: str
    loaded: Loaded | None
    error: str = ""
    hint: str = ""


def read_source(model: str | os.PathLike[str] | bytes | ModelProto) -> Source:
    """Read and parse a model, whatever it says. A path's suffix decides the format, as in `parse_model`."""
    if isinstance(model, ModelProto):
        return Source("model", Loaded(model, "the model", ()))
    name = "model" if isinstance(model, bytes) else os.fspath(model)
    try:
        return Source(name, parse_model(model))
    except ModelError as error:
        return Source(name, None, str(error).removeprefix("the ").removeprefix(name).strip(), error.hint)


@rule("file/unreadable", "error", Source)
def unreadable(source: Source) -> Faults:
    """The file cannot be opened, is empty or cut short, or does not parse as a model.

    Why: nothing else can be said of it. It is often a download that failed, a pointer of Git LFS, or another format
    under the name of a model; the message tells where it breaks, the hint what it looks like.

    Mend: fetch or export the file again. The suffix decides how it is read: `.onnxtxt`, `.textproto` and `.json` are
    text, anything else is protobuf. Models nested deeper than protobuf parses (about 30 graphs in one another) cannot
    be read by any tool.

    Example:
        an empty file, a web page, a .zip archive
    """
    if source.loaded is None:
        yield Fault(source.name, source.error, source.hint)

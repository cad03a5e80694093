"""The other side of a verdict: what gives the values that those of a run are held against."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from onnxeval.benchmark.measuring import require
from onnxeval.benchmark.workers import EngineFailed, Worker
from onnxeval.dtypes import is_float, name_of
from onnxeval.errors import EngineError, OnnxEvalError
from onnxeval.model import Model
from onnxeval.threads import available, wanted
from onnxeval.values import EmptyOptional, TensorType, Value

#: Option -> what the engine is called.
ENGINES: Mapping[str, str] = {"onnxruntime": "onnxruntime", "reference": "ReferenceEvaluator"}
_LONGEST = 400


class Side(Protocol):
    """What was run beside.

    ``label`` is what it is called, ``version`` that of an engine, ``notes`` what to tell, ``extra`` the values that
    only it has: outputs, and others where others were asked for.
    """

    @property
    def label(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def extra(self) -> Sequence[str]: ...

    def value(self, name: str) -> tuple[Value, str]:
        """A value and "", or why there is none."""


class EngineSide:
    """Another engine, in a process of its own, that ran the same model."""

    notes: Sequence[str] = ()
    extra: Sequence[str] = ()

    def __init__(self, engine: str, worker: Worker, model: Model, names: Sequence[str], feeds: bytes) -> None:
        self.label = ENGINES[engine]
        self._worker = worker
        self.version = str(self._call("start", _content(model), list(names), feeds, wanted() or available()))

    def value(self, name: str) -> tuple[Value, str]:
        value, reason = self._call("value", name)
        return value, reason

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return self._worker.call(method, *arguments)
        except EngineFailed as failed:
            raise EngineError(f"{self.label} cannot run the model: {_shortened(str(failed))}") from None


class ModelSide:
    """Another model that this package ran on the same inputs, as far as it has them."""

    version = ""

    def __init__(
        self, other: Model, model: Model, names: Collection[str], feeds: Mapping[str, Value], how: Mapping[str, object]
    ) -> None:
        self.label = other.source
        self.notes: list[str] = []
        outputs, known = _values(model)
        their_outputs, theirs = _values(other)
        self.extra = [name for name in (their_outputs if outputs.keys() >= {*names} else theirs) if name not in known]
        shared = theirs.keys() & {*names}
        fed = self._feeds(other, feeds)
        try:
            self._values = other.run(fed, [name for name in names if name in shared], **how)  # type: ignore[arg-type]
        except OnnxEvalError as error:
            error.located(self.label)
            raise

    def _feeds(self, other: Model, feeds: Mapping[str, Value]) -> dict[str, Value]:
        fed = {}
        for entry in other.inputs:
            if entry.name not in feeds:
                continue
            value, wanted_type = feeds[entry.name], entry.type
            if isinstance(value, np.ndarray) and isinstance(wanted_type, TensorType) and wanted_type.dtype is not None:
                dtype = wanted_type.dtype
                if dtype != value.dtype and is_float(dtype) and is_float(value.dtype):
                    self.notes.append(f"{self.label} is given {entry.name} as {name_of(dtype)}")
                    value = value.astype(dtype)
            fed[entry.name] = value
        if left := [name for name in feeds if name not in fed]:
            self.notes.append(f"{self.label} has no input {', '.join(left)}")
        return fed

    def value(self, name: str) -> tuple[Value, str]:
        if name not in self._values:
            return None, f"{self.label} has no such value"
        return self._values[name], ""


@contextmanager
def engine_side(engine: str, model: Model, names: Sequence[str], feeds: Mapping[str, Value]) -> Iterator[EngineSide]:
    """The engine of this name, its values until the end. Raises MissingExtra, and EngineError for what it raises."""
    require([engine])
    pickled = pickle.dumps({name: _bare(value) for name, value in feeds.items()})
    with Worker(engine, wanted() or available(), "onnxeval.versus.serve") as worker:
        yield EngineSide(engine, worker, model, names, pickled)


def _values(model: Model) -> tuple[dict[str, None], dict[str, None]]:
    """The names of a model's outputs, and of all values of its graph."""
    outputs = dict.fromkeys(output.name for output in model.outputs)
    return outputs, dict.fromkeys(model.values) | outputs


def _content(model: Model) -> str | bytes:
    """The path of the model's file, where that can be read again, or its bytes."""
    if model.folders and os.path.isfile(model.source):
        return str(Path(model.source).absolute())
    return bytes(model.proto.SerializeToString())


def _bare(value: Value) -> Value:
    """The value without classes of this package."""
    if isinstance(value, EmptyOptional):
        return None
    return [_bare(item) for item in value] if isinstance(value, list) else value


#: What onnxruntime begins its messages with.
_PREFIX = r"^\w+: \[ONNXRuntimeError\] : \d+ : \w+ : "


def _shortened(text: str) -> str:
    text = re.sub(_PREFIX, "", " ".join(text.split()))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

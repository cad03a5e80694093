"""The conformance cases of the installed onnx wheel: models, inputs and right outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from onnxeval.files.protobuf import parse_value
from onnxeval.graph import constants_of
from onnxeval.tensors import array_from, type_from
from onnxeval.values import EmptyOptional, Value

#: The groups of cases; ``real`` are nine light models.
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")


@dataclass(frozen=True)
class Case:
    """One case. ``data_sets`` holds (inputs, expected outputs) in the order of the graph."""

    name: str
    kind: str
    rtol: float
    atol: float
    _test: Any = field(repr=False)

    @property
    def model(self) -> ModelProto:
        return self._test.model if self._test.model is not None else _read_model(self._model_path)

    @property
    def _model_path(self) -> Path:
        if self._test.model_dir is not None:
            return Path(self._test.model_dir) / "model.onnx"
        return Path(onnx.__file__).parent.parent / str(self._test.url)

    @property
    def data_sets(self) -> Iterator[tuple[list[Value], list[Value]]]:
        if self._test.data_sets is not None:
            for inputs, outputs in self._test.data_sets:
                yield [_plain(value) for value in inputs], [_plain(value) for value in outputs]
        elif self._test.model_dir is not None:
            graph = self.model.graph
            for folder in sorted(self._model_path.parent.glob("test_data_set*")):
                yield _read_values(folder, "input", graph.input), _read_values(folder, "output", graph.output)
        else:
            yield _ramps(self.model), _read_values(self._model_path.parent, self._model_path.stem + "_output")


@cache
def load_cases() -> tuple[Case, ...]:
    """Every case, by kind and name."""
    from onnx.backend.test.loader import load_model_tests  # four seconds: it computes the node cases

    cases = []
    for kind in KINDS:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            tests = load_model_tests(kind=kind)
        cases += [Case(t.name, kind, t.rtol, t.atol, t) for t in sorted(tests, key=lambda t: str(t.name))]
    return tuple(cases)


@cache
def _read_model(path: Path) -> ModelProto:
    return onnx.load(path)


def _plain(value: Any) -> Value:
    return array_from(value) if isinstance(value, TensorProto) else value


def _read_values(folder: Path, stem: str, declared: Any = ()) -> list[Value]:
    """The values in ``STEM_0.pb``, ``STEM_1.pb`` and so on; without declared types they are tensors."""
    values: list[Value] = []
    while (path := folder / f"{stem}_{len(values)}.pb").exists():
        value_type = type_from(declared[len(values)].type) if len(values) < len(declared) else None
        _, value = parse_value(path.read_bytes(), value_type)
        values.append(None if isinstance(value, EmptyOptional) else value)
    return values


def _ramps(model: ModelProto) -> list[Value]:
    """The light models' inputs, as onnx's own runner makes them: a ramp from 0 to 1, unknown sizes 1."""
    constants = set(constants_of(model.graph))
    ramps: list[Value] = []
    for value in model.graph.input:
        if value.name not in constants:
            shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in value.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            ramps.append((np.arange(count).reshape(shape) / count).astype(np.float32))
    return ramps

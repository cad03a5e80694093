"""Test data sets as they lie beside models: folders of ONNX's layout, and the model zoo's old archives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxeval.errors import InputError
from onnxeval.files.opening import open_source
from onnxeval.testing.jobs import Data
from onnxeval.values import Value, ValueType

#: The files that are taken for models.
SUFFIXES = (".onnx", ".onnxtxt")
_FOLDERS, _ARCHIVES = "test_data_set_*", "test_data_*.npz"
#: What is taken for a test data set.
DATA_SETS = "a folder test_data_set_0 with input_0.pb, output_0.pb ... or a .npy file for each name, or test_data_0.npz"


def data_sets_beside(model: Path) -> list[str]:
    """The test data sets in a model's folder."""
    folder = model.parent
    found = [path for path in folder.glob(_FOLDERS) if path.is_dir()]
    found += [path for path in folder.glob(_ARCHIVES) if path.is_file()]
    return [str(path) for path in sorted(found, key=lambda path: (len(path.name), path.name))]


def models_in(path: Path) -> Iterator[Path]:
    """The path itself, where it is a model; the models in a folder and below, those in hidden folders left out.

    Raises InputError where nothing is there.
    """
    if os.path.isfile(path):
        yield path
        return
    if not os.path.isdir(path):
        raise InputError(f"{path}: there is no such file or folder")
    for folder, inner, files in os.walk(path):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(SUFFIXES))


def read_data(path: str, inputs: Mapping[str, ValueType | None], outputs: Mapping[str, ValueType | None]) -> Data:
    """The values of a test data set. Raises InputError for what cannot be read or is not there."""
    return Data(_numbered(path, inputs, "input") if inputs else [], _numbered(path, outputs, "output"))


def _numbered(path: str, declared: Mapping[str, ValueType | None], stem: str) -> list[Value]:
    source = open_source(path, list(declared), stem=stem)
    names = source.names() or []
    if missing := [name for name in declared if name not in names]:
        place = list(declared).index(missing[0])
        raise InputError(f'{path}: there is no {stem}_{place}.pb, the {stem} "{missing[0]}"')
    return [source.read(name, declared[name]) for name in declared]

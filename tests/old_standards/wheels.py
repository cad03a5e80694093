"""The backend cases that older onnx wheels carry: fetched once with pip, unpacked, read."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from onnx.backend.test.case.test_case import TestCase

from onnxeval.dtypes import BFLOAT16
from onnxeval.model import load
from onnxeval.suite import Case

CACHE = Path.home() / ".cache" / "onnxeval-onnx-wheels"
_DATA = "onnx/backend/test/data/"


class Wheel(NamedTuple):
    """One wheel as PyPI has it: what pip must pretend to be to get it, and how many cases are in it."""

    version: str
    python: str
    platform: str
    count: int


WHEELS = {
    wheel.version: wheel
    for wheel in (
        Wheel("1.6.0", "37", "manylinux1_x86_64", 692),
        Wheel("1.10.2", "38", "manylinux2010_x86_64", 987),
        Wheel("1.14.1", "38", "manylinux2014_x86_64", 1308),
        Wheel("1.18.0", "39", "manylinux2014_x86_64", 1590),
    )
}


def fetch(wheel: Wheel) -> Path:
    """The folder with the wheel's test data, downloaded where it is not there yet.

    Raises subprocess.CalledProcessError where pip cannot get the wheel.
    """
    target = CACHE / wheel.version
    if target.is_dir():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        source = ["--python-version", wheel.python, "--platform", wheel.platform, f"onnx=={wheel.version}"]
        subprocess.run([*pip, "--dest", scratch, *source], check=True)
        (downloaded,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(downloaded) as archive:
            archive.extractall(scratch, [name for name in archive.namelist() if name.startswith(_DATA)])
        os.replace(Path(scratch) / _DATA, target)
    return target


@cache
def load_old_cases(version: str) -> dict[str, Case]:
    """Every case of a wheel that brings its model with it, by name, ``node/test_abs`` say.

    The light models are left out: the files are those of the installed onnx, byte for byte, and tests/conformance
    runs them. So are the real ones, which are only addresses.
    """
    cases = {}
    root = fetch(WHEELS[version])
    for path in sorted(root.glob("*/*/model.onnx")):
        name, kind = path.parent.name, path.parent.parent.name
        test = TestCase(name, name, None, str(path.parent), None, None, kind, 1e-3, 1e-7)
        cases[f"{kind}/{name}"] = Case(name, kind, test.rtol, test.atol, test)
    return cases


def read_data_sets(case: Case) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """The case's inputs by name and its right outputs in order.

    Before 1.19, onnx wrote bfloat16 as the bits it is made of, typed uint16: the graph tells them from real uint16.
    """
    model = load(case.model)
    for inputs, outputs in case.data_sets:
        required = [entry for entry in model.inputs if not entry.optional]
        declared = required if len(inputs) <= len(required) else model.inputs
        feeds = {entry.name: _as_declared(value, entry.dtype) for value, entry in zip(inputs, declared, strict=False)}
        yield feeds, [_as_declared(value, entry.dtype) for value, entry in zip(outputs, model.outputs, strict=True)]


def _as_declared(value: Any, dtype: Any) -> Any:
    return value.view(BFLOAT16) if dtype == BFLOAT16 and getattr(value, "dtype", None) == "uint16" else value

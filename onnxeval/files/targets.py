"""From the path that was typed to the `Target` that it means: a file of some format, a folder, standard output."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from onnxeval.errors import OutputError

from .folders import FolderTarget
from .writing import Target, Typed, write_failures

STANDARD_OUTPUT = "-"

#: Suffix -> the module of this package that writes such files, and its Target. A new format is a line here.
FORMATS: dict[str, tuple[str, str]] = {
    ".npy": ("npy", "Npy"),
    ".npz": ("npy", "Npz"),
    ".pb": ("protobuf", "Proto"),
    ".json": ("jsonfile", "Json"),
    ".safetensors": ("safetensors", "SafetensorsTarget"),
    ".csv": ("text", "TextTarget"),
    ".tsv": ("text", "TextTarget"),
    ".txt": ("text", "TextTarget"),
    ".bin": ("raw", "RawTarget"),
    ".raw": ("raw", "RawTarget"),
    ".png": ("pictures", "Png"),
}


def format_of(suffix: str) -> Callable[[Path], Target]:
    """The Target of a suffix, which has to be known."""
    module, target = FORMATS[suffix]
    found: Callable[[Path], Target] = getattr(import_module(f".{module}", __package__), target)
    return found


def open_target(text: str, stem: str = "output") -> Target:
    """The place that `--save` names: the suffix decides, without one it is a folder.

    `FOLDER/*.SUFFIX` is a folder of files of that format. The files of a folder whose name starts with
    ``test_data_set`` are numbered: ``STEM_0.pb`` and so on.
    """
    if not text:
        raise OutputError("the path to save to is empty", hint="./ is this folder")
    path = Path(text)
    suffix = path.suffix.lower()
    with write_failures(path):
        if path.stem == "*" and suffix in FORMATS:
            return FolderTarget(path.parent, format_of, suffix)
        if not suffix or text.endswith(("/", os.sep)) or (path.is_dir() and suffix not in FORMATS):
            return FolderTarget(path, format_of, numbered=stem if path.name.startswith("test_data_set") else "")
        if suffix not in FORMATS:
            raise OutputError(
                f"{text}: files of suffix {suffix!r} are not written",
                hint=f"known: {' '.join(FORMATS)}; {text}/ saves a file for each output in a folder",
            )
        return format_of(suffix)(path)


class Stream(Target):
    """Standard output: one array as a .npy file, several as a .npz file."""

    def __init__(self, file: BinaryIO) -> None:
        self.path = Path("standard output")
        self._file = file

    def save(self, values: Mapping[str, Typed]) -> list[str]:
        notes: list[str] = []
        with write_failures(self.path):
            self.write(self._file, values, notes)
            self._file.flush()
        return notes

    def write(self, file: BinaryIO, values: Mapping[str, Typed], notes: list[str]) -> None:
        import io

        whole = io.BytesIO()  # nothing is written where one of the values cannot be
        format_of(".npy" if len(values) == 1 else ".npz")(self.path).write(whole, values, notes)
        file.write(whole.getbuffer())

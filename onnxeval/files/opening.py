"""From the text that was typed to the `Source` that it means: a file of some format, a folder, a literal."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from onnxeval.errors import InputError

from .folders import Folder
from .jsonfile import JsonFile, Literal
from .literals import looks_like_literal
from .npy import NpyFile, NpzFile
from .source import Reading, Source

STANDARD_INPUT = "-"


class StandardInput:
    """Standard input, which can be read once."""

    def __init__(self) -> None:
        self._taken = False

    def open(self, reading: Reading) -> Source:
        if self._taken:
            raise InputError("standard input (-) can be read only once")
        self._taken = True
        if sys.stdin is None:
            raise InputError("standard input is closed")
        return _sniffed(sys.stdin.buffer.read(), "standard input", reading)


def _sniffed(data: bytes, label: str, reading: Reading) -> Source:
    """The source in bytes that came through a pipe, by how they begin."""
    if data.startswith(b"\x93NUMPY"):
        return NpyFile(label, reading, lambda: io.BytesIO(data))
    if data.startswith(b"PK"):
        return NpzFile(label, reading, lambda: io.BytesIO(data))
    if data[:1] in (b"{", b"["):
        return JsonFile(label, reading, lambda: io.BytesIO(data))
    raise InputError(f"{label} holds {'no .npy, .npz or .json file' if data else 'nothing'}")


def open_file(path: Path, reading: Reading) -> Source:
    """The source in a file, by its suffix."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        if suffix in (".onnx", ".onnxtxt"):
            raise InputError(f"{path}: is a model, not a value")
        reason = f"files of suffix {suffix!r} are not read" if suffix else "a file without suffix, of unknown format"
        raise InputError(
            f"{path}: {reason}", hint=f"known: {' '.join(FORMATS)}; {path}:float32[2,3] reads bytes of that type"
        )
    module, source = FORMATS[suffix]
    found: Callable[[Path, Reading], Source] = getattr(import_module(f".{module}", __package__), source)
    return found(path, reading)


#: Suffix -> the module of this package that reads such files, and its Source. A new format is a line here.
FORMATS: dict[str, tuple[str, str]] = {
    ".npy": ("npy", "NpyFile"),
    ".npz": ("npy", "NpzFile"),
    ".pb": ("protobuf", "ProtoFile"),
    ".json": ("jsonfile", "JsonFile"),
    ".safetensors": ("safetensors", "Safetensors"),
    ".csv": ("text", "Table"),
    ".tsv": ("text", "Table"),
    ".txt": ("text", "Table"),
    ".bin": ("raw", "Raw"),
    ".raw": ("raw", "Raw"),
    **dict.fromkeys(
        (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"), ("pictures", "Picture")
    ),
}


def open_source(
    text: str,
    numbered: Sequence[str] = (),
    standard_input: StandardInput | None = None,
    reading: Reading | None = None,
    stem: str = "input",
) -> Source:
    """The source that a VALUE names.

    ``numbered`` are the names that values may have, in the order in which the files ``input_0.pb`` and so on of a test
    data set stand for them (``stem`` is "output" for those that are expected).
    """
    reading = replace(reading or Reading(), names=tuple(numbered), stem=stem)
    if not text:
        raise InputError("a VALUE is empty", hint='a text of no characters is written ""')
    if text == STANDARD_INPUT:
        return (standard_input or StandardInput()).open(reading)
    path = Path(text)
    # Unlike those of pathlib, these take a long literal for what it is: no file.
    if os.path.isdir(path):
        return Folder(path, reading, open_file)
    if os.path.exists(path):
        if stat.S_ISFIFO(os.stat(path).st_mode):  # <(command) of a shell
            return _sniffed(path.read_bytes(), text, reading)
        return open_file(path, reading)
    for place in _colons(text):
        if os.path.isfile(text[:place]):
            return _part_of(Path(text[:place]), text[place + 1 :], reading)
    kind, colon, _ = text.partition(":")
    if colon and kind in _GENERATORS:
        from .generators import Generated

        return Generated(text, reading)
    if looks_like_literal(text):
        return Literal(text, reading)
    if path.suffix.lower() in FORMATS or "/" in text or ".npz:" in text:
        pattern = "*" in text or "?" in text
        raise InputError(
            f"{text}: there is no such file",
            hint="`onnxeval run --each` runs a model on each file of a pattern" if pattern else "",
        )
    raise InputError(
        f"{text}: neither a file nor a value", hint=f'values are written as in JSON: 3.5, [[1, 2], [3, 4]], "{text}"'
    )


_GENERATORS = ("rand", "randn", "zeros", "ones", "range", "full")


def _part_of(path: Path, name: str, reading: Reading) -> Source:
    """What `FILE:NAME` means: a value inside, or raw bytes of a type."""
    if path.suffix.lower() in FORMATS and FORMATS[path.suffix.lower()][0] != "raw":
        return open_file(path, reading).member(name)
    from .raw import Raw

    return Raw(path, reading, name)


def _colons(text: str) -> Iterator[int]:
    place = text.find(":")
    while place >= 0:
        yield place
        place = text.find(":", place + 1)

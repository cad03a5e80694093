"""From the text that was typed to the `Source` that it means: a file of some format, a folder, a literal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from onnxeval.errors import InputError

from .folders import Folder
from .jsonfile import JsonFile, Literal
from .literals import looks_like_literal
from .npy import NpyFile, NpzFile
from .source import Member, Reading, Source

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
        data = sys.stdin.buffer.read()
        label = "standard input"
        if data.startswith(b"\x93NUMPY"):
            return NpyFile(label, reading, lambda: io.BytesIO(data))
        if data.startswith(b"PK"):
            return NpzFile(label, reading, lambda: io.BytesIO(data))
        raise InputError(f"{label} holds {'neither a .npy nor a .npz file' if data else 'nothing'}")


def open_file(path: Path, reading: Reading) -> Source:
    """The source in a file, by its suffix."""
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        reason = f"files of suffix {suffix!r} are not read" if suffix else "a file without suffix, of unknown format"
        raise InputError(f"{path}: {reason}", hint=f"known: {' '.join(_FORMATS)}")
    return _FORMATS[suffix](path, reading)


def _protobuf(path: Path, reading: Reading) -> Source:
    from .protobuf import ProtoFile

    return ProtoFile(path, reading)


#: Suffix -> how such a file is opened. A new format is a line here.
_FORMATS: dict[str, Callable[[Path, Reading], Source]] = {
    ".npy": lambda path, reading: NpyFile(str(path), reading, lambda: path.open("rb")),
    ".npz": lambda path, reading: NpzFile(str(path), reading, lambda: path.open("rb")),
    ".pb": _protobuf,
    ".json": JsonFile,
}


def open_source(
    text: str,
    numbered: Sequence[str] = (),
    standard_input: StandardInput | None = None,
    reading: Reading | None = None,
    stem: str = "input",
) -> Source:
    """The source that a VALUE names.

    ``numbered`` are the names that the files ``input_0.pb`` and so on of a test data set stand for (``stem`` is
    "output" for those that are expected).
    """
    reading = reading if reading is not None else Reading()
    if not text:
        raise InputError("a VALUE is empty", hint='a text of no characters is written ""')
    if text == STANDARD_INPUT:
        return (standard_input or StandardInput()).open(reading)
    path = Path(text)
    # Unlike those of pathlib, these take a long literal for what it is: no file.
    if os.path.isdir(path):
        return Folder(path, reading, numbered, open_file, stem)
    if os.path.exists(path):
        return open_file(path, reading)
    for place in _colons(text):
        if os.path.isfile(text[:place]):
            return Member(open_file(Path(text[:place]), reading), text[place + 1 :])
    if looks_like_literal(text):
        return Literal(text, reading)
    if path.suffix in _FORMATS or "/" in text or ".npz:" in text:
        raise InputError(f"{text}: there is no such file")
    raise InputError(
        f"{text}: neither a file nor a value", hint=f'values are written as in JSON: 3.5, [[1, 2], [3, 4]], "{text}"'
    )


def _colons(text: str) -> Iterator[int]:
    place = text.find(".npz:")
    while place >= 0:
        yield place + 4
        place = text.find(".npz:", place + 1)

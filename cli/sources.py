"""Where values come from: files of every format, literals, standard input.

A `Source` is opened from the text that was typed. It holds one value, or several under names; each is read against the
type that the model declares for it. Whatever is wrong with a file is an InputError that names it.
"""

from __future__ import annotations

import io
import os
import sys
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from onnxeval.errors import InputError
from onnxeval.values import Value, ValueType

from .arrays import as_declared, read_array
from .filenames import name_from_file
from .literals import from_json, looks_like_literal, parse_json

STANDARD_INPUT = "-"
_SHOWN = 40


class Source(ABC):
    """Something that values are read from; ``label`` is what messages call it."""

    def __init__(self, label: str) -> None:
        self.label = label

    def names(self) -> list[str] | None:
        """The names of the values inside; None where it holds one value without a name."""
        return None

    def value_of(self, _name: str) -> str:
        """The VALUE that means the one under ``name``, "" where there is none."""
        return ""

    @abstractmethod
    def read(self, name: str, declared: ValueType | None) -> Value:
        """The value under ``name`` (any, where there are no names), as the declared type wants it."""

    def error(self, reason: object, hint: str = "") -> InputError:
        return InputError(f"{self.label}: {reason}", hint=hint)


class NpyFile(Source):
    """One array in NumPy's own format."""

    def __init__(self, label: str, open_file: Callable[[], BinaryIO]) -> None:
        super().__init__(label)
        self._open = open_file

    def read(self, _name: str, declared: ValueType | None) -> Value:
        with _failures(self), self._open() as file:
            return as_declared(read_array(file), declared)


class NpzFile(Source):
    """Arrays under names in a zip archive."""

    def __init__(self, label: str, open_file: Callable[[], BinaryIO]) -> None:
        super().__init__(label)
        self._open = open_file

    def names(self) -> list[str]:
        with _failures(self), self._open() as file, zipfile.ZipFile(file) as archive:
            return [member.removesuffix(".npy") for member in archive.namelist()]

    def value_of(self, name: str) -> str:
        return f"{self.label}:{name}"

    def read(self, name: str, declared: ValueType | None) -> Value:
        with _failures(self, name), self._open() as file, zipfile.ZipFile(file) as archive:
            member = f"{name}.npy"
            if member not in archive.namelist():
                raise ValueError("not an array")
            with archive.open(member) as data:
                return as_declared(read_array(data), declared)


class Member(Source):
    """One of the values of another source."""

    def __init__(self, source: Source, name: str) -> None:
        super().__init__(f"{source.label}:{name}")
        names = source.names() or []
        if name not in names:
            raise source.error(f"there is no {name!r} in it", f"it holds: {', '.join(names) or 'nothing'}")
        self._source, self._name = source, name

    def read(self, _name: str, declared: ValueType | None) -> Value:
        return self._source.read(self._name, declared)


class ProtoFile(Source):
    """One value as a protobuf message of ONNX."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def read(self, _name: str, declared: ValueType | None) -> Value:
        return self.parse(declared)[1]

    def parse(self, declared: ValueType | None) -> tuple[str, Value]:
        """The name that the message gives itself, and its value."""
        from onnxeval.protofiles import parse_value

        with _failures(self):
            return parse_value(self._path.read_bytes(), declared)


class Folder(Source):
    """A test data set (``input_0.pb``, numbered as the model's inputs), or a file for each value under its name."""

    def __init__(self, path: Path, inputs: list[str]) -> None:
        super().__init__(str(path))
        with _failures(self):
            files = sorted(p for p in path.iterdir() if p.suffix in (".npy", ".pb"))
        numbered = {place: p for p in files if (place := _data_set_place(p)) is not None}
        if len(numbered) > len(inputs) or any(place >= len(inputs) for place in numbered):
            raise self.error(f"holds {len(numbered)} inputs, the model has {len(inputs)}: {', '.join(inputs)}")
        if numbered:
            self._files = {inputs[place]: p for place, p in sorted(numbered.items())}
        else:
            self._files = {name_from_file(p): p for p in files}
        if not self._files:
            raise self.error("the folder holds neither input_0.pb and its like nor .npy files")

    def names(self) -> list[str]:
        return list(self._files)

    def value_of(self, name: str) -> str:
        return str(self._files[name])

    def read(self, name: str, declared: ValueType | None) -> Value:
        return open_file(self._files[name]).read(name, declared)


class JsonFile(Source):
    """What `--format json` prints (its outputs' names are the names), or a bare value as in a literal."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        with _failures(self):
            content = parse_json(path.read_bytes())
        self._content = content
        self._entries: dict[str, Any] | None = None
        outputs = content.get("outputs") if isinstance(content, dict) else None
        if isinstance(outputs, list) and all(map(_is_entry, outputs)):
            self._entries = {entry["name"]: entry for entry in outputs}

    def names(self) -> list[str] | None:
        return None if self._entries is None else list(self._entries)

    def read(self, name: str, declared: ValueType | None) -> Value:
        content = self._content if self._entries is None else self._entries[name]
        with _failures(self, name if self._entries else ""):
            return from_json(content, declared)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)


class Literal(Source):
    """A value that was typed."""

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
        with _failures(self):
            self._content = parse_json(text)

    def read(self, _name: str, declared: ValueType | None) -> Value:
        with _failures(self):
            return from_json(self._content, declared)


class StandardInput:
    """Standard input, which can be read once."""

    def __init__(self) -> None:
        self._taken = False

    def open(self) -> Source:
        if self._taken:
            raise InputError("standard input (-) can be read only once")
        self._taken = True
        if sys.stdin is None:
            raise InputError("standard input is closed")
        data = sys.stdin.buffer.read()
        label = "standard input"
        if data.startswith(b"\x93NUMPY"):
            return NpyFile(label, lambda: io.BytesIO(data))
        if data.startswith(b"PK"):
            return NpzFile(label, lambda: io.BytesIO(data))
        raise InputError(f"{label} holds {'neither a .npy nor a .npz file' if data else 'nothing'}")


def open_file(path: Path) -> Source:
    """The source in a file, by its suffix."""
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        reason = f"files of suffix {suffix!r} are not read" if suffix else "a file without suffix, of unknown format"
        raise InputError(f"{path}: {reason}", hint=f"known: {' '.join(_FORMATS)}")
    return _FORMATS[suffix](path)


#: Suffix -> how such a file is opened. A new format is a line here.
_FORMATS: dict[str, Callable[[Path], Source]] = {
    ".npy": lambda path: NpyFile(str(path), lambda: path.open("rb")),
    ".npz": lambda path: NpzFile(str(path), lambda: path.open("rb")),
    ".pb": ProtoFile,
    ".json": JsonFile,
}


def open_source(text: str, inputs: list[str], standard_input: StandardInput) -> Source:
    """The source that a VALUE names; ``inputs`` are the names of the model's inputs in order."""
    if not text:
        raise InputError("a VALUE is empty", hint='a text of no characters is written ""')
    if text == STANDARD_INPUT:
        return standard_input.open()
    path = Path(text)
    # Unlike those of pathlib, these take a long literal for what it is: no file.
    if os.path.isdir(path):
        return Folder(path, inputs)
    if os.path.exists(path):
        return open_file(path)
    for place in _colons(text):
        if os.path.isfile(text[:place]):
            return Member(open_file(Path(text[:place])), text[place + 1 :])
    if looks_like_literal(text):
        return Literal(text)
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


def _data_set_place(path: Path) -> int | None:
    """3 for ``input_3.pb``, None for every other name."""
    number = path.stem.removeprefix("input_")
    return int(number) if path.suffix == ".pb" and path.stem != number and number.isdecimal() else None


@contextmanager
def _failures(source: Source, name: str = "") -> Iterator[None]:
    """Whatever a broken file makes its reader raise becomes an InputError that names it."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # NumPy, zipfile, zlib, json and protobuf raise some twelve kinds for broken files
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise source.error(f"{name}: {reason}" if name else reason) from error

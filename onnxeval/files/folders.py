"""A folder of files, one for each value."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from onnxeval.errors import OutputError
from onnxeval.values import Value, ValueType, describe

from .filenames import file_stem, name_from_file
from .npy import is_lost
from .source import Reading, Source
from .writing import Target, Typed, umask, write_failures

#: The files of a folder that hold its values.
READ_IN_FOLDERS = (".npy", ".pb")


class Folder(Source):
    """A test data set (``input_0.pb``, numbered as the model's inputs), or a file for each value under its name."""

    def __init__(self, path: Path, reading: Reading, open_file: Callable[[Path, Reading], Source]) -> None:
        super().__init__(str(path), reading)
        self._open_file = open_file
        numbered, stem = reading.names, reading.stem
        with self.failures():
            files = sorted(p for p in path.iterdir() if p.suffix in READ_IN_FOLDERS)
        places = {place: p for p in files if (place := data_set_place(p, stem)) is not None}
        if len(places) > len(numbered) or any(place >= len(numbered) for place in places):
            raise self.error(f"holds {len(places)} {stem}s, the model has {len(numbered)}: {', '.join(numbered)}")
        if places:
            self._files = {numbered[place]: p for place, p in sorted(places.items())}
        else:
            self._files = {name_from_file(p): p for p in files}
        if not self._files:
            raise self.error(f"the folder holds neither {stem}_0.pb and its like nor .npy files")

    def names(self) -> list[str]:
        return list(self._files)

    def value_of(self, name: str) -> str:
        return str(self._files[name])

    def _read(self, name: str, wanted: ValueType | None) -> Value:
        return self._open_file(self._files[name], self.reading).read(name, wanted)


def data_set_place(path: Path, stem: str = "input") -> int | None:
    """3 for ``input_3.pb``, None for every other name."""
    number = path.stem.removeprefix(f"{stem}_")
    return int(number) if path.suffix == ".pb" and path.stem != number and number.isdecimal() else None


class FolderTarget(Target):
    """A file for each value, of the format of ``suffix``; without one `.npy`, or `.pb` for what that cannot hold.

    With ``numbered`` they are ``STEM_0.pb`` and so on, otherwise named as the values.
    """

    def __init__(
        self, path: Path, format_of: Callable[[str], Callable[[Path], Target]], suffix: str = "", numbered: str = ""
    ) -> None:
        self.path = path
        self._format_of = format_of
        self._suffix = ".pb" if numbered else suffix
        self._numbered = numbered
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path} is a file, not a folder")

    def save(self, values: Mapping[str, Typed]) -> list[str]:
        import tempfile

        notes: list[str] = []
        with write_failures(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(dir=self.path.parent, prefix=".onnxeval-"))
            try:
                for place, (name, typed) in enumerate(values.items()):
                    stem = f"{self._numbered}_{place}" if self._numbered else file_stem(name)
                    self._write_one(partial, stem, name, typed, notes)
                self._move(partial)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        return notes

    def write(self, file: BinaryIO, values: Mapping[str, Typed], notes: list[str]) -> None:
        raise NotImplementedError("a folder is saved as a whole; its files are written, each by its own format")

    def _write_one(self, folder: Path, stem: str, name: str, typed: Typed, notes: list[str]) -> None:
        suffix = self._suffix
        if not suffix:
            value = typed[0]
            suffix = ".npy" if isinstance(value, np.ndarray) and not is_lost(value) else ".pb"
            if suffix == ".pb":
                notes.append(f"{name} is {describe(value)}, which .npy cannot hold: it is saved as {stem}.pb")
        path = folder / f"{stem}{suffix}"
        with path.open("xb") as file:
            self._format_of(suffix)(path).write(file, {name: typed}, notes)

    def _move(self, partial: Path) -> None:
        if not self.path.exists():
            partial.chmod(0o777 & ~umask())
            partial.rename(self.path)
            return
        for file in sorted(partial.iterdir()):
            for other in (self.path / f"{file.stem}{suffix}" for suffix in READ_IN_FOLDERS if suffix != file.suffix):
                other.unlink(missing_ok=True)  # of an earlier run: one name, one value
            file.replace(self.path / file.name)

"""A folder of files, one for each value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from onnxeval.values import Value, ValueType

from .filenames import name_from_file
from .source import Reading, Source


class Folder(Source):
    """A test data set (``input_0.pb``, numbered as the model's inputs), or a file for each value under its name.

    ``numbered`` are the names that the files `STEM_0.pb`, `STEM_1.pb` and so on stand for.
    """

    def __init__(
        self,
        path: Path,
        reading: Reading,
        numbered: Sequence[str],
        open_file: Callable[[Path, Reading], Source],
        stem: str = "input",
    ) -> None:
        super().__init__(str(path), reading)
        self._open_file = open_file
        with self.failures():
            files = sorted(p for p in path.iterdir() if p.suffix in (".npy", ".pb"))
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

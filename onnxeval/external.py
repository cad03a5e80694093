"""Data of tensors that lies outside their messages: in files beside the model, each mapped into memory once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from onnxeval.dtypes import Tensor


class Files:
    """The files that a model's external data may lie in: those inside ``folders``, looked up in the first of them.

    ``held`` is data that was read beforehand, by location and offset.
    """

    def __init__(self, folders: Iterable[Path] = (), held: Mapping[tuple[str, int], Tensor] | None = None) -> None:
        self.folders = tuple(dict.fromkeys(folders))
        self._held = held or {}
        self._maps: dict[str, Tensor] = {}

    def read(self, entries: Mapping[str, str], expected: int) -> Tensor:
        """The bytes that the entries of an ``external_data`` field name, as a read-only map of them.

        ``expected`` is how many there are where the entries do not tell. Raises ValueError where the entries make
        no sense, lead out of the folders, or name bytes that are not there.
        """
        location = entries.get("location", "")
        offset = _number(entries, "offset", 0)
        length = _number(entries, "length", expected)
        if (data := self._held.get((location, offset))) is not None and data.size == length:
            return data
        whole = self._map(location)
        if offset + length > whole.size:
            raise ValueError(
                f"bytes {offset} to {offset + length} of its external file {location} are past the end "
                f"({whole.size} bytes)"
            )
        return whole[offset : offset + length]

    def _map(self, location: str) -> Tensor:
        if location not in self._maps:
            path = self.path(location)
            # A plain array over the map: np.memmap as a subclass would slow every operation down.
            empty = path.stat().st_size == 0
            self._maps[location] = np.empty(0, np.uint8) if empty else np.asarray(np.memmap(path, np.uint8, "r"))
        return self._maps[location]

    def path(self, location: str) -> Path:
        """The file behind a location. Raises ValueError where it is not inside the folders, or not there."""
        if not location:
            raise ValueError("its external data has no location")
        if not self.folders:
            raise ValueError(f"its data is in the file {location!r}, but the model does not come from a file")
        if os.path.isabs(location) or ".." in Path(location).parts or "\0" in location:
            raise ValueError(f"its external data location {location!r} leaves the model's folder")
        path = self.folders[0] / location
        if not is_inside(path, self.folders):
            raise ValueError(f"its external data location {location!r} is a link out of the model's folder")
        resolved = Path(os.path.realpath(path))
        if not os.path.isfile(resolved):
            raise ValueError(f"its external data file {location!r} is not there (looked in {self.folders[0]})")
        return resolved


def is_inside(path: Path, folders: Iterable[Path]) -> bool:
    """Whether what a path leads to, links followed, lies in one of the folders; one that leads in a circle stays."""
    resolved = Path(os.path.realpath(path))
    return any(resolved.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not text.isdecimal():
        raise ValueError(f"external data has the {key} {text!r}, expected a non-negative integer")
    return int(text)


#: Where a message from nowhere keeps its external data: nowhere.
NO_FILES = Files()

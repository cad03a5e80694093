"""Values in JSON: as `--format json` prints them, or bare as they are typed in place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from onnxeval.values import Value, ValueType

from .jsonform import document, value_form
from .literals import from_json, parse_json
from .source import HintedError, Opener, Reading, Source, opener
from .writing import Target, Typed

_SHOWN = 40


class JsonFile(Source):
    """What `--format json` prints (its outputs' names are the names), or a bare value as in a literal."""

    def __init__(self, place: Path | str, reading: Reading, open_file: Opener | None = None) -> None:
        super().__init__(str(place), reading)
        with self.failures(), (open_file or opener(place))() as file:
            content = parse_json(file.read())
        self._content = content
        self._entries: dict[str, Any] | None = None
        outputs = content.get("outputs") if isinstance(content, dict) else None
        if isinstance(outputs, list) and all(map(_is_entry, outputs)):
            self._entries = {entry["name"]: entry for entry in outputs}

    def names(self) -> list[str] | None:
        return None if self._entries is None else list(self._entries)

    def _read(self, name: str, wanted: ValueType | None) -> Value:
        return from_json(self._content if self._entries is None else self._entries[name], wanted)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)


class Literal(Source):
    """A value that was typed."""

    def __init__(self, text: str, reading: Reading) -> None:
        super().__init__(text if len(text) <= _SHOWN else text[:_SHOWN] + "…", reading)
        with self.failures():
            try:
                self._content = parse_json(text)
            except json.JSONDecodeError as error:
                hint = 'values are written as in JSON, text in quotes: 3.5, [[1, 2], [3, 4]], ["a", "b"]'
                raise HintedError(str(error), hint) from error

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        return from_json(self._content, wanted)


class Json(Target):
    """Every output, as `--format json` prints them."""

    def write(self, file: BinaryIO, values: Mapping[str, Typed], _notes: list[str]) -> None:
        entries = [{"name": name, **value_form(value)} for name, (value, _) in values.items()]
        file.write(document({"outputs": entries}).encode())

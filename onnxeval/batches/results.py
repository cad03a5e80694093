"""Results as rows of files that grow: one .npy file for each output, and a note of what is done.

While there is something to do, a file carries another name, and beside it lies a journal: who interrupts the run can
take it up where it stopped. A block of items is noted when all its rows are written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onnxeval.dtypes import STRING, name_of
from onnxeval.errors import InputError, OutputError
from onnxeval.files.npy import storable
from onnxeval.files.writing import write_failures
from onnxeval.values import Value, describe, shape_text

_PARTIAL = ".partial"


class Column:
    """The file of one output: a row for each item."""

    def __init__(self, path: Path, name: str, count: int, first: Value) -> None:
        self.path = path
        self.name = name
        if not isinstance(first, np.ndarray):
            raise OutputError(f"{path}: {name} is {describe(first)}, NumPy's files hold only arrays")
        if first.dtype == STRING:
            raise OutputError(f"{path}: {name} holds strings, of which a .npy file would have to know the longest")
        self.notes: list[str] = []
        stored = storable(path, name, first, self.notes)
        self._shape, self._dtype, self._type = first.shape, stored.dtype, first.dtype
        self._count = count

    @property
    def partial(self) -> Path:
        return self.path.with_name(self.path.name + _PARTIAL)

    @property
    def bytes_each(self) -> int:
        return math.prod(self._shape) * int(self._dtype.itemsize)

    @property
    def element_type(self) -> str:
        return name_of(self._type)

    @property
    def form(self) -> dict[str, Any]:
        """What the file has to be: the same for the run that takes it up."""
        return {"name": self.name, "shape": [self._count, *self._shape], "dtype": str(self._dtype)}

    def create(self) -> None:
        """A file of its whole size, of which nothing is written yet."""
        with write_failures(self.path), self.partial.open("wb") as file:
            np.lib.format.write_array_header_2_0(
                file,
                {
                    "shape": (self._count, *self._shape),
                    "fortran_order": False,
                    "descr": np.lib.format.dtype_to_descr(self._dtype),
                },
            )
            file.truncate(file.tell() + self._count * self.bytes_each)

    def write(self, start: int, values: Sequence[Value]) -> None:
        """Rows from ``start`` on. Raises OutputError for one of another shape or type than the first."""
        for index, value in enumerate(values, start):
            if not isinstance(value, np.ndarray) or (value.shape, value.dtype) != (self._shape, self._type):
                first = f"{name_of(self._type)}{shape_text(self._shape)}"
                raise OutputError(
                    f"item {index}: {self.name} is {describe(value)}, that of the first item is {first}",
                    hint="only items that give equal shapes can be rows of one file",
                )
        if not values or not self.bytes_each:
            return
        rows = np.stack([storable(self.path, self.name, value, []) for value in values])
        with write_failures(self.path), self.partial.open("r+b") as file:
            end = file.seek(0, 2)
            file.seek(end - (self._count - start) * self.bytes_each)
            file.write(rows.tobytes())


class Results:
    """All outputs, and which blocks of items are done: the file ``journal`` tells, while there is something to do.

    ``identity`` is what the same run again would have.
    """

    def __init__(self, journal: Path, columns: Sequence[Column], identity: Mapping[str, Any], blocks: int) -> None:
        self.columns = list(columns)
        self._journal = journal
        self._done = journal.with_suffix(".done")
        self._identity = {**identity, "outputs": [column.form for column in columns], "blocks": blocks}
        self._blocks = blocks

    def begin(self, *, resume: bool) -> list[int]:
        """The blocks that are to be done. Raises InputError where another run was interrupted here."""
        with write_failures(self._journal):
            if resume and self._journal.exists():
                if _read(self._journal) != self._identity:
                    raise InputError(
                        f"{self._journal}: the run that was interrupted here had another model, inputs or outputs",
                        hint="leave --resume out to begin anew",
                    )
                if all(column.partial.exists() for column in self.columns) and self._done.exists():
                    marks = self._done.read_bytes()
                    return [block for block in range(self._blocks) if marks[block : block + 1] != b"\1"]
            self._journal.parent.mkdir(parents=True, exist_ok=True)
            for column in self.columns:
                column.create()
            self._done.write_bytes(bytes(self._blocks))
            self._journal.write_text(json.dumps(self._identity))
        return list(range(self._blocks))

    def note(self, block: int) -> None:
        """A block is done."""
        with write_failures(self._done), self._done.open("r+b") as file:
            file.seek(block)
            file.write(b"\1")

    def finish(self) -> None:
        """Everything is done: the files get their names."""
        with write_failures(self._journal):
            for column in self.columns:
                column.partial.replace(column.path)
            self._journal.unlink()
            self._done.unlink()


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except ValueError:
        return None

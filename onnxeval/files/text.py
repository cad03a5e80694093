"""Tables of text: `.csv`, `.tsv`, and `.txt` with blanks between the columns.

Text has no type: it takes the declared one, exactly as a literal does. A first line of names that are no numbers names
the columns.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, comparable, is_float, is_integer
from onnxeval.errors import OutputError
from onnxeval.values import OptionalType, TensorType, Value, ValueType, describe, shape_text

from .literals import tensor_of
from .source import Reading, Source
from .writing import Target, Typed

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SPECIAL = {
    "nan": "NaN",
    "inf": "Infinity",
    "+inf": "Infinity",
    "-inf": "-Infinity",
    "infinity": "Infinity",
    "-infinity": "-Infinity",
}
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


class Table(Source):
    """Rows and columns of one tensor; for names in its first line that are asked for, a tensor each."""

    def __init__(self, path: Path, reading: Reading) -> None:
        super().__init__(str(path), reading)
        with self.failures():
            text = path.read_bytes().decode("utf-8-sig")
            if "\0" in text:
                raise ValueError("holds the character NUL: this is no text")
            self._lines = text.splitlines()
            self._delimiter = _DELIMITERS.get(path.suffix.lower())
            self._rows = _rows(text, self._delimiter)
            if not self._rows:
                raise ValueError("holds no rows")
            self._columns = _column_names(self._rows)

    def names(self) -> list[str] | None:
        return self._columns if self._columns and set(self._columns) <= set(self.reading.names) else None

    def value_of(self, name: str) -> str:
        return f"{self.label}:{name}" if name in self._columns else ""

    def member(self, name: str) -> Source:
        if name not in self._columns:
            raise self.error(f"there is no column {name!r} in it", f"it has: {', '.join(self._columns) or 'no names'}")
        with self.failures():
            _refuse_ragged(self._rows)
        place = self._columns.index(name)
        return Column(self, name, [[row[place]] for row in self._rows[1:]])

    def _read(self, name: str, wanted: ValueType | None) -> Value:
        if self.names() is not None:
            return self.member(name).read(name, wanted)
        if not _is_text(wanted):
            _refuse_ragged(self._rows)
            return as_tensor(self._rows[1:] if self._columns else self._rows, wanted)
        if self._delimiter:
            _refuse_ragged(self._rows)
        # what looks like names may be text too
        return as_tensor(self._rows if self._delimiter else [[line] for line in self._lines], wanted)


class Column(Source):
    """One column of a table."""

    def __init__(self, table: Table, name: str, rows: list[list[str]]) -> None:
        super().__init__(f"{table.label}:{name}", table.reading)
        self._rows = rows

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        return as_tensor(self._rows, wanted)


def _is_text(wanted: ValueType | None) -> bool:
    return _tensor_type(wanted).dtype == STRING


def _tensor_type(wanted: ValueType | None) -> TensorType:
    """The type of the tensor that is wanted. Raises ValueError where it is none."""
    wanted = wanted.element if isinstance(wanted, OptionalType) else wanted
    if wanted is None or isinstance(wanted, TensorType):
        return wanted or TensorType(None)
    raise ValueError(f"a table is a tensor, the model declares {wanted}")


def _rows(text: str, delimiter: str | None) -> list[list[str]]:
    if delimiter is None:
        lines = (line.partition("#")[0].split() for line in text.splitlines())
        return [cells for cells in lines if cells]
    return [
        [cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row
    ]


def _refuse_ragged(rows: list[list[str]]) -> None:
    for place, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(f"row {place} has {len(row)} columns, the first has {len(rows[0])}")


def _column_names(rows: list[list[str]]) -> list[str]:
    """The first row, where none of its cells is a number or a truth value and the second row has one."""
    if len(rows) < 2 or any(_is_data(cell) for cell in rows[0]) or not any(_is_data(cell) for cell in rows[1]):
        return []
    return rows[0] if len(set(rows[0])) == len(rows[0]) else []


def _is_data(cell: str) -> bool:
    try:
        complex(cell)
    except ValueError:
        return cell.lower() in _TRUTH
    return True


def as_tensor(rows: list[list[str]], wanted: ValueType | None) -> Tensor:
    """The cells as a tensor of the wanted type, a matrix unless that type has another rank."""
    wanted = _tensor_type(wanted)
    dtype = wanted.dtype if wanted.dtype is not None else _guessed(rows)
    read = _reader(dtype)
    matrix = tensor_of([[read(cell) for cell in row] for row in rows], dtype)
    return matrix.reshape(_shape(matrix, wanted))


def _shape(matrix: Tensor, wanted: TensorType) -> tuple[int, ...]:
    """The shape that is meant: a lone row or column may be a vector, and sizes that are declared are cells in order."""
    if wanted.shape is None or len(wanted.shape) == matrix.ndim:
        return matrix.shape
    if len(wanted.shape) == 1 and 1 in matrix.shape:
        return (matrix.size,)
    unknown = [axis for axis, size in enumerate(wanted.shape) if not isinstance(size, int)]
    sizes = [size if isinstance(size, int) else 1 for size in wanted.shape]
    known = math.prod(sizes)
    if len(unknown) == 1 and known and matrix.size % known == 0:
        sizes[unknown[0]] = matrix.size // known
    if math.prod(sizes) != matrix.size or len(unknown) > 1:
        raise ValueError(f"a table of {shape_text(matrix.shape)} cells does not fill {wanted}")
    return tuple(sizes)


def _guessed(rows: list[list[str]]) -> DType:
    """The type of cells for which none is declared: int64, float32, bool or string."""
    cells = {cell for row in rows for cell in row}
    if cells and all(cell.lower() in ("true", "false") for cell in cells):
        return np.dtype(bool)
    if not all(_is_data(cell) for cell in cells):
        return STRING
    return np.dtype(np.int64) if all(cell.lstrip("+-").isdecimal() for cell in cells) else np.dtype(np.float32)


def _reader(dtype: DType) -> Any:
    """What makes of a cell the Python object that `tensor_of` takes."""
    if dtype == STRING:
        return str
    if dtype.kind == "b":
        return lambda cell: _TRUTH.get(cell.lower(), cell)
    if dtype.kind == "c":
        return _complex
    return _integer if is_integer(dtype) else _float


def _integer(cell: str) -> Any:
    try:
        return int(cell)
    except ValueError:
        return cell


def _float(cell: str) -> Any:
    special = _SPECIAL.get(cell.lower())
    return special if special is not None else _finite(cell)


def _finite(cell: str) -> Any:
    try:
        number = float(cell)
    except ValueError:
        return cell
    if math.isinf(number):
        raise ValueError(f"{cell} does not fit float64")
    return number


def _complex(cell: str) -> Any:
    try:
        number = complex(cell)
    except ValueError:
        return cell
    return [_SPECIAL.get(str(part), part) for part in (number.real, number.imag)]


class TextTarget(Target):
    """The only output, a row a line."""

    what = "a file of text"

    def write(self, file: BinaryIO, values: Mapping[str, Typed], _notes: list[str]) -> None:
        name, (value, _) = self.only(values)
        suffix = self.path.suffix.lower()
        if reason := _unfit(value, suffix):
            raise OutputError(
                f"{self.path}: {name} is {describe(value)}, {reason}", hint="save to a .npy or .json file instead"
            )
        table = value.reshape(-1, 1) if value.ndim < 2 else value
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=_DELIMITERS.get(suffix, " "), lineterminator="\n")
        cell = _cell_text(value.dtype)
        with np.errstate(all="ignore"):  # NaNs that signal
            for row in comparable(table).tolist():
                writer.writerow([cell(element) for element in row])
        file.write(text.getvalue().encode())


def _unfit(value: Value, suffix: str) -> str:
    """Why a file of text cannot hold a value, or ""."""
    if not isinstance(value, np.ndarray):
        return "a table is one tensor"
    if value.ndim > 2:
        return "a table has no more than 2 axes"
    if not value.size:
        return "a table without cells has no shape"
    if value.dtype == STRING:
        if suffix not in _DELIMITERS:
            return "strings need a .csv or .tsv file"
        if any(text != text.strip() or "\0" in text or "\r" in text for text in value.flat):
            return "a table loses blanks around strings, NUL and carriage returns"
    return ""


def _cell_text(dtype: DType) -> Any:
    """What writes an element so that it is read back as the same number."""
    if dtype.kind == "b":
        return lambda element: "true" if element else "false"
    if dtype.kind == "c":
        return lambda element: str(element).strip("()")
    if is_float(dtype):
        return _shortest(dtype)
    return str


def _shortest(dtype: DType) -> Any:
    wide = dtype.type if dtype.isbuiltin != 2 else np.float64  # exact: float8e8m0 rounds up
    return lambda element: (
        np.format_float_scientific(wide(element), trim="0") if _is_far(element) else _plain(wide(element))
    )


def _is_far(element: float) -> bool:
    return math.isfinite(element) and element != 0 and not 1e-5 <= abs(element) < 1e16


def _plain(element: Any) -> str:
    if not np.isfinite(element):
        return "NaN" if np.isnan(element) else "Infinity" if element > 0 else "-Infinity"
    return np.format_float_positional(element, trim="0")

"""Values laid out for people, at any rank: planes of rows of aligned columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import STRING, Tensor, comparable
from onnxeval.values import EmptyOptional, OptionalType, TensorType, Value, type_of

from .digits import CellText, cell_text, range_text, text_width
from .screen import Line, Screen

#: Tensors of more elements, or that take more lines, are summarised unless all of them are asked for.
SUMMARY_ABOVE = 1000
_LINES = 100

_ALIGNED_UP_TO = 10_000
_PLANES, _ROWS, _COLUMNS, _ITEMS = 6, 8, 24, 10
_GAP = "…"
#: The places along one axis that are shown, in order; a jump in them is where others were left out.
Places: TypeAlias = Sequence[int]


def value_lines(name: str, value: Value, screen: Screen, *, full: bool = False, indent: str = "") -> Iterator[Line]:
    """A value under its name: a heading with type and range, then what it holds."""
    if isinstance(value, np.ndarray):
        yield from _tensor_lines(name, value, screen, full, indent)
    elif isinstance(value, list):
        yield from _sequence_lines(name, value, screen, full, indent)
    elif isinstance(value, dict):
        yield from _map_lines(name, value, screen, full, indent)
    elif isinstance(value, EmptyOptional):
        yield [*_heading(name, str(OptionalType(value.element_type)), indent), ("  empty", "")]
    else:
        yield [(f"{indent}{name}", "name"), (f"  {_scalar(value, full)}", "")]


def _sequence_lines(name: str, items: list[Any], screen: Screen, full: bool, indent: str) -> Iterator[Line]:
    yield [*_heading(name, str(type_of(items)), indent), (f"  {_count(len(items), 'item')}", "")]
    for place, gap in _with_gaps(_places(len(items), _ITEMS, full)):
        if gap:
            yield [(f"{indent}  {_GAP} {gap} more", "faint")]
        yield from value_lines(f"{name}[{place}]", items[place], screen, full=full, indent=indent + "  ")


def _map_lines(name: str, entries: dict[Any, Any], screen: Screen, full: bool, indent: str) -> Iterator[Line]:
    yield [*_heading(name, str(type_of(entries)), indent), (f"  {_count(len(entries), 'entry', 'entries')}", "")]
    items = list(entries.items())
    keys = [_scalar(key, full) for key in entries]
    width = max(map(text_width, keys), default=0)
    for place, gap in _with_gaps(_places(len(items), _ITEMS, full)):
        if gap:
            yield [(f"{indent}  {_GAP} {gap} more", "faint")]
        value = items[place][1]
        if isinstance(value, (list, dict)) or (isinstance(value, np.ndarray) and value.ndim):
            yield from value_lines(f"{name}[{keys[place]}]", value, screen, full=full, indent=indent + "  ")
        else:
            yield [
                (f"{indent}  {_pad(keys[place], width, isinstance(items[place][0], str))}: {_scalar(value, full)}", "")
            ]


def _heading(name: str, type_text: str, indent: str) -> Line:
    return [(f"{indent}{name}", "name"), ("  ", ""), (type_text, "type")]


def _scalar(value: Any, full: bool) -> str:
    array = value if isinstance(value, np.ndarray) else np.array(value, object if isinstance(value, str) else None)
    shown = comparable(array)
    return cell_text(shown, full=full)(shown.item())


def _tensor_lines(name: str, array: Tensor, screen: Screen, full: bool, indent: str) -> Iterator[Line]:
    heading = _heading(name, str(TensorType(array.dtype, array.shape)), indent)
    if array.ndim == 0:
        text = _scalar(array, full)
        yield [*heading, ("  ", ""), (text, _style(text))]
        return
    yield [*heading, (f"  {range_text(array)}", "")]
    if array.size:
        whole = full or (array.size <= SUMMARY_ABOVE and _line_count(array) <= _LINES)
        yield from _Layout(array, screen, whole, full, indent + "  ").lines()


def _line_count(array: Tensor) -> int:
    """The lines that a whole tensor takes, at least: a row each, and one above each plane."""
    return math.prod(array.shape[:-2]) * (array.shape[-2] + 1) if array.ndim > 2 else math.prod(array.shape[:-1])


class _Layout:
    """The elements of one tensor on one screen.

    The tensor is seen as planes of rows of columns. ``whole`` shows all of it, otherwise the edges of each axis are
    shown.
    """

    def __init__(self, array: Tensor, screen: Screen, whole: bool, full: bool, indent: str) -> None:
        self.shape = array.shape
        rows, columns = array.shape[-2] if array.ndim > 1 else 1, array.shape[-1]
        cube = array.reshape(-1, rows, columns)
        self.planes = _places(len(cube), _PLANES, whole)
        self.rows = _places(rows, _ROWS, whole)
        self.columns = _places(columns, _COLUMNS, whole)
        self.whole = whole
        self.indent = indent
        # Without a terminal a program may read what --full prints: a row a line, then.
        self.width = screen.width - len(indent) if screen.terminal or not full else math.inf
        shown = cube if whole else cube[np.ix_(self.planes, self.rows, self.columns)]
        self.cells = comparable(shown)
        self.text: CellText = cell_text(self.cells, full=full)
        self.left_aligned = array.dtype == STRING
        # All planes share their columns' widths, unless there are too many elements to look at twice.
        self.widths = self._widths(self.cells) if self.cells.size <= _ALIGNED_UP_TO else None

    def lines(self) -> Iterator[Line]:
        for place, (plane, gap) in enumerate(_with_gaps(self.planes)):
            if gap:
                yield [(f"{self.indent}{_GAP} {_count(gap, 'more plane')} {_GAP}", "faint")]
            if len(self.shape) > 2:
                index = ", ".join(map(str, np.unravel_index(plane, self.shape[:-2])))
                yield [(f"{self.indent}[{index}]", "faint")]
            yield from self._plane(self.cells[place])

    def _plane(self, cells: Tensor) -> Iterator[Line]:
        texts = [[self.text(element) for element in row] for row in cells.tolist()]
        widths = self.widths or self._widths(cells[None])
        if len(texts) == 1 and self.whole:
            yield from self._vector(texts[0], max(widths))
            return
        columns, widths = self._fitting(widths)
        for row, (_, gap) in zip(texts, _with_gaps(self.rows), strict=True):
            if gap:
                yield [(f"{self.indent}{_GAP} {_count(gap, 'more row')} {_GAP}", "faint")]
            yield from self._row(row, columns, widths)

    def _widths(self, cube: Tensor) -> list[int]:
        columns = cube.reshape(-1, cube.shape[-1]).T.tolist()
        return [max(text_width(self.text(element)) for element in column) for column in columns]

    def _fitting(self, widths: list[int]) -> tuple[list[int], list[int]]:
        """The columns that fit on a line, of the summarised ones; -1 stands for those left out."""
        every = list(range(len(widths)))
        if self.whole:
            return every, widths
        kept = len(every)
        while kept > 2 and sum(widths[i] + 2 for i in _places(len(every), kept, False)) + 3 > self.width:
            kept -= 1
        columns: list[int] = []
        for place in _places(len(every), kept, False):
            if columns and (self.columns[place] != self.columns[columns[-1]] + 1):
                columns.append(-1)
            columns.append(place)
        return columns, [1 if i < 0 else widths[i] for i in columns]

    def _row(self, texts: list[str], columns: list[int], widths: list[int]) -> Iterator[Line]:
        """One row; where it is whole and wider than the screen it goes on in lines that are set further in."""
        line: Line = [(self.indent, "")]
        used = 0
        for place, width in zip(columns, widths, strict=True):
            text = _GAP if place < 0 else texts[place]
            if used and used + width > self.width:
                yield line
                line, used = [(self.indent + "    ", "")], 4
            line.append((_pad(text, width, self.left_aligned) + "  ", "faint" if place < 0 else _style(text)))
            used += width + 2
        yield line

    def _vector(self, texts: list[str], width: int) -> Iterator[Line]:
        """A lone row; where it takes several lines, each starts with the place of its first element."""
        widths = [text_width(text) for text in texts]
        if len(texts) == 1 or sum(widths) + 2 * len(widths) - 2 <= self.width:
            yield from self._row(texts, list(range(len(texts))), widths)
            return
        label = len(str(len(texts) - 1)) + 2
        step = max(int((self.width - label) // (width + 2)), 1)
        for start in range(0, len(texts), step):
            line: Line = [(f"{self.indent}{f'[{start}]'.rjust(label)}  ", "faint")]
            line += [
                (_pad(text, width, self.left_aligned) + "  ", _style(text)) for text in texts[start : start + step]
            ]
            yield line


def _places(count: int, most: int, whole: bool) -> Places:
    """All places of an axis, or its first and last ones."""
    if whole or count <= most:
        return range(count)
    first = (most + 1) // 2
    return [*range(first), *range(count - (most - first), count)]


def _with_gaps(places: Places) -> Iterator[tuple[int, int]]:
    """Each place with how many were left out before it."""
    if places:
        yield places[0], places[0]
    yield from ((after, after - before - 1) for before, after in pairwise(places))


def _pad(text: str, width: int, left_aligned: bool) -> str:
    blank = " " * (width - text_width(text))
    return text + blank if left_aligned else blank + text


def _style(text: str) -> str:
    return "error" if text in ("NaN", "Inf", "-Inf") else ""


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"

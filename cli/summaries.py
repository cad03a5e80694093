"""`--stats`, `--hash` and `--show`: values in numbers, as hashes, and as pictures, instead of their elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .screen import Line, Screen

if TYPE_CHECKING:
    from onnxeval.dtypes import Tensor
    from onnxeval.summary import Statistics
    from onnxeval.values import Value

_BARS = "▁▂▃▄▅▆▇█"
_SHADES = " .:-=+*#%@"
_WIDEST_PICTURE = 120


def stats_lines(values: Mapping[str, Value], on: Screen) -> Iterator[Line]:
    """A row for each tensor, those inside sequences and maps included; two on a terminal that is too narrow for one."""
    from onnxeval.summary import statistics
    from onnxeval.values import type_of

    rows: list[tuple[str, ...]] = [("", "type", "min", "max", "mean", "std", "zeros", "NaN", "Inf", "histogram")]
    for name, value in values.items():
        for place, tensor in _tensors(name, value):
            rows.append((place, str(type_of(tensor)), *_cells(statistics(tensor))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    apart = on.terminal and sum(widths) + 2 * (len(widths) - 1) > on.width
    for number, row in enumerate(rows):
        line: Line = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            text = cell.ljust(width) if column in (0, 1, 9) else cell.rjust(width)
            line.append((text + "  ", "faint" if not number else ("name", "type")[column] if column < 2 else ""))
        yield from (line[:2], [("  ", ""), *line[2:]]) if apart else (line,)


def _tensors(place: str, value: Value) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, np.ndarray):
        yield place, value
    elif isinstance(value, (list, dict)):
        entries = enumerate(value) if isinstance(value, list) else value.items()
        for key, item in entries:
            yield from _tensors(f"{place}[{key}]", item)
    elif isinstance(value, (int, float, str, np.generic)):
        yield place, np.array(value, object if isinstance(value, str) else None)


def _cells(found: Statistics | None) -> tuple[str, ...]:
    if found is None:
        return ("",) * 8
    numbers = (found.least, found.most, found.mean, found.deviation)
    counts = (found.zeros, found.nan, found.inf)
    return (
        *(
            "" if number is None else f"{number:.5g}" if isinstance(number, float) else str(number)
            for number in numbers
        ),
        *map(str, counts),
        _sparkline(found.histogram),
    )


def _sparkline(bins: tuple[int, ...]) -> str:
    """A bar for each bin, as high as its share; one that is not empty is never blank."""
    most = max(bins, default=0)
    return "".join(_BARS[-(-count * len(_BARS) // most) - 1] if count else " " for count in bins).ljust(len(bins))


def stats_form(value: Value) -> Any:
    """Statistics for JSON: an object for a tensor, a list of those of all tensors for other values."""
    forms = [_stats_form(tensor) for _, tensor in _tensors("", value)]
    return forms[0] if isinstance(value, np.ndarray) else forms


def _stats_form(tensor: Tensor) -> dict[str, Any] | None:
    from onnxeval.files.jsonform import float_form
    from onnxeval.summary import statistics

    found = statistics(tensor)
    if found is None:
        return None
    ends = {"min": found.least, "max": found.most, "mean": found.mean, "std": found.deviation}
    return {
        "count": found.count,
        **{key: float_form(number) if isinstance(number, float) else number for key, number in ends.items()},
        "zeros": found.zeros,
        "nan": found.nan,
        "inf": found.inf,
        "histogram": list(found.histogram),
    }


def hash_lines(values: Mapping[str, Value]) -> Iterator[Line]:
    """The hash of each value, with its name and its type."""
    from onnxeval.summary import content_hash
    from onnxeval.values import type_of

    for name, value in values.items():
        yield [(f"sha256:{content_hash(value)}  ", ""), (name, "name"), (f"  {type_of(value)}", "type")]


def hash_form(value: Value) -> str:
    """The hash of a value for JSON."""
    from onnxeval.summary import content_hash

    return content_hash(value)


def picture_lines(values: Mapping[str, Value], on: Screen) -> Iterator[Line]:
    """Values drawn: two pixels in each character where there are colours, shades of letters otherwise."""
    for name, value in values.items():
        try:
            yield from _picture(name, value, on)
        except ValueError as error:
            yield [(name, "name"), (f"  {error}", "faint")]


def _picture(name: str, value: Value, on: Screen) -> Iterator[Line]:
    """One value drawn. Raises ValueError where it is not like a picture."""
    from onnxeval.files.pictures import as_picture
    from onnxeval.values import type_of

    pixels, how = as_picture(value, stretch=True)
    if pixels.dtype != np.uint8:
        pixels = (pixels >> 8).astype(np.uint8)
    yield [(name, "name"), (f"  {type_of(value)}", "type"), (f"  {how}" if how else "", "faint")]
    columns = min(on.width, _WIDEST_PICTURE)
    if on.styled:
        yield from _half_blocks(_shrunk(pixels, columns))
    else:
        yield from _letters(_shrunk(pixels, columns // 2))


def _shrunk(pixels: Tensor, columns: int) -> Tensor:
    """At most so many columns, each pixel the mean of those it stands for."""
    height, width, _ = pixels.shape
    step = max(-(-width // columns), 1)
    rows, places = (np.arange(0, size, step) for size in (height, width))
    sums = np.add.reduceat(np.add.reduceat(pixels.astype(np.float64), rows, axis=0), places, axis=1)
    counts = np.add.reduceat(np.ones(height), rows)[:, None] * np.add.reduceat(np.ones(width), places)
    shrunk: Tensor = np.rint(sums / counts[:, :, None]).astype(np.uint8)
    return shrunk


def _half_blocks(pixels: Tensor) -> Iterator[Line]:
    colors = _rgb(pixels)
    if len(colors) % 2:
        colors = np.concatenate([colors, np.zeros_like(colors[:1])])
    for upper, lower in zip(colors[::2].tolist(), colors[1::2].tolist(), strict=True):
        yield [
            ("▀", f"rgb({','.join(map(str, a))}) on rgb({','.join(map(str, b))})")
            for a, b in zip(upper, lower, strict=True)
        ]


def _letters(pixels: Tensor) -> Iterator[Line]:
    grey = _rgb(pixels).astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    for row in np.rint(grey / 255 * (len(_SHADES) - 1)).astype(int).tolist():
        yield [("".join(2 * _SHADES[shade] for shade in row), "")]


def _rgb(pixels: Tensor) -> Tensor:
    channels = pixels.shape[2]
    return np.repeat(pixels, 3, axis=2) if channels == 1 else pixels[:, :, :3]

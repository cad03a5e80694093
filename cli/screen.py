"""Where text goes: standard output, styled by rich on a terminal, plain everywhere else."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from onnxeval.errors import OutputError

#: A piece of a line and its style, a key of `_STYLES` or "".
Span: TypeAlias = tuple[str, str]
Line: TypeAlias = list[Span]

_STYLES = {
    "name": "bold",
    "type": "cyan",
    "faint": "dim",
    "good": "green",
    "warning": "yellow",
    "error": "bold red",
    "heading": "bold",
}
_PLAIN_WIDTH = 100
_CHUNK = 1000


class NoReaderError(OutputError):
    """Whoever read our output has gone, as `head` does when it has seen enough."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What standard output can show: columns, and whether a person reads it there (colours and wrapping then)."""

    width: int = _PLAIN_WIDTH
    terminal: bool = False
    styled: bool = False


def screen() -> Screen:
    """The screen of this process. NO_COLOR and TERM=dumb mean no styles."""
    if not sys.stdout.isatty():
        return Screen()
    styled = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Screen(max(shutil.get_terminal_size().columns, 20), terminal=True, styled=styled)


def show(lines: Iterable[Line], on: Screen | None = None) -> None:
    """Print lines to standard output."""
    if (on or screen()).styled:
        _show_styled(lines)
        return
    for chunk in _chunks("".join(text for text, _ in line).rstrip() + "\n" for line in lines):
        write(chunk)


def _show_styled(lines: Iterable[Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        text = Text.assemble(*((text, _STYLES.get(style, "")) for text, style in line))
        try:
            text.rstrip()
            console.print(text, soft_wrap=True)
        except OSError as error:
            raise _failure(error) from error


def write(text: str) -> None:
    """Write text to standard output. Raises OutputError where that fails."""
    try:
        sys.stdout.write(text)
    except OSError as error:
        raise _failure(error) from error


def flush() -> None:
    """Hand what was written to whoever reads it. Raises OutputError where that fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _failure(error) from error


def _failure(error: OSError) -> OutputError:
    kind = NoReaderError if isinstance(error, BrokenPipeError) else OutputError
    return kind(f"cannot write to standard output: {error.strerror or error}")


def _chunks(texts: Iterable[str]) -> Iterator[str]:
    chunk: list[str] = []
    for text in texts:
        chunk.append(text)
        if len(chunk) >= _CHUNK:
            yield "".join(chunk)
            chunk.clear()
    yield "".join(chunk)

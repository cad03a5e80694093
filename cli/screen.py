"""Where text goes: standard output, styled by rich on a terminal, plain everywhere else."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TextIO, TypeAlias

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


class Screen(NamedTuple):
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


def show(lines: Iterable[Line], on: Screen | None = None, *, beside: bool = False) -> None:
    """Print lines to standard output, or ``beside`` it to standard error, where data takes its place.

    What is too long for a terminal goes on in the next line, below where its last column begins.
    """
    on = on or screen()
    if on.terminal:
        width = on.width
        lines = (part for line in lines for part in _fitted(line, width))
    if on.styled:
        _show_styled(lines)
        return
    for chunk in _chunks("".join(visible(text) for text, _ in line).rstrip() + "\n" for line in lines):
        (sys.stderr if beside else sys.stdout).write(chunk)


def _show_styled(lines: Iterable[Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        text = Text.assemble(*((visible(text), _STYLES.get(style, style)) for text, style in line))
        text.rstrip()
        console.print(text, soft_wrap=True)


#: A column begins after a gap, in the left half of the screen; text without columns goes on so far in.
_COLUMN = re.compile(r"(?<=\S)  +(?=\S)")
_STEP = 4


def _fitted(line: Line, width: int) -> Iterator[Line]:
    """The line as lines of this width, broken between words."""
    text = "".join(part for part, _ in line)
    if len(text) <= width:
        yield line
        return
    columns = [match.end() for match in _COLUMN.finditer(text, 0, width // 2)]
    margin = columns[-1] if columns else min(len(text) - len(text.lstrip()) + _STEP, width // 2)
    starts, start, end = [0], 0, 0
    for match in re.finditer(r"\S+", text):
        room = width if start == 0 else width - margin
        if match.end() - start > room and text[start : match.start()].strip():
            start = match.start()
            starts.append(start)
        end = match.end()
    for begin, stop in zip(starts, [*starts[1:], end], strict=True):
        yield [*([(" " * margin, "")] if begin else []), *_cut(line, begin, stop)]


def _cut(line: Line, begin: int, stop: int) -> Iterator[Span]:
    """The spans of a part of a line."""
    place = 0
    for text, style in line:
        if part := text[max(begin - place, 0) : max(stop - place, 0)]:
            yield part, style
        place += len(text)


def write(text: str) -> None:
    """Write text to standard output. Raises OutputError where that fails."""
    sys.stdout.write(text)


def flush() -> None:
    """Hand what was written to whoever reads it. Raises OutputError where that fails."""
    sys.stdout.flush()


def tell(text: str) -> None:
    """A line on standard error."""
    import click

    click.echo("\n".join(map(visible, text.split("\n"))), err=True)


#: What moves a terminal's cursor, changes its state or turns its text around: names in a model may hold it.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_VISIBLE = {code: repr(chr(code))[1:-1] for code in _CONTROLS}


def visible(text: str) -> str:
    """Text with control characters spelled out as Python would: ``\\x1b``, ``\\n``."""
    return text.translate(_VISIBLE)


class _Guarded:
    """A standard stream that leaves what is to be done when writing fails to ``failed``."""

    def __init__(self, stream: TextIO, failed: Callable[[OSError], None]) -> None:
        self._stream = stream
        self._failed = failed

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._failed(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Standard output that raises OutputError where it fails, and standard error that is silent then.

    Those that the shell closed are there again, one that nothing can be read from or written to.
    """
    _reopen_closed()
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no text of a model may break the terminal's encoding
    sys.stdout, sys.stderr = _Guarded(sys.stdout, _fail), _Guarded(sys.stderr, _silence)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _reopen_closed() -> None:
    if sys.stdin is None:
        sys.stdin = _null(os.O_RDONLY, "r")
    if sys.stdout is None:
        sys.stdout = _null(os.O_RDONLY, "w")  # to write to it fails, as it should
    if sys.stderr is None:
        sys.stderr = _null(os.O_WRONLY, "w")


def _null(flags: int, mode: Literal["r", "w"]) -> TextIO:
    return os.fdopen(os.open(os.devnull, flags), mode)


def _fail(error: OSError) -> None:
    kind = NoReaderError if isinstance(error, BrokenPipeError) else OutputError
    raise kind(f"cannot write to standard output: {error.strerror or error}") from error


def _silence(_error: OSError) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _chunks(texts: Iterable[str]) -> Iterator[str]:
    chunk: list[str] = []
    for text in texts:
        chunk.append(text)
        if len(chunk) >= _CHUNK:
            yield "".join(chunk)
            chunk.clear()
    yield "".join(chunk)

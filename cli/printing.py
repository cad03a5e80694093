"""What commands that give values have in common: the place to save to, notes, and the values as text or JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxeval.errors import OutputError

from . import screen

if TYPE_CHECKING:
    from onnxeval.files.writing import Target, Typed


def opened_target(save: str) -> Target:
    """The place that `--save` names. Raises OutputError where it cannot be written to."""
    from onnxeval.files.targets import STANDARD_OUTPUT, Stream, open_target

    if save != STANDARD_OUTPUT:
        return open_target(save)
    if sys.stdout.isatty():
        raise OutputError("standard output is a terminal, which shows no files", hint="--save - is for a pipe")
    return Stream(sys.stdout.buffer)


def tell_notes(notes: list[str]) -> None:
    """Tell the notes, once."""
    for note in notes:
        screen.tell(f"note: {note}")
    notes.clear()


def print_values(typed: Mapping[str, Typed], form: str, full: bool, *, beside: bool = False) -> None:
    """The values as text, or as JSON; ``beside`` standard output where a file goes there."""
    if form == "json":
        from onnxeval.files.jsonform import document, value_form

        entries = [{"name": name, **value_form(value)} for name, (value, _) in typed.items()]
        screen.write(document({"outputs": entries}))
        return
    from .render import value_lines

    on = screen.Screen() if beside else screen.screen()
    lines: list[screen.Line] = []
    for name, (value, _) in typed.items():
        lines += [*([[]] if lines else []), *value_lines(name, value, on, full=full)]
    screen.show(lines, on, beside=beside)

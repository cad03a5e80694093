"""What commands that give values have in common: the place to save to, notes, and the values as text or JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from onnxeval.errors import OutputError

from . import screen
from .options import FILE, format_option

if TYPE_CHECKING:
    from onnxeval.files.writing import Target, Typed
    from onnxeval.values import Value


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


def value_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How values are printed and where they are saved: `save`, `form`, `full`, `stats`, `hashes`, `drawn`."""
    for option in (
        click.option("--show", "drawn", is_flag=True, help="Draw values that are like pictures."),
        click.option("--hash", "hashes", is_flag=True, help="Print a SHA-256 of each value instead of its elements."),
        click.option("--stats", is_flag=True, help="Print ranges, moments and histograms instead of elements."),
        click.option("--full", is_flag=True, help="Print every element of large tensors."),
        format_option("How to print: laid out for people, or JSON with every element."),
        click.option(
            "--save",
            type=FILE,
            metavar="PATH",
            help="Also save the values, in the format of the suffix; to a folder without one; - is standard output.",
        ),
    ):
        command = option(command)
    return command


class Printing:
    """Values as `value_options` asks for them. Raises a UsageError for options that do not go together."""

    def __init__(self, save: str | None, form: str, full: bool, stats: bool, hashes: bool, drawn: bool) -> None:
        if form == "json" and (drawn or save == "-"):
            option = "--show" if drawn else "--save -"
            raise click.UsageError(f"--format json and {option} both write to standard output.")
        self._save = save
        self._form = form
        self._full, self._stats, self._hashes, self._drawn = full, stats, hashes, drawn
        self._target: Target | None = None

    @property
    def on(self) -> screen.Screen:
        """Where lines go."""
        return screen.Screen() if self._save == "-" else screen.screen()

    def open(self) -> None:
        """Find out what is wrong with the place to save to, before anything is run for it."""
        if self._save is not None:
            self._target = opened_target(self._save)

    def print(
        self,
        typed: Mapping[str, Typed],
        *,
        quiet: bool = False,
        bare: bool = False,
        form: Mapping[str, Any] | None = None,
        lines: Iterable[screen.Line] = (),
    ) -> None:
        """Save and print values: as JSON with what ``form`` adds, as text with ``lines`` after it.

        Without their elements in the text where ``quiet``, in JSON where ``bare``.
        """
        notes = [] if self._target is None else self._target.save(typed)
        if self._form == "json":
            self._write_json(typed, bare, form or {})
        else:
            values = {name: value for name, (value, _) in typed.items()}
            screen.show(chain(self._lines(values, quiet), lines), self.on, beside=self._save == "-")
        if self._target is not None:
            screen.flush()
            tell_notes(notes)
            if self._save != "-":
                screen.tell(f"saved {', '.join(typed)} to {self._target.path}")

    def _write_json(self, typed: Mapping[str, Typed], bare: bool, form: Mapping[str, Any]) -> None:
        from onnxeval.files.jsonform import document, value_form

        from .summaries import hash_form, stats_form

        entries = []
        for name, (value, _) in typed.items():
            entry = {"name": name, **value_form(value, data=not (self._stats or self._hashes or bare))}
            if self._stats:
                entry["stats"] = stats_form(value)
            if self._hashes:
                entry["sha256"] = hash_form(value)
            entries.append(entry)
        screen.write(document({"outputs": entries, **form}))

    def _lines(self, values: Mapping[str, Value], quiet: bool) -> Iterator[screen.Line]:
        from .render import value_lines

        if not values:
            screen.tell("the model has no outputs")
        if self._stats or self._hashes or self._drawn:
            yield from self._summaries(values)
        elif not quiet:
            for place, (name, value) in enumerate(values.items()):
                if place:
                    yield []
                yield from value_lines(name, value, self.on, full=self._full)

    def _summaries(self, values: Mapping[str, Value]) -> Iterator[screen.Line]:
        from .summaries import hash_lines, picture_lines, stats_lines

        if self._stats:
            yield from stats_lines(values, self.on)
        if self._hashes:
            yield from hash_lines(values)
        if self._drawn:
            yield from picture_lines(values, self.on)

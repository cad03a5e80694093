"""Which value goes to which input: `--input [NAME=]VALUE`, as often as needed."""

from __future__ import annotations

import shlex
from collections.abc import Container, Sequence
from typing import Protocol

from onnxeval.errors import InputError
from onnxeval.files.opening import StandardInput, open_source
from onnxeval.files.source import Reading, Source
from onnxeval.values import Value, ValueType


class Declared(Protocol):
    """What a model says of one of its inputs; ``optional`` ones have a default."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> ValueType | None: ...
    @property
    def optional(self) -> bool: ...


def read_feeds(
    arguments: Sequence[str], inputs: Sequence[Declared], reading: Reading | None = None
) -> dict[str, Value]:
    """The values for a model's inputs. Raises InputError for whatever does not fit or cannot be read."""
    types = {entry.name: entry.type for entry in inputs}
    sources = open_sources(arguments, inputs, reading if reading is not None else Reading())
    return {name: source.read(name, types[name]) for name, source in sources.items()}


def open_sources(
    arguments: Sequence[str], declared: Sequence[Declared], reading: Reading, what: str = "input"
) -> dict[str, Source]:
    """Where the value for each name comes from; ``what`` says of which kind the names are."""
    names = [entry.name for entry in declared]
    standard_input = StandardInput()
    sources: dict[str, Source] = {}

    def assign(name: str, source: Source) -> None:
        if name in sources:
            raise InputError(f"the {what} {name!r} is given twice, the second time by {source.label}")
        sources[name] = source

    bare: list[Source] = []
    for argument in arguments:
        chosen, text = split_argument(argument, names)
        source = _opened(text, names, standard_input, reading, what)
        inside = source.names()
        for name in chosen:
            assign(name, _only(source, name, inside, what))
        if chosen:
            continue
        if inside is None:
            bare.append(source)
            continue
        for inner in inside:
            if inner not in names:
                raise source.error(
                    f"holds {inner!r}, which is no {what} of the model", did_you_mean(inner, names, what)
                )
            assign(inner, source)
    for source in bare:
        assign(_unbound(source, declared, sources, what), source)
    return sources


def split_argument(argument: str, names: Sequence[str]) -> tuple[list[str], str]:
    """The names that an argument is for, and its VALUE.

    NAME is the longest name that starts the argument and is followed by `=`, or else a pattern before the first `=`.
    Without one there are no names.
    """
    name = max((n for n in names if argument.startswith(f"{n}=")), key=len, default="")
    if name:
        return [name], argument[len(name) + 1 :]
    pattern, equals, value = argument.partition("=")
    if equals and "*" in pattern:
        from fnmatch import fnmatchcase

        if matching := [n for n in names if fnmatchcase(n, pattern)]:
            return matching, value
    return [], argument


def _opened(text: str, names: list[str], standard_input: StandardInput, reading: Reading, what: str) -> Source:
    try:
        return open_source(text, names, standard_input, reading, what)
    except InputError as error:
        wrong_name, equals, rest = text.partition("=")
        if not equals:
            raise
        try:
            open_source(rest, names, StandardInput(), reading)
        except InputError:
            raise error from None
        hint = did_you_mean(wrong_name, names, what)
        raise InputError(f"{wrong_name!r} is no {what} of the model", hint=hint) from None


def _only(source: Source, name: str, inside: list[str] | None, what: str) -> Source:
    """What NAME=VALUE means where VALUE holds several values: the one of that name, or the only one."""
    if inside is None:
        return source
    if name in inside:
        return source
    if len(inside) == 1:
        return source.member(inside[0])
    value = source.value_of(inside[0]) if inside else ""
    raise source.error(
        f"holds {len(inside)} values and none is called {name!r}: {', '.join(inside)}",
        f"name one: {_OPTIONS[what]} {shlex.quote(f'{name}={value}')}" if value else "",
    )


def _unbound(source: Source, declared: Sequence[Declared], taken: Container[str], what: str) -> str:
    """The one name that a value without a name is for."""
    required = [i.name for i in declared if not i.optional and i.name not in taken]
    free = required or [i.name for i in declared if i.name not in taken]
    if len(free) == 1:
        return free[0]
    if not free:
        raise InputError(f"{source.label}: every {what} of the model is given already")
    raise InputError(
        f"{source.label}: which {what} is it for? {len(free)} are not given yet: {', '.join(free)}",
        hint=f"name it: {_OPTIONS[what]} {shlex.quote(f'{free[0]}={source.label}')}",
    )


#: The option that gives a value for each kind of name.
_OPTIONS = {"input": "--input", "output": "--expect"}


def did_you_mean(name: str, names: Sequence[str], what: str = "input") -> str:
    """A hint for a name that does not exist."""
    if not names:
        return f"the model has no {what}s"
    import difflib

    close = difflib.get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else f"its {what}s: {', '.join(names)}"

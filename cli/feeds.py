"""Which value goes to which input: `--input [NAME=]VALUE`, as often as needed."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
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
    declared = {i.name: i for i in inputs}
    names = list(declared)
    standard_input = StandardInput()
    reading = reading if reading is not None else Reading()
    feeds: dict[str, Value] = {}

    def feed(name: str, source: Source) -> None:
        if name in feeds:
            raise InputError(f"the input {name!r} is given twice, the second time by {source.label}")
        feeds[name] = source.read(name, declared[name].type)

    bare: list[Source] = []
    for argument in arguments:
        name, text = split_argument(argument, names)
        source = _opened(text, names, standard_input, reading)
        inside = source.names()
        if name:
            feed(name, _only(source, name, inside))
        elif inside is None:
            bare.append(source)
        else:
            for inner in inside:
                if inner not in declared:
                    raise source.error(f"holds {inner!r}, which is no input of the model", did_you_mean(inner, names))
                feed(inner, source)
    for source in bare:
        feed(_unbound(source, inputs, feeds), source)
    return feeds


def split_argument(argument: str, names: Sequence[str]) -> tuple[str, str]:
    """NAME and VALUE: NAME is the longest input name that starts the argument and is followed by `=`, or ""."""
    name = max((n for n in names if argument.startswith(f"{n}=")), key=len, default="")
    return name, argument[len(name) + 1 :] if name else argument


def _opened(text: str, names: list[str], standard_input: StandardInput, reading: Reading) -> Source:
    try:
        return open_source(text, names, standard_input, reading)
    except InputError as error:
        wrong_name, equals, rest = text.partition("=")
        if not equals:
            raise
        try:
            open_source(rest, names, StandardInput())
        except InputError:
            raise error from None
        raise InputError(f"{wrong_name!r} is no input of the model", hint=did_you_mean(wrong_name, names)) from None


def _only(source: Source, name: str, inside: list[str] | None) -> Source:
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
        f"name one: --input {shlex.quote(f'{name}={value}')}" if value else "",
    )


def _unbound(source: Source, inputs: Sequence[Declared], feeds: dict[str, Value]) -> str:
    """The one input that a value without a name is for."""
    required = [i.name for i in inputs if not i.optional and i.name not in feeds]
    free = required or [i.name for i in inputs if i.name not in feeds]
    if len(free) == 1:
        return free[0]
    if not free:
        raise InputError(f"{source.label}: every input of the model is given already")
    raise InputError(
        f"{source.label}: which input is it for? {len(free)} are not given yet: {', '.join(free)}",
        hint=f"name it: --input {shlex.quote(f'{free[0]}={source.label}')}",
    )


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """A hint for a name that does not exist."""
    if not names:
        return "the model has no inputs"
    close = difflib.get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else f"its inputs: {', '.join(names)}"

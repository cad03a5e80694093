"""Values in and out of files of every format.

``read(text, wanted)`` takes whatever may stand for a VALUE in the shell, ``write(path, values)`` saves values in the
format of the path's suffix. `open_source` and `open_target` are what they stand on, in two steps: to find out what is
wrong with a place before something long starts, or to read some of the values of a file.

A format is a module: a `Source` in it reads, a `Target` in it writes, and `opening` and `targets` list them by suffix.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnxeval.values import Value, ValueType

from .source import Reading, Source

__all__ = ["Reading", "Source", "read", "write"]


def read(
    text: str, wanted: ValueType | Mapping[str, ValueType | None] | None = None, reading: Reading | None = None
) -> Value | dict[str, Value]:
    """The value that a VALUE of the shell means; a dict by name where it is a file or a folder of several.

    ``wanted`` is the type of the one, or a mapping of names to types, in the order in which files may be numbered.
    Raises InputError for what cannot be read, or not as that type.
    """
    from .opening import open_source

    types = wanted if isinstance(wanted, Mapping) else {}
    source = open_source(text, list(types), reading=reading)
    names = source.names()
    if names is None:
        return source.read("", None if isinstance(wanted, Mapping) else wanted)
    return {name: source.read(name, types.get(name) if isinstance(wanted, Mapping) else wanted) for name in names}


def write(path: str, values: Mapping[str, Value], types: Mapping[str, ValueType | None] | None = None) -> list[str]:
    """Save the values, whole or not at all, in the format of the suffix; a folder where there is none.

    ``types`` are those declared, which tell an optional from what it holds. The result is what the user should hear
    of. Raises OutputError where a value cannot be kept in the format.
    """
    from .targets import open_target

    return open_target(path).save({name: (value, (types or {}).get(name)) for name, value in values.items()})

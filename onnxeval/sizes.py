"""The sizes that a model leaves open, by name, and sizes put in their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from onnxeval.errors import InputError
from onnxeval.graph import constants_of


def open_sizes(graph: Any) -> dict[str, list[str]]:
    """The dimensions of a graph's inputs that have no size, with the inputs that have them.

    A dimension without a name is called by its place: ``x[0]``. Inputs with an initializer are left out.
    """
    given = set(constants_of(graph))
    found: dict[str, list[str]] = {}
    for value in graph.input:
        if value.name not in given:
            for name, _ in _open(value):
                readers = found.setdefault(name, [])
                if value.name not in readers:
                    readers.append(value.name)
    return found


def bind_sizes(graph: Any, sizes: Mapping[str, int]) -> None:
    """Declare these sizes in a graph, wherever their names stand.

    Raises InputError for a name that no input's dimension has.
    """
    known = {name for value in graph.input for name, _ in _open(value)}
    for name in sizes:
        if name not in known:
            raise InputError(f"no input of the model has a dimension {name!r}", hint=_hint(name, known))
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            for name, dimension in _open(value):
                if name in sizes:
                    dimension.dim_value = sizes[name]


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if not names:
        return "every size is fixed"
    near = get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"the open ones are: {', '.join(names)}"


def _open(value: Any) -> Iterator[tuple[str, Any]]:
    """The dimensions of a declared value that have no size, by name or place."""
    held = value.type
    while (kind := held.WhichOneof("value")) in ("sequence_type", "optional_type"):
        held = getattr(held, str(kind)).elem_type
    if kind == "tensor_type":
        for place, dimension in enumerate(held.tensor_type.shape.dim):
            if not dimension.HasField("dim_value"):
                yield dimension.dim_param or f"{value.name}[{place}]", dimension
            elif dimension.dim_value < 0:  # how some exporters write an open size
                yield f"{value.name}[{place}]", dimension

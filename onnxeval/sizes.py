"""The sizes that a model leaves open, by name, and sizes put in their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onnxeval.errors import InputError
from onnxeval.graph import constants_of
from onnxeval.tensors import UNKNOWN_SIZES


def open_sizes(graph: Any) -> dict[str, list[str]]:
    """The dimensions of a graph's inputs that have no size, with the inputs that have them.

    A dimension without a name is called by its place: ``x[0]``. Inputs with an initializer are left out.
    """
    given = set(constants_of(graph))
    found: dict[str, list[str]] = {}
    for value in graph.input:
        if value.name not in given:
            for _, name, _ in _open(value):
                readers = found.setdefault(name, [])
                if value.name not in readers:
                    readers.append(value.name)
    return found


def leading_sizes(graph: Any) -> set[str]:
    """Those of open dimensions that are the first of an input: of batches, most often."""
    return {name for value in graph.input for place, name, _ in _open(value) if place == 0}


def check_names(graph: Any, names: Iterable[str]) -> None:
    """Raise InputError for a name that no dimension of an input has."""
    known = {name for value in graph.input for _, name, _ in _open(value)}
    for name in names:
        if name not in known:
            raise InputError(f"no input of the model has a dimension {name!r}", hint=_hint(name, known))


def bind_sizes(graph: Any, sizes: Mapping[str, int]) -> None:
    """Declare these sizes in a graph, wherever their names stand."""
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            for _, name, dimension in _open(value):
                if name in sizes:
                    dimension.dim_value = sizes[name]


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if not names:
        return "every size is fixed"
    from difflib import get_close_matches

    near = get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"the open ones are: {', '.join(names)}"


def _open(value: Any) -> Iterator[tuple[int, str, Any]]:
    """The dimensions of a declared value that have no size: place, name, and the dimension."""
    held = value.type
    while (kind := held.WhichOneof("value")) in ("sequence_type", "optional_type"):
        held = getattr(held, str(kind)).elem_type
    if kind == "tensor_type":
        for place, dimension in enumerate(held.tensor_type.shape.dim):
            if not dimension.HasField("dim_value") or dimension.dim_value < 0:  # how some exporters write an open size
                name = "" if dimension.dim_param in UNKNOWN_SIZES else dimension.dim_param
                yield place, name or f"{value.name}[{place}]", dimension

"""The type of the parameter ``neighbours``, which the compiler supplies to kernels that name it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from onnxeval.dtypes import Tensor


class _Node(Protocol):
    domain: str
    op_type: str

    @property
    def input(self) -> Sequence[str]: ...


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nodes of the operator's domain in the model's graph: operators, and inputs that are initializers.

    For what no single node tells. An input that is no initializer is None.
    """

    nodes: tuple[tuple[str, tuple[Tensor | None, ...]], ...]


def neighbours_of(
    nodes: Iterable[_Node], constants: Callable[[Collection[str]], Mapping[str, Tensor]], domain: str
) -> Neighbours:
    """The nodes of a domain; ``constants`` reads those of the names it is given that have a value."""
    there = [node for node in nodes if node.domain == domain]
    values = constants({name for node in there for name in node.input})
    return Neighbours(tuple((node.op_type, tuple(values.get(name) for name in node.input)) for node in there))

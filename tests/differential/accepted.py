"""Where onnxruntime differs from the standard's text, or the text leaves a choice: what, when, and why.

Each entry's ``heading`` is one of docs/differences.md, which says more.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from differential.cases import Node


@dataclass(frozen=True)
class Accepted:
    """A difference of these operators on nodes for which ``when`` holds.

    Where ``avoid`` is set onnxruntime is not asked at all: it does not survive the node.
    """

    heading: str
    op_types: tuple[str, ...]
    when: Callable[[Node], bool]
    avoid: bool = False

    def covers(self, node: Node) -> bool:
        return node.op_type in self.op_types and self.when(node)


ACCEPTED: list[Accepted] = []


def accept(
    heading: str, *op_types: str, avoid: bool = False
) -> Callable[[Callable[[Node], bool]], Callable[[Node], bool]]:
    """Register a predicate of nodes for which the results of these operators may differ."""

    def register(when: Callable[[Node], bool]) -> Callable[[Node], bool]:
        ACCEPTED.append(Accepted(heading, op_types, when, avoid))
        return when

    return register


def load() -> None:
    """Import the files that fill the table."""
    for path in sorted(Path(__file__).parent.glob("accepted_*.py")):
        importlib.import_module(f"differential.{path.stem}")

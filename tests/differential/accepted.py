"""Where onnxruntime differs from the standard's text, or the text leaves a choice: what, when, and why.

Each entry's heading is one of docs/differences.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from differential.cases import Node


@dataclass(frozen=True)
class Accepted:
    """A difference of these operators on nodes for which ``when`` holds.

    Where ``avoid`` is set onnxruntime is not asked at all: it does not survive the node.
    """

    op_types: tuple[str, ...]
    when: Callable[[Node], bool]
    reason: str
    avoid: bool = False

    def covers(self, node: Node) -> bool:
        return node.op_type in self.op_types and self.when(node)


ACCEPTED: list[Accepted] = []

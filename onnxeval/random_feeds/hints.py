"""What operators want of their inputs, by operator: a table of functions from a node to wishes by place.

A hint is there where elements are positions, sizes, counts or arguments of a partial function. Inputs without a hint
take whatever their type allows. Where hints need a shape that is not known, they ask for what always works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from onnxeval.checks.recording import Record
from onnxeval.errors import OnnxEvalError
from onnxeval.random_feeds import hints_contrib, hints_ml, hints_nn, hints_numbers, hints_shapes
from onnxeval.random_feeds.looking import Looked
from onnxeval.random_feeds.wishes import Wish

Hint: TypeAlias = Callable[[Looked], Mapping[int, Wish]]

#: (domain, operator) -> its hint.
HINTS: dict[tuple[str, str], Hint] = {
    **hints_shapes.HINTS,
    **hints_numbers.HINTS,
    **hints_nn.HINTS,
    **hints_ml.HINTS,
    **hints_contrib.HINTS,
}


def hints_of(record: Record) -> Mapping[int, Wish]:
    """What a node wants of its inputs, by their places."""
    hint = HINTS.get((record.node.domain, record.node.op_type))
    if hint is None:
        return {}
    try:
        return hint(Looked(record))
    except (ArithmeticError, IndexError, TypeError, ValueError, OnnxEvalError):
        return {}  # an attribute or a shape that no model should have: the run will tell

"""Wishes carried from the nodes back to the graph's inputs, through sub-graphs and functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxeval.checks.recording import Record, Recorded
from onnxeval.checks.views import Node, Scope
from onnxeval.random_feeds.carriers import carried
from onnxeval.random_feeds.hints import hints_of
from onnxeval.random_feeds.wishes import ANY, Wish


class _Wishes(dict[str, Wish]):
    """What is wanted of the values of one scope; what it does not make belongs to the scope around it."""

    def __init__(self, scope: Scope, outer: _Wishes | None = None) -> None:
        super().__init__()
        self._scope = scope
        self._outer = outer

    def add(self, name: str, wish: Wish) -> None:
        if name in self._scope.makers or self._outer is None:
            self[name] = self.get(name, ANY) & wish
        else:
            self._outer.add(name, wish)


def wishes_for(recorded: Recorded) -> dict[str, Wish]:
    """What the model wants of each value of its main graph."""
    wishes = _Wishes(recorded.model.graph)
    _walk(recorded.records, wishes)
    return wishes


def _walk(records: Sequence[Record], wishes: _Wishes) -> None:
    """From the last node to the first: when a node's turn comes, all is known of what is wanted of its outputs."""
    for record in reversed(records):
        node = record.node
        wanted = [wishes.get(name, ANY) for name in node.outputs]
        for inner, inputs, outputs in _inside(record):
            within = _Wishes(inner, wishes if inner in node.subs else None)
            for name, place in zip(inner.outputs, outputs, strict=False):
                if place is not None and 0 <= place < len(wanted):
                    within.add(name, wanted[place])
            _walk(record.within(inner), within)
            for name, place in zip(inner.inputs, inputs, strict=False):
                if place is not None and place < len(node.inputs):
                    wishes.add(node.inputs[place], within.get(name, ANY))
        hints = hints_of(record)
        for place, name in enumerate(node.inputs):
            if name:
                wishes.add(name, hints.get(place, ANY))
                wishes.add(name, carried(record, place, wanted))


def _inside(record: Record) -> Iterator[tuple[Scope, Sequence[int | None], Sequence[int | None]]]:
    """The scopes in a node: for each of its inputs and outputs the place of the node's that it stands for."""
    node = record.node
    for sub in node.subs:
        yield sub, _places(node, len(sub.inputs), inputs=True), _places(node, len(sub.outputs), inputs=False)
    if (function := node.called) is not None:
        yield function.scope, range(len(function.scope.inputs)), range(len(function.scope.outputs))


def _places(node: Node, count: int, *, inputs: bool) -> Sequence[int | None]:
    if node.op_type == "Loop":  # it counts its trips itself, and keeps the condition to itself
        return [None, *range(1, count)] if inputs else [None, *range(count - 1)]
    return range(count)

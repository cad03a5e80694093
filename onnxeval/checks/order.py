"""Rules on the order of a graph's nodes: each after those whose values it reads."""

from __future__ import annotations

from collections.abc import Iterator

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Scope
from onnxeval.graph import find_cycle


@rule("graph/order", "error", Scope)
def order(scope: Scope) -> Faults:
    """A node reads what only a later node makes.

    Why: the standard wants nodes in an order they can run in; many tools refuse others, or go wrong. (onnxeval itself
    runs them in an order that works.)

    Mend: sort the nodes, each after those whose values it reads; `--fix` does.

    Example:
        g (float[2] x) => (float[2] y) { y = Neg(h)  h = Abs(x) }

    Instead:
        g (float[2] x) => (float[2] y) { h = Abs(x)  y = Neg(h) }
    """
    if scope not in scope.model.late_reads:
        return
    loop_of = {place: number for number, loop in enumerate(_loops(scope)) for place in loop}
    for (node, place, name), reader, maker in scope.model.late_reads[scope]:
        if reader not in loop_of or loop_of[reader] != loop_of.get(maker):
            yield Fault(
                node.input_where(place),
                f'the value "{name}" is made later, by {scope.nodes[maker].where}',
                "sort the nodes, each after those whose values it reads",
            )


@rule("graph/cycle", "error", Scope)
def cycle(scope: Scope) -> Faults:
    """Nodes need one another's values in a circle.

    Why: none of them can run first. A graph has no cycles; what repeats is a Loop or a Scan.

    Mend: find the input that was wired wrongly; the message walks the circle.

    Example:
        g (float[2] x) => (float[2] y) { a = Add(x, b)  b = Neg(a)  y = Abs(b) }

    Instead:
        g (float[2] x) => (float[2] y) { a = Add(x, x)  b = Neg(a)  y = Abs(b) }
    """
    if scope not in scope.model.late_reads:
        return
    needs = _needs(scope)
    for loop in _loops(scope):
        path = find_cycle(needs, loop)
        labels = " -> ".join(scope.nodes[place].label for place in [*path, path[0]])
        yield Fault(scope.nodes[min(loop)].where, f"the nodes need one another: {labels}")


def _needs(scope: Scope) -> list[set[int]]:
    """The places of the nodes whose values each node reads, in its sub-graphs too."""
    makers = scope.makers
    return [
        {makers[name] for name in (*node.inputs, *(n for sub in node.subs for n in sub.captures)) if name in makers}
        - {-1}
        for node in scope.nodes
    ]


def _loops(scope: Scope) -> list[set[int]]:
    """Sets of nodes that all depend on one another: the strongly connected components, by Tarjan's algorithm."""
    needs = _needs(scope)
    loops: list[set[int]] = []
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    stacked: set[int] = set()
    for root in range(len(needs)):
        if root in number:
            continue
        trail: list[tuple[int, Iterator[int]]] = [(root, iter(needs[root]))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        stacked.add(root)
        while trail:
            place, rest = trail[-1]
            for maker in rest:
                if maker not in number:
                    number[maker] = lowest[maker] = len(number)
                    stack.append(maker)
                    stacked.add(maker)
                    trail.append((maker, iter(needs[maker])))
                    break
                if maker in stacked:
                    lowest[place] = min(lowest[place], number[maker])
            else:
                trail.pop()
                if trail:
                    lowest[trail[-1][0]] = min(lowest[trail[-1][0]], lowest[place])
                if lowest[place] == number[place]:
                    loop = {stack.pop()}
                    while place not in loop:
                        loop.add(stack.pop())
                    stacked -= loop
                    if len(loop) > 1 or place in needs[place]:
                        loops.append(loop)
    return loops

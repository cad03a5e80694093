"""Questions about a graph that its structure alone answers: who makes what, in which order, what is captured."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from onnxeval.errors import ModelError
from onnxeval.schema import canonical_domain

# It takes onnx long to say what they are
_GRAPH, _GRAPHS = AttributeProto.GRAPH, AttributeProto.GRAPHS


class Order(NamedTuple):
    """The nodes of one graph in an order that can be run.

    ``nodes`` are places in the file. By place in the file, ``inputs`` and ``outputs`` are what each node lists, and
    ``reads`` its inputs and what its sub-graphs capture. ``captures`` are the names the whole graph reads from outside
    itself. ``bodies`` are the orders of the sub-graphs that nodes have as attributes, by place and attribute.
    """

    nodes: Sequence[int]
    inputs: Sequence[tuple[str, ...]]
    outputs: Sequence[tuple[str, ...]]
    reads: Sequence[tuple[str, ...]]
    captures: tuple[str, ...]
    bodies: Mapping[tuple[int, str], Order]


def import_versions(imports: Iterable[Any], ir_version: int | None = None) -> dict[str, int]:
    """{domain: version} of opset imports. Raises ModelError where one domain has two versions.

    Files older than IR version 3 have no imports and mean version 1 of the standard's operators.
    """
    versions: dict[str, int] = {}
    for entry in imports:
        domain = canonical_domain(entry.domain)
        if versions.setdefault(domain, entry.version) != entry.version:
            raise ModelError(
                f'domain "{domain or "ai.onnx"}" is imported at version {versions[domain]} and at {entry.version}'
            )
    if not versions and ir_version is not None and ir_version < 3:
        versions[""] = 1
    return versions


def label_of(node: NodeProto, place: int) -> str:
    """What messages call a node: its name and operator, or its operator and place where it has no name."""
    return f"{node.name} ({node.op_type})" if node.name else f"node {place} ({node.op_type})"


def constants_of(graph: GraphProto) -> Iterator[str]:
    """The names of a graph's initializers, sparse ones included."""
    for tensor in graph.initializer:
        yield tensor.name
    for sparse in graph.sparse_initializer:
        yield sparse.values.name


def order_graph(graph: GraphProto) -> Order:
    """A graph's nodes in dependency order, the file's own order wherever that works.

    Raises ModelError for a name that is defined twice and for a cycle, by the names of its nodes.
    """
    inputs = [value.name for value in graph.input]
    _refuse_doubles("graph input", inputs)
    initializers = list(constants_of(graph))
    _refuse_doubles("initializer", initializers)
    outputs = [value.name for value in graph.output]
    return _order(graph.node, {*inputs, *initializers}, outputs)


def order_function(function: FunctionProto, outputs: Iterable[str]) -> Order:
    """The order of a function's nodes; it may capture nothing, and must make ``outputs`` ("" is none of them).

    Raises ModelError as `order_graph` does.
    """
    _refuse_doubles("function input", function.input)
    order = _order(function.node, set(function.input), outputs)
    if order.captures:
        raise ModelError(undefined_capture(function.node, order, function.input))
    return order


def _refuse_doubles(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise ModelError(f'{what} "{name}" is listed twice')
        seen.add(name)


def _order(nodes: Sequence[NodeProto], known: set[str], outputs: Iterable[str]) -> Order:
    # Names are taken out of the messages once: each time they are new strings
    made = [tuple(node.output) for node in nodes]
    producers = _producers(nodes, made, known)
    inputs = [tuple(node.input) for node in nodes]
    bodies: dict[tuple[int, str], Order] = {}
    reads = [_reads(node, place, names, bodies) for place, (node, names) in enumerate(zip(nodes, inputs, strict=True))]
    done = set(known)
    in_file_order = True
    free: dict[str, None] = {}
    for outputs_of_node, names in zip(made, reads, strict=True):
        for name in names:
            if name not in done:
                if name in producers:
                    in_file_order = False
                else:
                    free[name] = None
        done.update(outputs_of_node)
    for name in outputs:
        if name and name not in producers and name not in known:
            free[name] = None
    sequence = range(len(nodes)) if in_file_order else _sorted(nodes, reads, producers)
    return Order(sequence, inputs, made, reads, tuple(free), bodies)


def _producers(nodes: Sequence[NodeProto], made: Sequence[tuple[str, ...]], known: set[str]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for place, names in enumerate(made):
        for name in names:
            if not name:
                continue
            if name in producers or name in known:
                other = label_of(nodes[producers[name]], producers[name]) if name in producers else "the graph's inputs"
                raise ModelError(f'value "{name}" is defined twice: by {other} and by {label_of(nodes[place], place)}')
            producers[name] = place
    return producers


def _reads(
    node: NodeProto, place: int, inputs: tuple[str, ...], bodies: dict[tuple[int, str], Order]
) -> tuple[str, ...]:
    names = inputs if all(inputs) else tuple(filter(None, inputs))
    for attribute in node.attribute:
        if attribute.type == _GRAPH:
            bodies[place, attribute.name] = order_graph(attribute.g)
            names += bodies[place, attribute.name].captures
        elif attribute.type == _GRAPHS:
            names += tuple([name for graph in attribute.graphs for name in order_graph(graph).captures])
    return names


def _sorted(nodes: Sequence[NodeProto], reads: Sequence[tuple[str, ...]], producers: dict[str, int]) -> list[int]:
    """Kahn's algorithm; among nodes that could run, the first in the file goes first."""
    needs = [{producers[name] for name in names if name in producers} for names in reads]
    readers: list[list[int]] = [[] for _ in nodes]
    for place, makers in enumerate(needs):
        for maker in makers:
            readers[maker].append(place)
    waiting = [len(makers) for makers in needs]
    ready = [place for place, count in enumerate(waiting) if not count]
    sequence: list[int] = []
    while ready:
        place = heapq.heappop(ready)
        sequence.append(place)
        for reader in readers[place]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(sequence) < len(nodes):
        cycle = find_cycle(needs, {place for place, count in enumerate(waiting) if count})
        raise ModelError("the graph has a cycle: " + " -> ".join(label_of(nodes[p], p) for p in [*cycle, cycle[0]]))
    return sequence


def needed_nodes(order: Order, outputs: Iterable[str], known: Iterable[str]) -> tuple[list[int], set[str]]:
    """The places of nodes that make ``outputs`` from what is ``known``, in order, and every name read on the way."""
    wanted, given = set(outputs), {"", *known}
    kept = []
    for place in reversed(order.nodes):
        if [name for name in order.outputs[place] if name in wanted and name not in given]:
            kept.append(place)
            wanted.update(order.reads[place])
    return kept[::-1], wanted


def check_independent(nodes: Sequence[NodeProto], order: Order, names: Sequence[str], known: Iterable[str]) -> None:
    """Raise ModelError unless each name is that of a value, and no value is computed from another one of them.

    ``known`` are the values that no node makes.
    """
    values = known_names(nodes, [*known, *order.captures])
    for name in names:
        if name not in values:
            raise ModelError(undefined_message(name, values))
        others = [other for other in names if other != name]
        _, read = needed_nodes(order, [name], others)
        for other in others:
            if other in read:
                raise ModelError(f'the value "{name}" is computed from "{other}", it is not independent of it')


def find_cycle(needs: Sequence[Iterable[int]], stuck: set[int]) -> list[int]:
    """One cycle among places that each need another stuck one, in the order the data flows."""
    place = min(stuck)
    trail: dict[int, None] = {}
    while place not in trail:
        trail[place] = None
        place = min(maker for maker in needs[place] if maker in stuck)
    path = list(trail)
    return path[path.index(place) :][::-1]


def known_names(nodes: Iterable[NodeProto], others: Iterable[str]) -> list[str]:
    """Every name that nodes make, with those of ``others``."""
    return [*others, *(name for node in nodes for name in node.output if name)]


def undefined_capture(nodes: Sequence[NodeProto], order: Order, others: Iterable[str]) -> str:
    """What to say of the first captured name where nothing is around to capture from, and which node reads it.

    ``others`` are the values that no node makes.
    """
    name = order.captures[0]
    message = undefined_message(name, known_names(nodes, others))
    readers = (label_of(nodes[place], place) for place, names in enumerate(order.reads) if name in names)
    return next((f"{reader}: {message}" for reader in readers), message)


def undefined_message(name: str, known: Iterable[str]) -> str:
    """What to say of a name that nothing defines."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    return f'value "{name}" is never defined' + (f' (did you mean "{near[0]}"?)' if near else "")

"""Rules on graphs and function bodies: names, their order, inputs and outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from onnx import TensorProto, TypeProto, ValueInfoProto

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.suggest import closest
from onnxeval.checks.views import Scope
from onnxeval.graph import find_cycle
from onnxeval.values import shape_text

#: Since this IR version an initializer need not be a graph input.
_IR_WITH_CONSTANTS = 4
#: Suggestions are looked for where no more names than this are wrong.
_MOST_HINTS = 20


@rule("graph/unnamed", "error", Scope)
def unnamed(scope: Scope) -> Faults:
    """A graph has no name, which the standard asks for."""
    if scope.graph is not None and not scope.graph.name and (scope.parent or scope.model.proto.HasField("graph")):
        yield Fault(scope.where, "the graph has no name")


@rule("graph/undefined-name", "error", Scope)
def undefined_name(scope: Scope) -> Faults:
    """A node reads a name that nothing makes: no node, input or initializer. A function's body sees its inputs only."""
    undefined = [read for read in scope.unmade.values() if scope.maker_of(read.name) is None]
    for node, place, name in undefined:
        hint = closest(name, scope.known_names()) if len(undefined) <= _MOST_HINTS else ""
        where = "in the function" if scope.function else "in the model"
        yield Fault(node.input_where(place), f'nothing {where} makes the value "{name}"', hint)


@rule("graph/order", "error", Scope)
def order(scope: Scope) -> Faults:
    """A node reads what only a later node makes; the standard wants nodes in an order they can run in."""
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
    """Nodes need one another's values in a circle: none of them can run first."""
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


@rule("graph/redefined-name", "error", Scope)
def redefined_name(scope: Scope) -> Faults:
    """A node's output takes a name that an input, an initializer or another node has: names are given once (SSA)."""
    for node, place, name, by in scope.redefined:
        yield Fault(node.output_where(place), f'the value "{name}" is already made by {by}')


@rule("graph/shadowed-name", "warning", Scope)
def shadowed_name(scope: Scope) -> Faults:
    """An input or initializer of a sub-graph hides a value of the graph around it, which is easily misread."""
    if scope.parent is None or scope.owner is None:
        return
    for name in dict.fromkeys((*scope.inputs, *scope.constants)):
        found = scope.parent.maker_of(name)
        if found is not None and (found[0] is not scope.parent or found[1] < scope.owner.place):
            yield Fault(scope.where, f'"{name}" hides the value "{name}" of {found[0].where}')


@rule("graph/doubled-input", "error", Scope)
def doubled_input(scope: Scope) -> Faults:
    """Two inputs of a graph or function have one name."""
    yield from doubled(scope, "input", scope.inputs)


@rule("graph/doubled-initializer", "error", Scope)
def doubled_initializer(scope: Scope) -> Faults:
    """Two initializers, sparse ones included, have one name: which of them counts is open."""
    yield from doubled(scope, "initializer", scope.constants)


@rule("graph/doubled-output", "warning", Scope)
def doubled_output(scope: Scope) -> Faults:
    """One value is listed as output of a graph twice: who asks for outputs by name gets it once."""
    if scope.graph is not None:
        yield from doubled(scope, "output", scope.outputs)


def doubled(scope: Scope, what: str, names: list[str]) -> Faults:
    """A fault for each name that stands in a list more than once."""
    if len(set(names)) == len(names):
        return
    for name, count in Counter(names).items():
        if count > 1 and name:
            yield Fault(scope.where, f'the {what} "{name}" is listed {count} times')


@rule("graph/unnamed-value", "error", Scope)
def unnamed_value(scope: Scope) -> Faults:
    """An input, output or initializer has no name: nothing can refer to it."""
    for what, names in (("input", scope.inputs), ("initializer", scope.constants), ("output", scope.outputs)):
        if "" in names:
            yield Fault(f"{scope.where}/{what}[{names.index('')}]", f"the {what} has no name")


@rule("graph/unmade-output", "error", Scope)
def unmade_output(scope: Scope) -> Faults:
    """An output is made by no node of its graph and is neither input nor initializer of it."""
    unmade = [(place, name) for place, name in enumerate(scope.outputs) if name and name not in scope.makers]
    for place, name in unmade:
        hint = closest(name, scope.makers) if len(unmade) <= _MOST_HINTS else ""
        if scope.parent is not None and scope.parent.maker_of(name) is not None:
            hint = "it belongs to the graph around this one: pass it through an Identity"
        yield Fault(f'{scope.where}/output[{place}] "{name}"', f'nothing here makes the value "{name}"', hint)


@rule("graph/unreadable-name", "error", Scope)
def unreadable_name(scope: Scope) -> Faults:
    """A name is not UTF-8 text, so that no tool can show it or write it again."""
    names: list[Any] = [*scope.makers, *scope.captures, *scope.outputs]
    for node in scope.nodes:
        names += (node.op_type, node.domain, node.proto.name)
    for name in {name for name in names if type(name) is bytes}:
        yield Fault(scope.where, f"the name {name!r} is not UTF-8")


@rule("graph/initializer-not-input", "error", Scope)
def initializer_not_input(scope: Scope) -> Faults:
    """An initializer is not among the graph's inputs, which IR versions before 4 ask for."""
    if 0 < scope.model.proto.ir_version < _IR_WITH_CONSTANTS:
        for name in set(scope.constants).difference(scope.inputs):
            yield Fault(
                scope.where,
                f'the initializer "{name}" is no graph input, which IR version {scope.model.proto.ir_version} asks for',
                f"set ir_version to {_IR_WITH_CONSTANTS} or more",
            )


@dataclass(frozen=True, slots=True)
class Declared:
    """An input, output or other value of a graph (``role``), with what is declared of it."""

    where: str
    role: str
    proto: ValueInfoProto
    scope: Scope

    @property
    def must_be_complete(self) -> bool:
        """Whether the main graph's user needs it; values of sub-graphs get their types from the node around them."""
        return self.scope.parent is None and self.role != "value_info"


def declared_in(scope: Scope) -> Iterable[Declared]:
    """The values of a graph that have declarations; a function declares no types."""
    if (graph := scope.graph) is not None:
        for role, values in (("input", graph.input), ("output", graph.output), ("value_info", graph.value_info)):
            for place, value in enumerate(values):
                yield Declared(f'{scope.where}/{role}[{place}] "{value.name}"', role, value, scope)


#: The fields that a type must fill, by its kind; shapes are a rule of their own.
_MUST_HAVE = {
    "tensor_type": ("elem_type",),
    "sparse_tensor_type": ("elem_type",),
    "sequence_type": ("elem_type",),
    "optional_type": ("elem_type",),
    "map_type": ("key_type", "value_type"),
    "opaque_type": ("name",),
}


@rule("graph/no-type", "error", Declared)
def no_type(value: Declared) -> Faults:
    """An input or output of the main graph declares no type: who feeds or reads it cannot know what it is."""
    if value.must_be_complete:
        kind = value.proto.type.WhichOneof("value")
        if kind is None:
            yield Fault(value.where, "no type is declared")
            return
        for field in _MUST_HAVE[kind]:
            if not getattr(value.proto.type, kind).HasField(field):
                yield Fault(value.where, f"the declared {kind} has no {field}")
            elif value.role == "input" and TensorProto.UNDEFINED in _element_types(value.proto.type):
                yield Fault(value.where, "an undefined element type is declared")


@rule("graph/no-shape", "error", Declared)
def no_shape(value: Declared) -> Faults:
    """A tensor input or output of the main graph declares no shape, not even one of open dimensions."""
    if value.must_be_complete:
        kind = value.proto.type.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type") and not getattr(value.proto.type, kind).HasField("shape"):
            yield Fault(value.where, "no shape is declared", "name the dimensions whose sizes are open")


@rule("graph/unknown-element-type", "error", Declared)
def unknown_element_type(value: Declared) -> Faults:
    """A declared type has an element type that the standard does not know."""
    for number in _element_types(value.proto.type):
        if number not in TensorProto.DataType.values():
            yield Fault(value.where, f"element type {number} is unknown")


@rule("graph/negative-size", "warning", Declared)
def negative_size(value: Declared) -> Faults:
    """A declared dimension is negative. It is taken for an open one, which the standard leaves unset or names."""
    for dims in _shapes(value.proto.type):
        if any(dim.dim_value < 0 for dim in dims):
            sizes = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims]
            yield Fault(
                value.where, f"the shape {shape_text(sizes)} is declared", "name the dimension, or leave it out"
            )


def _shapes(declared: TypeProto) -> Iterator[Any]:
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(declared, kind).shape.dim
    elif kind in ("sequence_type", "optional_type"):
        yield from _shapes(getattr(declared, kind).elem_type)
    elif kind == "map_type":
        yield from _shapes(declared.map_type.value_type)


def _element_types(declared: TypeProto) -> Iterator[int]:
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(declared, kind).elem_type
    elif kind in ("sequence_type", "optional_type"):
        yield from _element_types(getattr(declared, kind).elem_type)
    elif kind == "map_type":
        yield declared.map_type.key_type
        yield from _element_types(declared.map_type.value_type)

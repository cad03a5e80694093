"""Rules on what serves nothing: nodes, initializers and inputs that nobody reads, functions that nobody calls."""

from __future__ import annotations

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Node, Scope
from onnxeval.checks.whole import Function


def needed_places(scope: Scope) -> set[int]:
    """The places of the nodes that an output, or another reader outside, needs."""
    needed: set[int] = set()
    todo = [place for name in scope.read_from_outside if (place := scope.makers.get(name, -1)) >= 0]
    todo += [node.place for node in scope.nodes if not node.outputs or not _is_known(node)]
    while todo:
        place = todo.pop()
        if place not in needed:
            needed.add(place)
            todo += [maker for name in scope.nodes[place].reads if (maker := scope.makers.get(name, -1)) >= 0]
    return needed


def _is_known(node: Node) -> bool:
    """Whether a node is known to do nothing but make its outputs."""
    return node.schema is not None or node.function is not None or node.kernel is not None


@rule("graph/unused-node", "warning", Scope)
def unused_node(scope: Scope) -> Faults:
    """Nobody reads what a node makes, and it is no output.

    Why: the node costs time and memory in runtimes that do not notice, and often stands where another should read it.

    Mend: remove the node, or let what was meant read it; `--fix` removes it, and what only it needs.

    Example:
        g (float[2] x) => (float[2] y) { h = Abs(x)  y = Neg(x) }

    Instead:
        g (float[2] x) => (float[2] y) { h = Abs(x)  y = Neg(h) }
    """
    reads = scope.reads
    ends = [node for node in scope.nodes if node.outputs and reads.isdisjoint(filter(None, node.outputs))]
    if not ends:
        return
    others = len(scope.nodes) - len(needed_places(scope)) - len(ends)
    what = "1 more node here serves" if others == 1 else f"{others} more nodes here serve"
    hint = f"{what} no output" if others > 0 else ""
    for node in filter(_is_known, ends):
        names = ", ".join(f'"{name}"' for name in node.outputs if name)
        yield Fault(node.where, f"nobody reads {names or 'what it makes'}", hint)


@rule("graph/unused-initializer", "warning", Scope)
def unused_initializer(scope: Scope) -> Faults:
    """Nobody reads an initializer.

    Why: it takes room in the file and in memory, and often stands where another name should.

    Mend: remove it, or let what was meant read it; `--fix` removes it.

    Example:
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Neg(x) }

    Instead:
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }
    """
    unread = set(scope.constants).difference(scope.reads)
    dense = len(scope.graph.initializer) if scope.graph is not None else 0
    for place, name in enumerate(scope.constants if unread else ()):
        if name in unread and name:
            unread.remove(name)
            at = f"initializer[{place}]" if place < dense else f"sparse_initializer[{place - dense}]"
            yield Fault(f'{scope.where}/{at} "{name}"', "nobody reads it")


@rule("graph/unused-input", "warning", Scope)
def unused_input(scope: Scope) -> Faults:
    """Nobody reads an input of the main graph. Those of sub-graphs are given by the node around and may be ignored.

    Why: every caller has to feed it for nothing; often something that should read it was lost on the way.

    Mend: remove the input, which changes how the model is called, so `--fix` does not.

    Example:
        g (float[2] x, float[2] mask) => (float[2] y) { y = Neg(x) }

    Instead:
        g (float[2] x, float[2] mask) => (float[2] y) { y = Mul(x, mask) }
    """
    if scope is not scope.model.graph:
        return
    unread = set(scope.inputs).difference(scope.constants, scope.reads)
    for place, name in enumerate(scope.inputs):
        if name in unread and name:
            yield Fault(f'{scope.where}/input[{place}] "{name}"', "nobody reads it")


@rule("function/unused", "warning", Function)
def unused_function(function: Function) -> Faults:
    """No node calls a function of the model.

    Why: it takes room, and every check and conversion looks at it for nothing.

    Mend: remove it, or correct the name of the call; `--fix` removes it.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.double(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }
    """
    imports, (domain, name, _) = function.model.imports, function.key
    if not name or function.model.functions_by_key[function.key] is not function:
        return  # other rules tell why nothing can call it
    if imports.schema(domain, name) or imports.kernel(domain, name):
        return
    if function not in function.model.called:
        yield Fault(function.where, "no node calls it")

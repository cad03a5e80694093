"""Rules on the names of a graph or function body: who makes them, who reads them, which are taken twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.suggest import closest
from onnxeval.checks.views import Scope

#: Since this IR version an initializer need not be a graph input.
_IR_WITH_CONSTANTS = 4
#: Suggestions are looked for where no more names than this are wrong.
_MOST_HINTS = 20


@rule("graph/unnamed", "error", Scope)
def unnamed(scope: Scope) -> Faults:
    """A graph has no name.

    Why: the standard asks for one; other checkers refuse the model for it.

    Mend: give the graph any name.

    Example:
        >>> model.graph.ClearField("name")
    """
    if scope.graph is not None and not scope.graph.name and (scope.parent or scope.model.proto.HasField("graph")):
        yield Fault(scope.where, "the graph has no name")


@rule("graph/undefined-name", "error", Scope)
def undefined_name(scope: Scope) -> Faults:
    """A node reads a name that nothing makes: no node, input or initializer, here or in a graph around.

    Why: the node cannot run. The body of a function sees nothing but the function's own inputs.

    Mend: correct the name, or add what makes it. A node that was removed leaves its readers behind.

    Example:
        g (float[2] x) => (float[2] y) { h = Abs(x)  y = Add(h, hh) }

    Instead:
        g (float[2] x) => (float[2] y) { h = Abs(x)  y = Add(h, h) }
    """
    undefined = [read for read in scope.unmade.values() if scope.maker_of(read.name) is None]
    for node, place, name in undefined:
        hint = closest(name, scope.known_names()) if len(undefined) <= _MOST_HINTS else ""
        where = "in the function" if scope.function else "in the model"
        yield Fault(node.input_where(place), f'nothing {where} makes the value "{name}"', hint)


@rule("graph/redefined-name", "error", Scope)
def redefined_name(scope: Scope) -> Faults:
    """A node's output takes a name that an input, an initializer or another node already has.

    Why: each name is given once (single assignment); which of the values a reader gets would be open.

    Mend: rename one of the outputs, and what is to read it.

    Example:
        g (float[2] x) => (float[2] y) { y = Neg(x)  y = Abs(x) }

    Instead:
        g (float[2] x) => (float[2] y) { h = Neg(x)  y = Abs(h) }
    """
    for node, place, name, by in scope.redefined:
        yield Fault(node.output_where(place), f'the value "{name}" is already made by {by}')


@rule("graph/shadowed-name", "warning", Scope)
def shadowed_name(scope: Scope) -> Faults:
    """An input or initializer of a sub-graph hides a value of the graph around it.

    Why: it is easily misread, and some runtimes take the wrong value.

    Mend: rename the inner value.

    Example:
        g (int64 n, bool c, float[2] x) => (float[2] y) {
            y = Loop(n, c, x) <body = b (int64 i, bool k, float[2] x) => (bool k2, float[2] s) {
                k2 = Identity(k)  s = Neg(x) }>
        }

    Instead:
        g (int64 n, bool c, float[2] x) => (float[2] y) {
            y = Loop(n, c, x) <body = b (int64 i, bool k, float[2] state) => (bool k2, float[2] s) {
                k2 = Identity(k)  s = Neg(state) }>
        }
    """
    if scope.parent is None or scope.owner is None:
        return
    for name in dict.fromkeys((*scope.inputs, *scope.constants)):
        found = scope.parent.maker_of(name)
        if found is not None and (found[0] is not scope.parent or found[1] < scope.owner.place):
            yield Fault(scope.where, f'"{name}" hides the value "{name}" of {found[0].where}')


@rule("graph/doubled-input", "error", Scope)
def doubled_input(scope: Scope) -> Faults:
    """Two inputs of a graph or function have one name.

    Why: what is fed to one of them is lost.

    Mend: rename one of the inputs.

    Example:
        g (float[2] x, float[2] x) => (float[2] y) { y = Neg(x) }

    Instead:
        g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }
    """
    yield from doubled(scope, "input", scope.inputs)


@rule("graph/doubled-initializer", "error", Scope)
def doubled_initializer(scope: Scope) -> Faults:
    """Two initializers, sparse ones included, have one name.

    Why: which of the values counts is open.

    Mend: remove or rename one of them.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> for value in (1.0, 2.0):
        >>>     model.graph.initializer.add(name="w", data_type=1, float_data=[value])

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, float_data=[1.0])
    """
    yield from doubled(scope, "initializer", scope.constants)


@rule("graph/doubled-output", "warning", Scope)
def doubled_output(scope: Scope) -> Faults:
    """One value is listed as output of a graph twice.

    Why: who asks for outputs by name gets it once, and some runtimes refuse the model.

    Mend: remove one, or pass the value through an Identity under another name.

    Example:
        g (float[2] x) => (float[2] y, float[2] y) { y = Neg(x) }

    Instead:
        g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Identity(y) }
    """
    if scope.graph is not None:
        yield from doubled(scope, "output", scope.outputs)


def doubled(scope: Scope, what: str, names: list[str]) -> Faults:
    """A fault for each name that stands in a list more than once."""
    if len(set(names)) == len(names):
        return
    for name, count in Counter(names).items():
        if count > 1 and name:
            yield Fault(scope.where, f'the {what} "{name}" is listed {count} times')


@rule("graph/doubled-node-name", "warning", Scope)
def doubled_node_name(scope: Scope) -> Faults:
    """Two nodes of a graph have one name.

    Why: the standard wants names unique within a graph; profiles, quantisers and messages that call nodes by name mix
    the two up. Nodes without a name are fine.

    Mend: rename all but one of them; `--fix` does.

    Example:
        g (float[2] x) => (float[2] y) { [first] h = Neg(x)  [first] y = Abs(h) }

    Instead:
        g (float[2] x) => (float[2] y) { [first] h = Neg(x)  [second] y = Abs(h) }
    """
    names = scope.node_names
    if len(set(names)) >= len(names) - names.count("") + ("" in names):
        return
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        if name and first.setdefault(name, place) != place:
            yield Fault(scope.nodes[place].where, f'node[{first[name]}] has the name "{name}", too')


@rule("graph/unnamed-value", "error", Scope)
def unnamed_value(scope: Scope) -> Faults:
    """An input, output or initializer has no name.

    Why: nothing can refer to it.

    Mend: name it, or remove it.

    Example:
        >>> model.graph.initializer.add(data_type=1, float_data=[1.0])
    """
    for what, names in (("input", scope.inputs), ("initializer", scope.constants), ("output", scope.outputs)):
        if "" in names:
            yield Fault(f"{scope.where}/{what}[{names.index('')}]", f"the {what} has no name")


@rule("graph/unmade-output", "error", Scope)
def unmade_output(scope: Scope) -> Faults:
    """An output is made by no node of its graph and is neither input nor initializer of it.

    Why: there is nothing to give back. A sub-graph may read the values around it, but must not list them as outputs.

    Mend: correct the name; where the value belongs to the graph around, pass it through an Identity.

    Example:
        g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x) }

    Instead:
        g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }
    """
    unmade = [(place, name) for place, name in enumerate(scope.outputs) if name and name not in scope.makers]
    for place, name in unmade:
        hint = closest(name, scope.makers) if len(unmade) <= _MOST_HINTS else ""
        if scope.parent is not None and scope.parent.maker_of(name) is not None:
            hint = "it belongs to the graph around this one: pass it through an Identity"
        yield Fault(f'{scope.where}/output[{place}] "{name}"', f'nothing here makes the value "{name}"', hint)


@rule("graph/unreadable-name", "error", Scope)
def unreadable_name(scope: Scope) -> Faults:
    r"""A name is not UTF-8 text.

    Why: the file format asks for UTF-8; no tool can show the name, many fail on the file.

    Mend: export the model again, or rename the value with a tool that works on bytes.

    Example:
        g (float[2] x) => (float[2] result) { result = Neg(x) }
        >>> model = ModelProto.FromString(model.SerializeToString().replace(b"result", b"r\xffsult"))
    """
    names: list[Any] = [*scope.makers, *scope.captures, *scope.outputs, *scope.node_names]
    names += {name for node in scope.nodes for name in (node.op_type, node.domain)}
    if bytes not in set(map(type, names)):
        return
    for name in {name for name in names if type(name) is bytes}:
        yield Fault(scope.where, f"the name {name!r} is not UTF-8")


@rule("graph/initializer-not-input", "error", Scope)
def initializer_not_input(scope: Scope) -> Faults:
    """An initializer is not among the graph's inputs, which IR versions before 4 ask for.

    Why: readers of that age look initializers up among the inputs.

    Mend: set `ir_version` to 4 or more; nothing else changes.

    Example:
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }
        >>> model.ir_version = 3
    """
    if 0 < scope.model.proto.ir_version < _IR_WITH_CONSTANTS:
        for name in set(scope.constants).difference(scope.inputs):
            yield Fault(
                scope.where,
                f'the initializer "{name}" is no graph input, which IR version {scope.model.proto.ir_version} asks for',
                f"set ir_version to {_IR_WITH_CONSTANTS} or more",
            )

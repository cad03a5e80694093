"""Rules on the model's own functions and the nodes that call them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from onnxeval.checks.graph import doubled as listed_twice
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.suggest import closest
from onnxeval.checks.views import Function, Model, Node
from onnxeval.schema import STANDARD_DOMAINS

#: Since this IR version a function says its domain.
_IR_WITH_FUNCTIONS = 8


@rule("function/unnamed", "error", Function)
def unnamed(function: Function) -> Faults:
    """A function has no name: no node can call it."""
    if not function.proto.name:
        yield Fault(function.where, "the function has no name")


@rule("function/no-domain", "error", Function)
def no_domain(function: Function) -> Faults:
    """A function does not say its domain."""
    if not function.proto.HasField("domain") and function.model.proto.ir_version >= _IR_WITH_FUNCTIONS:
        yield Fault(function.where, "the function has no domain")


@rule("function/doubled", "error", Function)
def doubled(function: Function) -> Faults:
    """Two functions have one domain, name and overload: which of them is called is open."""
    first = function.model.functions_by_key[function.key]
    if first is not function:
        yield Fault(
            function.where,
            f"functions {first.ordinal} and {function.ordinal} are both {function.label}",
            "rename one, or give it an overload",
        )


@rule("function/doubled-output", "error", Function)
def doubled_output(function: Function) -> Faults:
    """A function lists one value as output twice."""
    yield from listed_twice(function.scope, "output", function.scope.outputs)


@rule("function/doubled-attribute", "error", Function)
def doubled_attribute(function: Function) -> Faults:
    """A function declares an attribute twice."""
    names = (*function.proto.attribute, *(a.name for a in function.proto.attribute_proto))
    for name, count in Counter(names).items():
        if count > 1:
            yield Fault(function.where, f'the attribute "{name}" is declared {count} times')


@rule("function/recursive", "error", Model)
def recursive(model: Model) -> Faults:
    """A function calls itself, directly or through others: calling it would never end."""
    done: set[Function] = set()
    for root in model.functions:
        if root in done:
            continue
        path = [root]
        trail: list[Iterator[tuple[Node, Function]]] = [root.calls()]
        while trail:
            step = next(trail[-1], None)
            if step is None:
                trail.pop()
                done.add(path.pop())
                continue
            node, called = step
            if called in path:
                circle = " -> ".join(f.label for f in (*path[path.index(called) :], called))
                yield Fault(node.where, f"the function calls itself: {circle}")
            elif called not in done:
                path.append(called)
                trail.append(called.calls())


@rule("function/shadows-operator", "warning", Function)
def shadows_operator(function: Function) -> Faults:
    """A function has the name of an operator of the standard, which is what its callers get."""
    domain, name, _ = function.key
    schema = function.model.imports.schema(domain, name)
    if schema is not None:
        yield Fault(function.where, f"{schema.label} is an operator of the standard: the function is never called")


@rule("function/opset-mismatch", "error", Function)
def opset_mismatch(function: Function) -> Faults:
    """An operator means another version in the function than in the model; the standard wants them the same."""
    ours, theirs = function.scope.imports, function.model.imports
    seen: set[tuple[str, str]] = set()
    for scope in function.scope.all_scopes():
        for node in scope.nodes:
            key = (node.domain, node.op_type)
            if key in seen or node.domain not in ours.versions or node.domain not in theirs.versions:
                continue
            seen.add(key)
            here, there = ours.schema(*key), theirs.schema(*key)
            if here is not there:
                versions = " and ".join(s.label if s else f"no {node.op_type}" for s in (here, there))
                opsets = f"opset {ours.versions[node.domain]} here and {theirs.versions[node.domain]} in the model"
                yield Fault(node.where, f"{opsets}: {versions}", "import one version in both")


# Calls


def _called(node: Node) -> Function | None:
    """The function that a node calls: the standard's operators come first."""
    return None if node.schema is not None else node.function


@rule("function/undefined", "warning", Node)
def undefined(node: Node) -> Faults:
    """A node's domain is that of functions of the model, but none has this name; it needs a kernel from elsewhere."""
    if node.domain in STANDARD_DOMAINS or node.function is not None or node.version is None:
        return
    names = [f.proto.name for f in node.scope.model.functions if f.key[0] == node.domain]
    if names:
        message = f'the model has no function "{node.op_type}" in domain "{node.domain}"'
        if node.op_type in names:
            message = f'no function "{node.op_type}" has the overload "{node.proto.overload}"'
        yield Fault(node.where, message, closest(node.op_type, names))


@rule("function/input-count", "error", Node)
def input_count(node: Node) -> Faults:
    """A call passes more inputs than the function has. Fewer are fine: the rest is absent."""
    if (function := _called(node)) is not None and len(node.inputs) > len(function.scope.inputs):
        yield Fault(node.where, f"{function.label} has {len(function.scope.inputs)} inputs, {len(node.inputs)} given")


@rule("function/output-count", "error", Node)
def output_count(node: Node) -> Faults:
    """A call takes more outputs than the function has."""
    if (function := _called(node)) is not None and len(node.outputs) > len(function.scope.outputs):
        yield Fault(
            node.where, f"{function.label} has {len(function.scope.outputs)} outputs, {len(node.outputs)} taken"
        )


@rule("function/unknown-attribute", "error", Node)
def unknown_attribute(node: Node) -> Faults:
    """A call gives an attribute that the function does not have."""
    if (function := _called(node)) is not None:
        for attribute in node.attributes:
            if attribute.name not in function.parameters:
                message = f'{function.label} has no attribute "{attribute.name}"'
                yield Fault(node.where, message, closest(attribute.name, function.parameters))


@rule("function/attribute-reference", "error", Node)
def attribute_reference(node: Node) -> Faults:
    """An attribute refers to one that the function around it does not have, or stands in no function."""
    for attribute in node.attributes:
        name = attribute.ref_attr_name
        if not name:
            continue
        where = f'{node.where} attribute "{attribute.name}"'
        if (function := node.scope.function) is None:
            yield Fault(where, f'it refers to the attribute "{name}" of a function, but stands in none')
        elif name not in function.parameters:
            message = f'it refers to "{name}", which is no attribute of {function.label}'
            yield Fault(where, message, closest(name, function.parameters))

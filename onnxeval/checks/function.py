"""Rules on the model's own functions and the nodes that call them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from onnxeval.checks.names import doubled as listed_twice
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.suggest import closest
from onnxeval.checks.views import Node
from onnxeval.checks.whole import Function, Model
from onnxeval.schema import STANDARD_DOMAINS

#: Since this IR version a function says its domain.
_IR_WITH_FUNCTIONS = 8


@rule("function/unnamed", "error", Function)
def unnamed(function: Function) -> Faults:
    """A function has no name.

    Why: no node can call it.

    Mend: name it, or remove it.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }
        >>> model.functions[0].ClearField("name")

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.double(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }
    """
    if not function.proto.name:
        yield Fault(function.where, "the function has no name")


@rule("function/no-domain", "error", Function)
def no_domain(function: Function) -> Faults:
    """A function does not say its domain.

    Why: nodes call functions by domain and name.

    Mend: set the domain; it may be one of your own.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = double(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }
        >>> model.functions[0].ClearField("domain")

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.double(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }
    """
    if not function.proto.HasField("domain") and function.model.proto.ir_version >= _IR_WITH_FUNCTIONS:
        yield Fault(function.where, "the function has no domain")


@rule("function/doubled", "error", Function)
def doubled(function: Function) -> Faults:
    """Two functions have one domain, name and overload.

    Why: which of them a node calls is open.

    Mend: rename one of them, or give it an overload.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.twice(x) }
        <domain: "loc", opset_import: ["": 21]> twice (a) => (c) { c = Add(a, a) }
        <domain: "loc", opset_import: ["": 21]> twice (a) => (c) { c = Mul(a, a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { h = loc.twice(x)  y = loc.square(h) }
        <domain: "loc", opset_import: ["": 21]> twice (a) => (c) { c = Add(a, a) }
        <domain: "loc", opset_import: ["": 21]> square (a) => (c) { c = Mul(a, a) }
    """
    first = function.model.functions_by_key[function.key]
    if first is not function:
        yield Fault(
            function.where,
            f"functions {first.ordinal} and {function.ordinal} are both {function.label}",
            "rename one, or give it an overload",
        )


@rule("function/doubled-output", "error", Function)
def doubled_output(function: Function) -> Faults:
    """A function lists one value as output twice.

    Why: the names of a function's outputs are unique by the standard.

    Mend: pass the value through an Identity under another name.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y, float[2] z) { y, z = loc.two(x) }
        <domain: "loc", opset_import: ["": 21]> two (a) => (c, c) { c = Neg(a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y, float[2] z) { y, z = loc.two(x) }
        <domain: "loc", opset_import: ["": 21]> two (a) => (c, d) { c = Neg(a)  d = Identity(c) }
    """
    yield from listed_twice(function.scope, "output", function.scope.outputs)


@rule("function/doubled-attribute", "error", Function)
def doubled_attribute(function: Function) -> Faults:
    """A function declares an attribute twice.

    Why: which default counts, or whether there is one, is open.

    Mend: declare it once: in `attribute` without a default, in `attribute_proto` with one.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.leaky(x) }
        <domain: "loc", opset_import: ["": 21]>
        leaky <slope> (a) => (c) { c = LeakyRelu<alpha: float = @slope>(a) }
        >>> model.functions[0].attribute.append("slope")
    """
    names = (*function.proto.attribute, *(a.name for a in function.proto.attribute_proto))
    for name, count in Counter(names).items():
        if count > 1:
            yield Fault(function.where, f'the attribute "{name}" is declared {count} times')


@rule("function/recursive", "error", Model)
def recursive(model: Model) -> Faults:
    """A function calls itself, directly or through others.

    Why: calling it would never end.

    Mend: break the circle that the message walks; what repeats is a Loop or a Scan.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.f(x) }
        <domain: "loc", opset_import: ["": 21, "loc": 1]> f (a) => (c) { b = Neg(a)  c = loc.f(b) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.f(x) }
        <domain: "loc", opset_import: ["": 21, "loc": 1]> f (a) => (c) { b = Neg(a)  c = Neg(b) }
    """
    done: set[Function] = set()
    for root in model.functions:
        if root in done:
            continue
        path = {root: 0}  # each with its place
        trail: list[Iterator[tuple[Node, Function]]] = [root.calls()]
        while trail:
            step = next(trail[-1], None)
            if step is None:
                trail.pop()
                done.add(path.popitem()[0])
                continue
            node, called = step
            if called in path:
                circle = " -> ".join(f.label for f in (*islice(path, path[called], None), called))
                yield Fault(node.where, f"the function calls itself: {circle}")
            elif called not in done:
                path[called] = len(path)
                trail.append(called.calls())


@rule("function/shadows-operator", "warning", Function)
def shadows_operator(function: Function) -> Faults:
    """A function has the name of an operator of the standard, or of one that onnxeval knows.

    Why: the operator is what its callers get, in onnxeval as in onnxruntime; the function's body does not count.

    Mend: rename the function, or give it a domain of its own.

    Example:
        <ir_version: 10, opset_import: ["": 21]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }
        <domain: "ai.onnx", opset_import: ["": 21]> Neg (a) => (c) { c = Abs(a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.Neg(x) }
        <domain: "loc", opset_import: ["": 21]> Neg (a) => (c) { c = Abs(a) }
    """
    domain, name, _ = function.key
    if (schema := function.model.imports.schema(domain, name)) is not None:
        yield Fault(function.where, f"{schema.label} is an operator of the standard: the function is never called")
    elif domain and function.model.imports.kernel(domain, name) is not None:
        yield Fault(function.where, f"onnxeval has {domain}.{name} itself: the function is never called")


@rule("function/opset-mismatch", "error", Function)
def opset_mismatch(function: Function) -> Faults:
    """An operator means another version in a function than in the model.

    Why: the standard wants them the same. onnxeval goes by the function's own imports, onnxruntime by the model's,
    without a word: they compute different things.

    Mend: import one version in both. Where the operator did not change between the two, nothing is said.

    Example:
        <ir_version: 10, opset_import: ["": 13, "loc": 1]>
        g (float[2, 3] x) => (float[2, 3] y) { y = loc.f(x) }
        <domain: "loc", opset_import: ["": 11]> f (a) => (c) { c = Softmax(a) }

    Instead:
        <ir_version: 10, opset_import: ["": 13, "loc": 1]>
        g (float[2, 3] x) => (float[2, 3] y) { y = loc.f(x) }
        <domain: "loc", opset_import: ["": 13]> f (a) => (c) { c = Softmax(a) }
    """
    ours = function.scope.imports
    seen: set[tuple[str, str]] = set()
    for scope in function.scope.all_scopes():
        for node in scope.nodes:
            key = (node.domain, node.op_type)
            if key in seen or node.domain not in ours.versions:
                continue
            seen.add(key)
            importer, theirs = function.model.importers[node.domain]
            here, there = ours.schema(*key), theirs.schema(*key)
            if here is not there:
                versions = " and ".join(s.label if s else f"no {node.op_type}" for s in (here, there))
                opsets = f"opset {ours.versions[node.domain]} here and {theirs.versions[node.domain]} in {importer}"
                yield Fault(node.where, f"{opsets}: {versions}", "import one version in both")


# Calls


@rule("function/undefined", "warning", Node)
def undefined(node: Node) -> Faults:
    """A node's domain is that of functions of the model, but none has this name.

    Why: it needs a kernel from elsewhere; more often the name is wrong or the function was not saved.

    Mend: correct the name or the overload, or add the function.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { h = loc.doubble(x)  z = loc.double(h)  y = Neg(z) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { h = loc.double(x)  z = loc.double(h)  y = Neg(z) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }
    """
    if node.domain in STANDARD_DOMAINS or node.function or node.kernel or node.version is None:
        return
    names = [f.proto.name for f in node.scope.model.functions if f.key[0] == node.domain]
    if names:
        message = f'the model has no function "{node.op_type}" in domain "{node.domain}"'
        if node.op_type in names:
            message = f'no function "{node.op_type}" has the overload "{node.proto.overload}"'
        yield Fault(node.where, message, closest(node.op_type, names))


@rule("function/input-count", "error", Node)
def input_count(node: Node) -> Faults:
    """A call passes more inputs than the function has. Fewer are fine: the rest is absent.

    Why: nobody would read them.

    Mend: remove what is too much, or add inputs to the function.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.double(x, x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.double(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }
    """
    if (function := node.called) is not None and len(node.inputs) > len(function.scope.inputs):
        yield Fault(node.where, f"{function.label} has {len(function.scope.inputs)} inputs, {len(node.inputs)} given")


@rule("function/output-count", "error", Node)
def output_count(node: Node) -> Faults:
    """A call takes more outputs than the function has.

    Why: nothing would make them.

    Mend: remove what is too much, or add outputs to the function.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y, float[2] z) { y, z = loc.double(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.double(x) }
        <domain: "loc", opset_import: ["": 21]> double (a) => (c) { c = Add(a, a) }
    """
    if (function := node.called) is not None and len(node.outputs) > len(function.scope.outputs):
        yield Fault(
            node.where, f"{function.label} has {len(function.scope.outputs)} outputs, {len(node.outputs)} taken"
        )


@rule("function/unknown-attribute", "error", Node)
def unknown_attribute(node: Node) -> Faults:
    """A call gives an attribute that the function does not have.

    Why: nobody would look at it.

    Mend: correct the name, or declare the attribute in the function.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.leaky<slop = 0.5>(x) }
        <domain: "loc", opset_import: ["": 21]>
        leaky <slope> (a) => (c) { c = LeakyRelu<alpha: float = @slope>(a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.leaky<slope = 0.5>(x) }
        <domain: "loc", opset_import: ["": 21]>
        leaky <slope> (a) => (c) { c = LeakyRelu<alpha: float = @slope>(a) }
    """
    if (function := node.called) is not None:
        for attribute in node.attributes:
            if attribute.name not in function.parameters:
                message = f'{function.label} has no attribute "{attribute.name}"'
                yield Fault(node.where, message, closest(attribute.name, function.parameters))


@rule("function/attribute-reference", "error", Node)
def attribute_reference(node: Node) -> Faults:
    """An attribute refers to one that the function around it does not have, or stands in no function.

    Why: there is nothing to put in its place.

    Mend: correct the name, or declare the attribute in the function.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.leaky(x) }
        <domain: "loc", opset_import: ["": 21]>
        leaky <slope> (a) => (c) { c = LeakyRelu<alpha: float = @slop>(a) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.leaky(x) }
        <domain: "loc", opset_import: ["": 21]>
        leaky <slope> (a) => (c) { c = LeakyRelu<alpha: float = @slope>(a) }
    """
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

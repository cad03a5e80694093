"""Rules on nodes against what is known of their operators: the name, the inputs and the outputs.

The standard's schemas describe operators; outside the standard the signature of the kernel does that would run them.
Rules look at operator, domain, attributes and at which inputs and outputs are blank, never at names: nodes with equal
signatures are judged once where nothing is found.
"""

from __future__ import annotations

import re
from functools import cache

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.suggest import closest
from onnxeval.checks.views import Node
from onnxeval.custom import custom_schema
from onnxeval.registry import Registry
from onnxeval.schema import STANDARD_DOMAINS, Schema, all_schemas, known_versions, newest_opset, slot_at

_MANY = 2**31 - 1


@rule("node/no-operator", "error", Node)
def no_operator(node: Node) -> Faults:
    """A node does not say which operator it is.

    Why: nothing can run it.

    Mend: write the operator's name into `op_type`.

    Example:
        >>> model.graph.node[0].ClearField("op_type")
    """
    if not node.op_type:
        yield Fault(node.where, "op_type is empty")


@rule("node/unconnected", "error", Node)
def unconnected(node: Node) -> Faults:
    """A node has neither inputs nor outputs.

    Why: it can do nothing; its names were lost.

    Mend: remove it, or give it its inputs and outputs back.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }
        <domain: "loc", opset_import: ["": 21]> nothing () => () {}
        >>> model.graph.node.add(op_type="nothing", domain="loc")

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { h = loc.same(x)  y = Neg(h) }
        <domain: "loc", opset_import: ["": 21]> same (a) => (c) { c = Identity(a) }
    """
    if not node.inputs and not node.outputs:
        yield Fault(node.where, "the node has neither inputs nor outputs")


def _version(node: Node) -> int | None:
    """The opset a standard operator is looked up in; None where that is not the standard's or not known."""
    if node.domain not in STANDARD_DOMAINS or node.version is None or not isinstance(node.op_type, str):
        return None
    return node.version if 0 < node.version <= newest_opset(node.domain) and node.op_type else None


@rule("node/unknown-operator", "error", Node)
def unknown_operator(node: Node) -> Faults:
    """The standard has no operator of this name in this domain, at any version, and the model no such function.

    Why: nothing can run the node.

    Mend: correct the name, which is case-sensitive. An operator of somebody's own belongs into a domain of its own.

    Example:
        g (float[2] x) => (float[2] y) { y = relu(x) }

    Instead:
        g (float[2] x) => (float[2] y) { y = Relu(x) }
    """
    if _version(node) is None or node.schema or node.function or known_versions(node.domain, node.op_type):
        return
    if _is_removed(node) or node.kernel is not None:
        return
    message = f'{node.domain or "ai.onnx"} has no operator "{node.op_type}"'
    yield Fault(node.where, message, _meant(node.domain, node.op_type))


@cache
def _meant(domain: str, op_type: str) -> str:
    """What an operator that does not exist may have been meant to be."""
    if elsewhere := sorted({s.key.domain or "ai.onnx" for s in all_schemas() if s.key.op_type == op_type}):
        return f"it is an operator of {', '.join(elsewhere)}"
    if others := sorted({key.domain for key in Registry.standard() if key.op_type == op_type}):
        return f"it is an operator of {', '.join(others)}, outside the standard"
    return closest(op_type, (s.key.op_type for s in all_schemas() if s.key.domain == domain))


#: Operators that were experimental and left the standard with ONNX 1.5 (opset 10), and what does the same.
_REMOVED = {
    "ATen": "it called a function of PyTorch by name, export without it",
    "Affine": "use Mul and Add",
    "ConstantFill": "use ConstantOfShape",
    "Crop": "use Slice",
    "DynamicSlice": "use Slice, whose bounds are inputs since opset 10",
    "GRUUnit": "use GRU",
    "GivenTensorFill": "use Constant",
    "ImageScaler": "use Mul and Add",
    "ParametricSoftplus": "use Mul and Softplus",
    "Scale": "use Mul",
    "ScaledTanh": "use Mul and Tanh",
}

#: What the standard has instead of operators that onnxruntime alone has.
_LIKE = {"SimplifiedLayerNormalization": "opset 23 has RMSNormalization"}


def _is_removed(node: Node) -> bool:
    return node.domain == "" and node.op_type in _REMOVED and node.function is None


@rule("node/removed-operator", "error", Node)
def removed_operator(node: Node) -> Faults:
    """The operator was experimental, never part of an opset, and has been removed from the standard.

    Why: current tools do not know it; those that still do follow no text.

    Mend: use the operators that the hint names, or export the model again.

    Example:
        g (float[2] x) => (float[2] y) { y = Scale<scale = 2.0>(x) }

    Instead:
        g (float[2] x) => (float[2] y) <float two = {2}> { y = Mul(x, two) }
    """
    if _version(node) is not None and _is_removed(node):
        message = f'"{node.op_type}" was experimental and has been removed from the standard'
        yield Fault(node.where, message, _REMOVED[node.op_type])


@rule("node/foreign-operator", "warning", Node)
def foreign_operator(node: Node) -> Faults:
    """The standard has no such operator at the imported opset, but onnxruntime has, under the standard's domain.

    Why: onnxruntime and what follows it run the node, onnxeval too; the standard's checker and other tools refuse it.

    Mend: nothing for onnxruntime. For others write the standard's operators; the hint tells of one.

    Example:
        g (float[2, 3] x, float[3] s) => (float[2, 3] y) { y = SimplifiedLayerNormalization(x, s) }

    Instead:
        <ir_version: 11, opset_import: ["": 23]>
        g (float[2, 3] x, float[3] s) => (float[2, 3] y) { y = RMSNormalization(x, s) }
    """
    if _version(node) is None or node.schema or node.kernel is None or _is_removed(node):
        return
    message = f"onnxruntime has {node.op_type}, ai.onnx {node.version} has not"
    if later := known_versions(node.domain, node.op_type):
        yield Fault(node.where, message, f"it came with opset {later[0]}")
    else:
        yield Fault(node.where, message, _LIKE.get(node.op_type, ""))


@rule("node/newer-operator", "error", Node)
def newer_operator(node: Node) -> Faults:
    """The operator came with a later opset than the one imported.

    Why: at the imported opset it does not exist, and runtimes refuse the model.

    Mend: import the opset that the hint names (and see what else changed: `onnxeval ops NAME --diff A B`), or express
    the node by older operators.

    Example:
        <ir_version: 10, opset_import: ["": 19]>
        g (float[2] x) => (float[2] y) { y = Gelu(x) }

    Instead:
        <ir_version: 10, opset_import: ["": 20]>
        g (float[2] x) => (float[2] y) { y = Gelu(x) }
    """
    version = _version(node)
    if version is None or node.schema or node.function or node.kernel is not None:
        return
    if later := [v for v in known_versions(node.domain, node.op_type) if v > version]:
        yield Fault(
            node.where,
            f"{node.domain or 'ai.onnx'} {version} has no {node.op_type} yet",
            f"it came with opset {later[0]}",
        )


@rule("node/deprecated-operator", "error", Node)
def deprecated_operator(node: Node) -> Faults:
    """The operator is deprecated at the imported opset.

    Why: the standard no longer allows it there, and tools refuse it, though at older opsets it keeps its meaning.

    Mend: use what the hint names, or import the older opset.

    Example:
        <ir_version: 10, opset_import: ["": 11]>
        g (float[3] x, int64[1] i, float[1] u) => (float[3] y) { y = Scatter<axis = 0>(x, i, u) }

    Instead:
        <ir_version: 10, opset_import: ["": 11]>
        g (float[3] x, int64[1] i, float[1] u) => (float[3] y) { y = ScatterElements<axis = 0>(x, i, u) }
    """
    schema = node.schema
    if schema is not None and schema.deprecated:
        yield Fault(
            node.where,
            f"{node.op_type} is deprecated since opset {schema.key.since_version} of {node.domain or 'ai.onnx'}",
            _replacement(schema),
        )


#: Successors that the text of the operator does not name.
_SUCCESSORS = {"Upsample": "Resize"}


def _replacement(schema: Schema) -> str:
    """The sentence in which the operator's text names its successor."""
    text = " ".join(str(schema.definition.doc).split())
    found = re.search(r"[Pp]lease use (\w+)", text)
    name = found[1] if found else _SUCCESSORS.get(schema.key.op_type, "")
    return f"use {name}" if name else ""


# Inputs and outputs


@rule("node/input-count", "error", Node)
def input_count(node: Node) -> Faults:
    """A node lists fewer or more inputs than the operator takes.

    Why: what is missing has no value, what is too much nobody reads.

    Mend: compare with the operator's page (`onnxeval ops NAME --opset N`). Many inputs were attributes in older opsets.

    Example:
        g (float[2] x) => (float[2] y) { y = Neg(x, x) }

    Instead:
        g (float[2] x) => (float[2] y) { y = Sub(x, x) }
    """
    if schema := node.schema:
        yield from _count(node, "input", len(node.inputs), schema.min_inputs, schema.max_inputs, schema)
    elif node.kernel is not None:
        described = custom_schema(node.kernel)
        if len(node.inputs) > len(described.inputs) and not described.variadic:
            most = len(described.inputs)
            message = f"{node.operator} has {most} input{'s' * (most != 1)}, {len(node.inputs)} given"
            yield Fault(node.where, message, f"inputs: {', '.join(described.inputs) or 'none'}")


@rule("node/output-count", "error", Node)
def output_count(node: Node) -> Faults:
    """A node lists fewer or more outputs than the operator gives.

    Why: nothing would make the outputs that are too many.

    Mend: compare with the operator's page (`onnxeval ops NAME --opset N`).

    Example:
        g (float[2] x) => (float[2] y, float[2] z) { y, z = Neg(x) }

    Instead:
        g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Identity(y) }
    """
    if schema := node.schema:
        yield from _count(node, "output", len(node.outputs), schema.min_outputs, schema.max_outputs, schema)
    elif node.kernel is not None:
        most = custom_schema(node.kernel).outputs
        listed = max((place for place, name in enumerate(node.outputs, 1) if name), default=0)
        if most is not None and listed > most:
            message = f"{node.operator} gives {most} output{'s' * (most != 1)}, {listed} taken"
            yield Fault(node.where, message)


def _count(node: Node, what: str, given: int, least: int, most: int, schema: Schema) -> Faults:
    if least <= given <= most:
        return
    wanted = str(least) if least == most else f"{least} or more" if most >= _MANY else f"{least} to {most}"
    slots = schema.inputs if what == "input" else schema.outputs
    names = ", ".join(
        slot.name + ("?" if slot.optional else "...") * (slot.optional or slot.variadic) for slot in slots
    )
    plural = "s" if wanted != "1" else ""
    yield Fault(node.where, f"{schema.label} has {wanted} {what}{plural}, {given} given", f"{what}s: {names or 'none'}")


@rule("node/absent-input", "error", Node)
def absent_input(node: Node) -> Faults:
    """An input that the operator needs is left blank.

    Why: only optional inputs may be left out by an empty name.

    Mend: name the value.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, "") }

    Instead:
        g (float[2] x) => (float[2] y) { y = Clip(x, "", "") }
    """
    yield from _absent(node, "input", node.inputs)
    if node.schema is None and node.kernel is not None:
        described = custom_schema(node.kernel)
        for place, name in enumerate(described.inputs):
            if name in described.required and (place >= len(node.inputs) or not node.inputs[place]):
                message = f'{node.operator} needs its input {place} "{name}"'
                yield Fault(node.where, f"{message}, it is {'blank' if place < len(node.inputs) else 'not given'}")


@rule("node/absent-output", "error", Node)
def absent_output(node: Node) -> Faults:
    """An output that the operator always gives is left blank.

    Why: only optional outputs may be left out; an output that nobody reads needs a name all the same.

    Mend: give it a name of its own.

    Example:
        g (float[4] x) => (float[1] y) { k = Constant<value_ints = [1]>()  y, i = TopK(x, k) }
        >>> model.graph.node[1].output[1] = ""

    Instead:
        g (float[4] x) => (float[1] y) { k = Constant<value_ints = [1]>()  y, i = TopK(x, k) }
    """
    yield from _absent(node, "output", node.outputs)


def _absent(node: Node, what: str, names: list[str]) -> Faults:
    if (schema := node.schema) is None or "" not in names:
        return
    slots = schema.inputs if what == "input" else schema.outputs
    for place, name in enumerate(names):
        slot = slot_at(slots, place)
        if name or slot is None or slot.optional:
            continue
        if not slot.variadic or what == "input":
            yield Fault(f"{node.where} {what} {place}", f'{schema.label} needs its {what} "{slot.name}", it is blank')


@rule("node/branch-outputs", "error", Node, "If")
def branch_outputs(node: Node) -> Faults:
    """A branch of an If gives another number of values than the node has outputs.

    Why: each output of the If is what the branch that runs gives at its place.

    Mend: let both branches give one value for each output.

    Example:
        g (bool c, float[2] x) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] a, float[2] b) { a = Abs(x)  b = Neg(x) },
                       else_branch = e () => (float[2] d) { d = Neg(x) }>
        }

    Instead:
        g (bool c, float[2] x) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] a) { a = Abs(x) },
                       else_branch = e () => (float[2] d) { d = Neg(x) }>
        }
    """
    for branch in node.subs:
        if len(branch.outputs) != len(node.outputs):
            yield Fault(branch.where, f"the branch gives {len(branch.outputs)} values, the If {len(node.outputs)}")

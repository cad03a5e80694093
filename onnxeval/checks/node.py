"""Rules on nodes against the standard's schemas: the operator, its inputs and outputs, its attributes.

They look at operator, domain, attributes and at which inputs and outputs are blank, never at names: nodes with equal
signatures are judged once where nothing is found.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from onnx import AttributeProto

from onnxeval.attributes import kind_name, kind_of
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.suggest import closest, nearest
from onnxeval.checks.views import Node
from onnxeval.schema import (
    STANDARD_DOMAINS,
    Schema,
    all_schemas,
    find_schema,
    known_versions,
    newest_opset,
    slot_at,
)

_MANY = 2**31 - 1
#: Since this IR version an attribute says its type.
_IR_WITH_ATTRIBUTE_TYPES = 2


@rule("node/no-operator", "error", Node)
def no_operator(node: Node) -> Faults:
    """A node does not say which operator it is."""
    if not node.op_type:
        yield Fault(node.where, "op_type is empty")


@rule("node/unconnected", "error", Node)
def unconnected(node: Node) -> Faults:
    """A node has neither inputs nor outputs: it can do nothing."""
    if not node.inputs and not node.outputs:
        yield Fault(node.where, "the node has neither inputs nor outputs")


def _version(node: Node) -> int | None:
    """The opset a standard operator is looked up in; None where that is not the standard's or not known."""
    if node.domain not in STANDARD_DOMAINS or node.version is None or not isinstance(node.op_type, str):
        return None
    return node.version if 0 < node.version <= newest_opset(node.domain) and node.op_type else None


@rule("node/unknown-operator", "error", Node)
def unknown_operator(node: Node) -> Faults:
    """The standard has no operator of this name in this domain, at any version, and the model no such function."""
    if _version(node) is None or node.schema or node.function or known_versions(node.domain, node.op_type):
        return
    message = f'{node.domain or "ai.onnx"} has no operator "{node.op_type}"'
    yield Fault(node.where, message, _meant(node.domain, node.op_type))


@cache
def _meant(domain: str, op_type: str) -> str:
    """What an operator that does not exist may have been meant to be."""
    if elsewhere := sorted({s.key.domain or "ai.onnx" for s in all_schemas() if s.key.op_type == op_type}):
        return f"it is an operator of {', '.join(elsewhere)}"
    return closest(op_type, (s.key.op_type for s in all_schemas() if s.key.domain == domain))


@rule("node/newer-operator", "error", Node)
def newer_operator(node: Node) -> Faults:
    """The operator came with a later opset than the one imported."""
    version = _version(node)
    if version is None or node.schema or node.function:
        return
    if later := [v for v in known_versions(node.domain, node.op_type) if v > version]:
        yield Fault(
            node.where,
            f"{node.domain or 'ai.onnx'} {version} has no {node.op_type} yet",
            f"it came with opset {later[0]}",
        )


@rule("node/deprecated-operator", "error", Node)
def deprecated_operator(node: Node) -> Faults:
    """The operator is deprecated at the imported opset: the standard no longer allows it there."""
    schema = node.schema
    if schema is not None and schema.deprecated:
        yield Fault(
            node.where,
            f"{node.op_type} is deprecated since opset {schema.key.since_version} of {node.domain or 'ai.onnx'}",
            _replacement(schema),
        )


def _replacement(schema: Schema) -> str:
    """The sentence in which the operator's text names its successor."""
    text = " ".join(str(schema.definition.doc).split())
    found = re.search(r"[Pp]lease use (\w+)", text)
    return f"use {found[1]}" if found else ""


@rule("node/unchecked", "note", Node)
def unchecked(node: Node) -> Faults:
    """The operator is neither the standard's nor a function of the model: nothing more is known of it here."""
    if node.domain in STANDARD_DOMAINS or node.version is None:
        return
    if all(domain != node.domain for domain, _, _ in node.scope.model.functions_by_key):
        yield Fault(node.where, f"{node.domain}.{node.op_type} is described neither in the standard nor in the model")


# Inputs and outputs


@rule("node/input-count", "error", Node)
def input_count(node: Node) -> Faults:
    """A node lists fewer or more inputs than the operator takes."""
    if schema := node.schema:
        yield from _count(node, "input", len(node.inputs), schema.min_inputs, schema.max_inputs, schema)


@rule("node/output-count", "error", Node)
def output_count(node: Node) -> Faults:
    """A node lists fewer or more outputs than the operator gives."""
    if schema := node.schema:
        yield from _count(node, "output", len(node.outputs), schema.min_outputs, schema.max_outputs, schema)


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
    """An input that the operator needs is left blank."""
    yield from _absent(node, "input", node.inputs)


@rule("node/absent-output", "error", Node)
def absent_output(node: Node) -> Faults:
    """An output that the operator always gives is left blank: it needs a name, read or not."""
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


# Attributes


@rule("node/unknown-attribute", "error", Node)
def unknown_attribute(node: Node) -> Faults:
    """A node has an attribute that the operator does not have at this opset. Names in double underscores are free."""
    if (schema := node.schema) is None:
        return
    for attribute in node.attributes:
        name = attribute.name
        if name and name not in schema.attributes and not str(name).startswith("__"):
            yield Fault(
                node.where,
                f'{schema.label} has no attribute "{name}"',
                _where_attribute_is(schema, name) or closest(name, schema.attributes),
            )


def _where_attribute_is(schema: Schema, name: str) -> str:
    """In which versions the operator has the attribute."""
    domain, op_type, since = schema.key
    versions = [
        v for v in known_versions(domain, op_type) if (s := find_schema(domain, op_type, v)) and name in s.attributes
    ]
    if not versions:
        return ""
    if later := [v for v in versions if v > since]:
        return f"it came with opset {later[0]}"
    slots = [slot.name for slot in schema.inputs]
    return f"opset {versions[-1]} had it" + (f"; since {since} it is an input" if name in slots else "")


@rule("node/missing-attribute", "error", Node)
def missing_attribute(node: Node) -> Faults:
    """An attribute that the operator needs is not given."""
    if (schema := node.schema) is None:
        return
    given = {attribute.name for attribute in node.attributes}
    for declared in schema.attributes.values():
        if declared.required and declared.name not in given:
            near = nearest(declared.name, given.difference(schema.attributes))
            hint = f'was "{near}" meant to be it?' if near else ""
            message = f'{schema.label} needs the attribute "{declared.name}" ({kind_name(declared.kind)})'
            yield Fault(node.where, message, hint)


@rule("node/attribute-type", "error", Node)
def attribute_type(node: Node) -> Faults:
    """An attribute's type is not the one that the operator declares."""
    if (schema := node.schema) is None:
        return
    for attribute in node.attributes:
        declared = schema.attributes.get(attribute.name)
        if declared is not None and (kind := kind_of(attribute)) != declared.kind:
            yield Fault(
                f'{node.where} attribute "{attribute.name}"',
                f"it is of type {kind_name(kind)}, {schema.label} declares {kind_name(declared.kind)}",
            )


@rule("node/doubled-attribute", "error", Node)
def doubled_attribute(node: Node) -> Faults:
    """An attribute is given twice: which of the values counts is open."""
    if len(node.attributes) > 1:
        for name, count in Counter(attribute.name for attribute in node.attributes).items():
            if count > 1:
                yield Fault(node.where, f'the attribute "{name}" is given {count} times')


@rule("node/unnamed-attribute", "error", Node)
def unnamed_attribute(node: Node) -> Faults:
    """An attribute has no name."""
    for place, attribute in enumerate(node.attributes):
        if not attribute.name:
            yield Fault(node.where, f"attribute {place} has no name")


@rule("node/untyped-attribute", "error", Node)
def untyped_attribute(node: Node) -> Faults:
    """An attribute does not say its type, which files since IR version 2 must."""
    if node.scope.model.proto.ir_version < _IR_WITH_ATTRIBUTE_TYPES:
        return
    for attribute in node.attributes:
        if not attribute.HasField("type"):
            yield Fault(f'{node.where} attribute "{attribute.name}"', "it has no type")


#: The field that holds the value of each type of attribute.
_VALUE_FIELDS = {
    "f": AttributeProto.FLOAT,
    "i": AttributeProto.INT,
    "s": AttributeProto.STRING,
    "t": AttributeProto.TENSOR,
    "g": AttributeProto.GRAPH,
    "tp": AttributeProto.TYPE_PROTO,
    "sparse_tensor": AttributeProto.SPARSE_TENSOR,
    "floats": AttributeProto.FLOATS,
    "ints": AttributeProto.INTS,
    "strings": AttributeProto.STRINGS,
    "tensors": AttributeProto.TENSORS,
    "graphs": AttributeProto.GRAPHS,
    "sparse_tensors": AttributeProto.SPARSE_TENSORS,
    "type_protos": AttributeProto.TYPE_PROTOS,
}
#: Of these a value that is not there is no value; the rest have a zero or empty one.
_MUST_BE_SET = frozenset({"t", "g", "tp", "sparse_tensor"})


@rule("node/attribute-value", "error", Node)
def attribute_value(node: Node) -> Faults:
    """An attribute's value stands in another field than its type says, in several, or is not there."""
    for attribute in node.attributes:
        if not attribute.type:
            continue
        where = f'{node.where} attribute "{attribute.name}"'
        filled = [f.name for f, _ in attribute.ListFields() if f.name in _VALUE_FIELDS]
        own = next((f for f, kind in _VALUE_FIELDS.items() if kind == attribute.type), "")
        if not own:
            yield Fault(where, f"its type {attribute.type} is unknown")
        elif wrong := [field for field in filled if field != own]:
            yield Fault(where, f"its type is {kind_name(attribute.type)}, a value stands in {', '.join(wrong)}")
        elif own in _MUST_BE_SET and not filled and not attribute.ref_attr_name:
            yield Fault(where, f"its type is {kind_name(attribute.type)}, but it holds none")


@rule("node/constant-value", "error", Node)
def constant_value(node: Node) -> Faults:
    """A Constant has exactly one of its value attributes."""
    if node.op_type == "Constant" and node.schema and not any(a.required for a in node.schema.attributes.values()):
        given = [a.name for a in node.attributes if a.name in node.schema.attributes]
        if len(given) != 1:
            what = f"{len(given)} values: {', '.join(given)}" if given else "no value"
            yield Fault(node.where, f"the Constant has {what}", f"one of {', '.join(node.schema.attributes)}")


@rule("node/branch-outputs", "error", Node)
def branch_outputs(node: Node) -> Faults:
    """A branch of an If gives another number of values than the node has outputs."""
    if node.op_type == "If" and node.domain == "":
        for branch in node.subs:
            if len(branch.outputs) != len(node.outputs):
                yield Fault(branch.where, f"the branch gives {len(branch.outputs)} values, the If {len(node.outputs)}")

"""Rules on the attributes of nodes: their names, types and fields, against what is known of the operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from onnx import AttributeProto

from onnxeval.attributes import kind_name, kind_of
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.suggest import closest, nearest
from onnxeval.checks.views import Node
from onnxeval.custom import custom_schema
from onnxeval.fitting import is_free_attribute
from onnxeval.schema import Schema, find_schema, known_versions

#: Since this IR version an attribute says its type.
_IR_WITH_ATTRIBUTE_TYPES = 2


class _Known(NamedTuple):
    """The attributes of an operator: by name a kind (None where any will do) and whether it must be given."""

    label: str
    attributes: Mapping[str, tuple[int | None, bool]]


def _known(node: Node) -> _Known | None:
    """What is known of the attributes of a node's operator; None where nothing is."""
    if (schema := node.schema) is not None:
        return _Known(schema.label, {a.name: (a.kind, a.required) for a in schema.attributes.values()})
    if (kernel := node.kernel) is not None:
        attributes = custom_schema(kernel).attributes
        return _Known(node.operator, {n: (a.kind, a.required) for n, a in attributes.items()})
    return None


@rule("node/unknown-attribute", "error", Node)
def unknown_attribute(node: Node) -> Faults:
    """A node has an attribute that the operator does not have at this opset. Names in double underscores are free.

    Why: nobody would look at it, so what was meant by it does not happen.

    Mend: correct the name; the hint tells where another opset has the attribute, or an input instead of it.

    Example:
        g (float[2, 3] x) => (float[2, 3] y) { y = Softmax<axes = 1>(x) }

    Instead:
        g (float[2, 3] x) => (float[2, 3] y) { y = Softmax<axis = 1>(x) }
    """
    if (known := _known(node)) is None:
        return
    for attribute in node.attributes:
        name = attribute.name
        if name and name not in known.attributes and not is_free_attribute(str(name)):
            hint = _where_attribute_is(node.schema, name) if node.schema else ""
            yield Fault(node.where, f'{known.label} has no attribute "{name}"', hint or closest(name, known.attributes))


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
    """An attribute that the operator needs is not given.

    Why: it has no default; what the node should do is open.

    Mend: give it.

    Example:
        g (float[2] x) => (float[4] y) { y = Concat(x, x) }

    Instead:
        g (float[2] x) => (float[4] y) { y = Concat<axis = 0>(x, x) }
    """
    if (known := _known(node)) is None:
        return
    given = {attribute.name for attribute in node.attributes}
    for name, (kind, required) in known.attributes.items():
        if required and name not in given:
            near = nearest(name, given.difference(known.attributes))
            hint = f'was "{near}" meant to be it?' if near else ""
            kind_text = f" ({kind_name(kind)})" if kind is not None else ""
            yield Fault(node.where, f'{known.label} needs the attribute "{name}"{kind_text}', hint)


@rule("node/attribute-type", "error", Node)
def attribute_type(node: Node) -> Faults:
    """An attribute's type is not the one that the operator declares.

    Why: readers look into the field of the declared type, and find nothing there.

    Mend: write the value with the declared type: `1`, not `1.0`; `[1]`, not `1`.

    Example:
        g (float[2] x) => (float[2] y) { y = Softmax<axis = 0.0>(x) }

    Instead:
        g (float[2] x) => (float[2] y) { y = Softmax<axis = 0>(x) }
    """
    if (known := _known(node)) is None:
        return
    for attribute in node.attributes:
        wanted, _ = known.attributes.get(attribute.name, (None, False))
        if wanted is not None and (kind := kind_of(attribute)) != wanted:
            yield Fault(
                f'{node.where} attribute "{attribute.name}"',
                f"it is of type {kind_name(kind)}, {known.label} declares {kind_name(wanted)}",
            )


@rule("node/doubled-attribute", "error", Node)
def doubled_attribute(node: Node) -> Faults:
    """An attribute is given twice.

    Why: which of the values counts is open.

    Mend: remove one.

    Example:
        g (float[2] x) => (float[2] y) { y = Softmax<axis = 0>(x) }
        >>> model.graph.node[0].attribute.add().CopyFrom(model.graph.node[0].attribute[0])
    """
    if len(node.attributes) > 1:
        for name, count in Counter(attribute.name for attribute in node.attributes).items():
            if count > 1:
                yield Fault(node.where, f'the attribute "{name}" is given {count} times')


@rule("node/unnamed-attribute", "error", Node)
def unnamed_attribute(node: Node) -> Faults:
    """An attribute has no name.

    Why: nobody can look it up.

    Mend: name it, or remove it.

    Example:
        g (float[2] x) => (float[2] y) { y = Softmax<axis = 0>(x) }
        >>> model.graph.node[0].attribute[0].ClearField("name")
    """
    for place, attribute in enumerate(node.attributes):
        if not attribute.name:
            yield Fault(node.where, f"attribute {place} has no name")


@rule("node/untyped-attribute", "error", Node)
def untyped_attribute(node: Node) -> Faults:
    """An attribute does not say its type, which files since IR version 2 must.

    Why: readers that go by the type find no value.

    Mend: set the attribute's `type`; `onnx.helper.make_attribute` does it.

    Example:
        g (float[2] x) => (float[2] y) { y = Softmax<axis = 0>(x) }
        >>> model.graph.node[0].attribute[0].ClearField("type")
    """
    if node.scope.model.proto.ir_version < _IR_WITH_ATTRIBUTE_TYPES:
        return
    for attribute in node.attributes:
        if not attribute.type:
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
    """An attribute's value stands in another field than its type says, in several, or is not there.

    Why: readers that go by the type and readers that go by the field see different values.

    Mend: fill the field of the type alone; `onnx.helper.make_attribute` does it.

    Example:
        g (float[2] x) => (float[2] y) { y = Softmax<axis = 0>(x) }
        >>> model.graph.node[0].attribute[0].ints.append(1)
    """
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


@rule("node/constant-value", "error", Node, "Constant")
def constant_value(node: Node) -> Faults:
    """A Constant has no value, or several.

    Why: exactly one of its attributes must hold what it gives.

    Mend: keep one of the values.

    Example:
        g () => (int64 y) { y = Constant<value_int = 1, value_float = 1.0>() }

    Instead:
        g () => (int64 y) { y = Constant<value_int = 1>() }
    """
    if node.schema and not any(a.required for a in node.schema.attributes.values()):
        given = [a.name for a in node.attributes if a.name in node.schema.attributes]
        if len(given) != 1:
            what = f"{len(given)} values: {', '.join(given)}" if given else "no value"
            yield Fault(node.where, f"the Constant has {what}", f"one of {', '.join(node.schema.attributes)}")

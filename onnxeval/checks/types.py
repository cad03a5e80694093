"""Rules on types and shapes: what flows into each node against what its operator takes, and declarations against both.

`onnxeval.checks.inference` walks the model and brings the parts these rules look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto, TypeProto

from onnxeval.attributes import attribute_value
from onnxeval.checks.known import ABSENT, UNKNOWN, Known, contradict
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Node
from onnxeval.dtypes import BY_NAME, name_of
from onnxeval.schema import Schema, Slot, slot_at
from onnxeval.values import Dimension, shape_text

#: Constant inputs of no more elements than this are written out in messages.
_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Typed:
    """A node of the standard with what is known of its inputs. ``proto`` has the attributes of a call filled in."""

    node: Node
    proto: NodeProto
    schema: Schema
    inputs: Sequence[Known]

    def known_inputs(self) -> Iterator[tuple[int, Slot, Known]]:
        for place, known in enumerate(self.inputs):
            slot = slot_at(self.schema.inputs, place)
            if slot is not None and known.name:
                yield place, slot, known

    def attribute(self, name: str) -> Any:
        """The value of an integer or string attribute; the schema's default where it is not given."""
        for attribute in self.proto.attribute:
            if attribute.name == name:
                return attribute_value(attribute)
        return self.schema.attributes[name].default if name in self.schema.attributes else None


def described(schema: Schema, inputs: Sequence[Known]) -> str:
    """``A float32[2, 3], shape int64[1] = [6]``: the inputs by the schema's names."""
    parts = []
    for place, known in enumerate(inputs):
        slot = slot_at(schema.inputs, place)
        name = "?" if slot is None else f"{slot.name}[{place}]" if slot.variadic else slot.name
        parts.append(f"{name} {'absent' if known is ABSENT else known}{_elements(known)}")
    return ", ".join(parts)


def _elements(known: Known) -> str:
    """`` = [1, 2]`` where the elements are known and few."""
    array = known.array
    return "" if array is None or array.size > _MOST_SHOWN else f" = {array.tolist()}"


def readable(type_name: str) -> str:
    """``float32`` for ``tensor(float)``; what is no plain tensor stays as it is."""
    inner = type_name.removeprefix("tensor(").removesuffix(")")
    return name_of(BY_NAME[inner]) if type_name == f"tensor({inner})" and inner in BY_NAME else type_name


@rule("type/not-allowed", "error", Typed)
def not_allowed(typed: Typed) -> Faults:
    """An input is of a type that the operator does not take at this opset."""
    for place, slot, known in typed.known_inputs():
        if known.name not in slot.allowed:
            allowed = ", ".join(sorted(map(readable, slot.allowed)))
            message = f"{typed.schema.label} does not take {readable(known.name)} here"
            yield Fault(typed.node.input_where(place), message, f"it takes: {allowed}")


@rule("type/variable", "error", Typed)
def variable(typed: Typed) -> Faults:
    """Two inputs that must be of one type are of different types."""
    bound: dict[str, tuple[str, str]] = {}
    for place, slot, known in typed.known_inputs():
        if slot.variable and slot.homogeneous and known.name in slot.allowed:
            first, wanted = bound.setdefault(slot.variable, (f'"{typed.node.inputs[place]}"', known.name))
            if wanted != known.name:
                yield Fault(
                    typed.node.input_where(place),
                    f"it is {readable(known.name)}, {first} is {readable(wanted)}: {typed.schema.label} wants one type",
                    f"cast one of them (type variable {slot.variable})",
                )


@rule("type/absent-argument", "error", Typed)
def absent_argument(typed: Typed) -> Faults:
    """A function is called without an input that a node in its body cannot do without."""
    for place, known in enumerate(typed.inputs):
        slot = slot_at(typed.schema.inputs, place)
        if known is ABSENT and typed.node.inputs[place] and slot and not slot.optional and not slot.variadic:
            message = f'the function is called without it, {typed.schema.label} needs its input "{slot.name}"'
            yield Fault(typed.node.input_where(place), message)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A node whose outputs cannot be inferred: onnx's ``reason``, which is about its ``shape`` or its types."""

    node: Node
    schema: Schema
    inputs: Sequence[Known]
    reason: str
    about_shape: bool


@rule("type/refused", "error", Refusal)
def type_refused(refusal: Refusal) -> Faults:
    """The standard's inference refuses the node for the types of its inputs or its attributes."""
    if not refusal.about_shape:
        yield Fault(refusal.node.where, f"{refusal.reason} (inputs: {described(refusal.schema, refusal.inputs)})")


@rule("shape/refused", "error", Refusal)
def shape_refused(refusal: Refusal) -> Faults:
    """The standard's inference refuses the node for the shapes of its inputs: they cannot work together."""
    if refusal.about_shape:
        yield Fault(refusal.node.where, f"{refusal.reason} (inputs: {described(refusal.schema, refusal.inputs)})")


@dataclass(frozen=True, slots=True)
class Outcome:
    """An output of a node for which inference gives a shape with negative ``sizes``."""

    node: Node
    place: int
    sizes: Sequence[Dimension]
    schema: Schema
    inputs: Sequence[Known]


def negative_shape(proto: TypeProto) -> list[Dimension]:
    """The sizes of a tensor type that has a negative one; of others none."""
    dims = proto.tensor_type.shape.dim
    if all(dim.dim_value >= 0 for dim in dims):
        return []
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims]


@rule("shape/negative", "error", Outcome)
def negative(outcome: Outcome) -> Faults:
    """A node's output would have a negative size: a kernel is larger than what it slides over, say.

    Branches of an If are left out: the branch not taken may be written for other shapes.
    """
    message = f"the shape would be {shape_text(outcome.sizes)} (inputs: {described(outcome.schema, outcome.inputs)})"
    yield Fault(outcome.node.output_where(outcome.place), message)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A value of a graph that is declared (as ``role``) and known otherwise, from ``source``."""

    where: str
    role: str
    declared: Known
    known: Known
    source: str


def _contradiction(declaration: Declaration, role: str) -> Faults:
    declared, known = declaration.declared, declaration.known
    if declaration.role == role and UNKNOWN not in (declared, known) and contradict(known.type, declared.type):
        yield Fault(declaration.where, f"{declared} is declared, {declaration.source} is {known}")


@rule("type/declared-output", "error", Declaration)
def declared_output(declaration: Declaration) -> Faults:
    """A graph output is declared with another type or shape than the one it has."""
    yield from _contradiction(declaration, "output")


@rule("type/declared-value", "warning", Declaration)
def declared_value(declaration: Declaration) -> Faults:
    """A value_info declares another type or shape than the value has; who trusts it plans wrongly."""
    yield from _contradiction(declaration, "value_info")


@rule("type/declared-initializer", "error", Declaration)
def declared_initializer(declaration: Declaration) -> Faults:
    """A graph input is declared with another type or shape than the initializer that is its default."""
    yield from _contradiction(declaration, "input")

"""Rules on types and shapes: what flows into each node against what its operator takes, and declarations against both.

`onnxeval.checks.inference` walks the model and brings the parts these rules look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import NodeProto, TypeProto

from onnxeval.attributes import attribute_value
from onnxeval.checks.known import ABSENT, UNKNOWN, Known, contradict
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Node
from onnxeval.dtypes import BY_NAME, Tensor, name_of
from onnxeval.registry import Kernel, signature_of
from onnxeval.schema import Schema, Slot, slot_at
from onnxeval.values import Dimension, TensorType, shape_text, type_string

#: Constant inputs of no more elements than this are written out in messages.
_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Typed:
    """A node of the standard with what is known of its inputs. ``proto`` has the attributes of a call filled in."""

    node: Node
    proto: NodeProto
    schema: Schema
    inputs: Sequence[Known]

    @property
    def operator(self) -> str:
        return self.node.operator

    def known_inputs(self) -> Iterator[tuple[int, Slot, Known]]:
        return _known_inputs(self.schema.inputs, self.inputs)

    def elements(self, place: int) -> Tensor | None:
        """The elements of an input; None where they are not known, or of a type that the operator does not take."""
        slot = slot_at(self.schema.inputs, place)
        if place >= len(self.inputs) or slot is None or self.inputs[place].name not in slot.allowed:
            return None
        return self.inputs[place].array

    def attribute(self, name: str) -> Any:
        """The value of an integer or string attribute; the schema's default where it is not given."""
        for attribute in self.proto.attribute:
            if attribute.name == name:
                return attribute_value(attribute)
        return self.schema.attributes[name].default if name in self.schema.attributes else None


def _known_inputs(slots: Sequence[Slot], inputs: Sequence[Known]) -> Iterator[tuple[int, Slot, Known]]:
    for place, known in enumerate(inputs):
        slot = slot_at(slots, place)
        if slot is not None and known.name:
            yield place, slot, known


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


@dataclass(frozen=True, slots=True)
class Taken:
    """What a node's operator, ``label``, takes at its inputs, and what is known of them."""

    node: Node
    label: str
    slots: Sequence[Slot]
    inputs: Sequence[Known]

    def known_inputs(self) -> Iterator[tuple[int, Slot, Known]]:
        return _known_inputs(self.slots, self.inputs)


@cache
def slots_of(kernel: Kernel) -> tuple[Slot, ...]:
    """What a kernel says of the types of its inputs, for operators without a schema; nothing where it says nothing."""
    signature = signature_of(kernel)
    if (types := signature.types) is None:
        return ()
    names = (*signature.positional, *(("...",) if signature.variadic else ()))
    return tuple(
        Slot(
            name=name,
            allowed=frozenset(type_string(TensorType(dtype)) for dtype in types.allowed[types.letter(place)]),
            variable=types.letter(place),
            optional=True,
            variadic=place == len(signature.positional),
            homogeneous=True,
            min_arity=0,
        )
        for place, name in enumerate(names)
    )


@rule("type/not-allowed", "error", Taken)
def not_allowed(taken: Taken) -> Faults:
    """An input is of a type that the operator does not take at this opset.

    Why: the operator has no meaning for it there; runtimes refuse the model or have no kernel.

    Mend: cast the value, or import an opset in which the operator takes the type; the hint lists what it takes now.

    Example:
        g (int64[2] x) => (int64[2] y) { y = Floor(x) }

    Instead:
        g (float[2] x) => (float[2] y) { y = Floor(x) }
    """
    for place, slot, known in taken.known_inputs():
        if known.name not in slot.allowed:
            allowed = ", ".join(sorted(map(readable, slot.allowed)))
            message = f"{taken.label} does not take {readable(known.name)} here"
            yield Fault(taken.node.input_where(place), message, f"it takes: {allowed}")


@rule("type/variable", "error", Taken)
def variable(taken: Taken) -> Faults:
    """Two inputs that must be of one type are of different types.

    Why: ONNX never converts on its own.

    Mend: insert a Cast, or CastLike, before one of them.

    Example:
        g (float[2] x, double[2] z) => (float[2] y) { y = Add(x, z) }

    Instead:
        g (float[2] x, double[2] z) => (float[2] y) { w = CastLike(z, x)  y = Add(x, w) }
    """
    bound: dict[str, tuple[str, str]] = {}
    for place, slot, known in taken.known_inputs():
        if slot.variable and slot.homogeneous and known.name in slot.allowed:
            first, wanted = bound.setdefault(slot.variable, (f'"{taken.node.inputs[place]}"', known.name))
            if wanted != known.name:
                yield Fault(
                    taken.node.input_where(place),
                    f"it is {readable(known.name)}, {first} is {readable(wanted)}: {taken.label} wants one type",
                    f"cast one of them (type variable {slot.variable})",
                )


#: Since this version the text has a meaning for it.
_MOD_OF_FLOATS = 28


@rule("type/modulo", "error", Typed, "Mod")
def modulo(typed: Typed) -> Faults:
    """A Mod of floats has `fmod` 0, or none, before opset 28.

    Why: until then the text has integers alone for `fmod` 0; runtimes refuse the node.

    Mend: set `fmod` to 1; the result then has the sign of the dividend.

    Example:
        g (float[2] x, float[2] z) => (float[2] y) { y = Mod(x, z) }

    Instead:
        g (float[2] x, float[2] z) => (float[2] y) { y = Mod<fmod = 1>(x, z) }
    """
    for place, _, known in typed.known_inputs():
        is_float = known.name in ("tensor(float16)", "tensor(float)", "tensor(double)", "tensor(bfloat16)")
        if is_float and typed.schema.key.since_version < _MOD_OF_FLOATS and not typed.attribute("fmod"):
            message = f"it is {readable(known.name)}, {typed.schema.label} with fmod 0 takes integers"
            yield Fault(typed.node.input_where(place), message, "set fmod to 1")
            return


@rule("type/absent-argument", "error", Typed)
def absent_argument(typed: Typed) -> Faults:
    """A function is called without an input that a node in its body cannot do without.

    Why: the call leaves it out, so the node has nothing to read.

    Mend: pass the input, or let the body do without it.

    Example:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.add(x) }
        <domain: "loc", opset_import: ["": 21]> add (a, b) => (c) { c = Add(a, b) }

    Instead:
        <ir_version: 10, opset_import: ["": 21, "loc": 1]>
        g (float[2] x) => (float[2] y) { y = loc.add(x, x) }
        <domain: "loc", opset_import: ["": 21]> add (a, b) => (c) { c = Add(a, b) }
    """
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
    """The standard's inference refuses the node for the types of its inputs or its attributes.

    Why: what the node would make has no type.

    Mend: the message holds onnx's reason and what is known of the inputs.

    Example:
        g (float[2] x) => (int64[2] y) { y = RandomNormalLike<dtype = 7>(x) }

    Instead:
        g (float[2] x) => (double[2] y) { y = RandomNormalLike<dtype = 11>(x) }
    """
    if not refusal.about_shape:
        yield Fault(refusal.node.where, f"{refusal.reason} (inputs: {described(refusal.schema, refusal.inputs)})")


@rule("shape/refused", "error", Refusal)
def shape_refused(refusal: Refusal) -> Faults:
    """The standard's inference refuses the node for the shapes of its inputs.

    Why: they cannot work together.

    Mend: the message holds onnx's reason and what is known of the inputs, elements of small constants included.

    Example:
        g (float[2, 3] x) => (float[N, M] y) { y = Flatten<axis = 3>(x) }

    Instead:
        g (float[2, 3] x) => (float[6, 1] y) { y = Flatten<axis = 2>(x) }
    """
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
    """A node's output would have a negative size. Branches of an If are left out: the branch not taken may be written
    for other shapes.

    Why: a kernel is larger than what it slides over, say, so the node fails on these shapes.

    Mend: pad the input, take a smaller kernel, or correct the declared input.

    Example:
        g (float[1, 1, 2, 2] x, float[1, 1, 4, 4] w) => (float[1, 1, N, M] y) { y = Conv(x, w) }

    Instead:
        g (float[1, 1, 5, 5] x, float[1, 1, 4, 4] w) => (float[1, 1, 2, 2] y) { y = Conv(x, w) }
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
    """A graph output is declared with another type or shape than the one it has.

    Why: who reads the output relies on the declaration; runtimes refuse a wrong type and warn of a wrong shape.

    Mend: declare what the message says the value is, or find the node that went wrong on the way.

    Example:
        g (float[2, 3] x) => (float[2, 4] y) { y = Neg(x) }

    Instead:
        g (float[2, 3] x) => (float[2, 3] y) { y = Neg(x) }
    """
    yield from _contradiction(declaration, "output")


@rule("type/declared-value", "warning", Declaration)
def declared_value(declaration: Declaration) -> Faults:
    """A `value_info` declares another type or shape than the value has.

    Why: it changes no result, but who trusts it plans wrongly: converters, quantisers, viewers.

    Mend: remove the declaration, or let `onnx.shape_inference` write it again.

    Example:
        g (float[2] x) => (float[2] y) <float[3] h> { h = Neg(x)  y = Abs(h) }

    Instead:
        g (float[2] x) => (float[2] y) <float[2] h> { h = Neg(x)  y = Abs(h) }
    """
    yield from _contradiction(declaration, "value_info")


@rule("type/declared-initializer", "error", Declaration)
def declared_initializer(declaration: Declaration) -> Faults:
    """A graph input is declared with another type or shape than the initializer that is its default.

    Why: what may be fed and what is there by default differ; one of the two cannot work.

    Mend: declare the input as the initializer is.

    Example:
        g (float[2] x, float[3] w) => (float[2] y) { h = Size(w)  z = CastLike(h, x)  y = Add(x, z) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[1, 2])
    """
    yield from _contradiction(declaration, "input")

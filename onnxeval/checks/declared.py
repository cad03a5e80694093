"""Rules on the types that inputs, outputs and values of graphs declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from onnx import TensorProto, TypeProto, ValueInfoProto

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Scope
from onnxeval.values import shape_text


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


def declared_alike(scope: Scope) -> Iterable[Iterator[Declared]]:
    """The values of a graph that have declarations, those of one role and type together."""
    for (role, _), values in scope.declarations.items():
        yield (Declared(f'{scope.where}/{role}[{place}] "{value.name}"', role, value, scope) for place, value in values)


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
    """An input or output of the main graph declares no type.

    Why: who feeds or reads it cannot know what it is.

    Mend: declare the type. For outputs, `--fix` declares what inference tells.

    Example:
        g (float[2] x) => (float[2] y) { y = Neg(x) }
        >>> model.graph.output[0].ClearField("type")
    """
    if value.must_be_complete:
        kind = value.proto.type.WhichOneof("value")
        if kind is None:
            yield Fault(value.where, "no type is declared")
            return
        for field in _MUST_HAVE[kind]:
            if not getattr(value.proto.type, kind).HasField(field):
                yield Fault(value.where, f"the declared {kind} has no {field}")
            elif value.role == "input" and TensorProto.UNDEFINED in element_types(value.proto.type):
                yield Fault(value.where, "an undefined element type is declared")


@rule("graph/no-shape", "error", Declared)
def no_shape(value: Declared) -> Faults:
    """A tensor input or output of the main graph declares no shape, not even one of open dimensions.

    Why: the standard asks for one, and the rank is what users of the model need first.

    Mend: declare the shape, with names for the dimensions that are open. For outputs, `--fix` declares what inference
    tells.

    Example:
        g (float x) => (float y) { y = Neg(x) }
        >>> model.graph.output[0].type.tensor_type.ClearField("shape")
    """
    if value.must_be_complete:
        kind = value.proto.type.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type") and not getattr(value.proto.type, kind).HasField("shape"):
            yield Fault(value.where, "no shape is declared", "name the dimensions whose sizes are open")


@rule("graph/unknown-element-type", "error", Declared)
def unknown_element_type(value: Declared) -> Faults:
    """A declared type has an element type that the standard does not know.

    Why: nothing can be of that type.

    Mend: write one of the numbers of `TensorProto.DataType`.

    Example:
        >>> model.graph.output[0].type.tensor_type.elem_type = 99
    """
    for number in element_types(value.proto.type):
        if number not in TensorProto.DataType.values():
            yield Fault(value.where, f"element type {number} is unknown")


@rule("graph/negative-size", "warning", Declared)
def negative_size(value: Declared) -> Faults:
    """A declared dimension is negative.

    Why: it is taken for an open one here, but the standard has no such thing, and other tools compare it as a size.

    Mend: leave the dimension out of the shape's message, or give it a name.

    Example:
        >>> model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = -1

    Instead:
        g (float[N] x) => (float[N] y) { y = Neg(x) }
    """
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
    for inner in _inner_types(declared):
        yield from _shapes(inner)


def element_types(declared: TypeProto) -> Iterator[int]:
    """The numbers of the element types in a type, a map's key among them."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(declared, kind).elem_type
    elif kind == "map_type":
        yield declared.map_type.key_type
    for inner in _inner_types(declared):
        yield from element_types(inner)


def kinds(declared: TypeProto) -> Iterator[str]:
    """What a type is made of: ``sequence_type``, ``tensor_type``."""
    if kind := declared.WhichOneof("value"):
        yield str(kind)
    for inner in _inner_types(declared):
        yield from kinds(inner)


def _inner_types(declared: TypeProto) -> Iterator[TypeProto]:
    kind = declared.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        yield getattr(declared, kind).elem_type
    elif kind == "map_type":
        yield declared.map_type.value_type

"""A node's attributes as kernels take them (see ops/README.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from onnx import AttributeProto

from onnxeval.errors import ModelError
from onnxeval.external import NO_FILES, Files
from onnxeval.tensors import array_from, dense_from, type_from

_FIELDS: Mapping[str, int] = MappingProxyType(
    {
        "f": AttributeProto.FLOAT,
        "i": AttributeProto.INT,
        "s": AttributeProto.STRING,
        "t": AttributeProto.TENSOR,
        "g": AttributeProto.GRAPH,
        "sparse_tensor": AttributeProto.SPARSE_TENSOR,
        "tp": AttributeProto.TYPE_PROTO,
        "floats": AttributeProto.FLOATS,
        "ints": AttributeProto.INTS,
        "strings": AttributeProto.STRINGS,
        "tensors": AttributeProto.TENSORS,
        "graphs": AttributeProto.GRAPHS,
        "sparse_tensors": AttributeProto.SPARSE_TENSORS,
        "type_protos": AttributeProto.TYPE_PROTOS,
    }
)


def kind_of(attribute: AttributeProto) -> int:
    """The attribute's kind; files of IR version 1 leave it unsaid, then the field in use tells."""
    if attribute.type:
        return attribute.type
    return next((_FIELDS[f.name] for f, _ in attribute.ListFields() if f.name in _FIELDS), attribute.type)


def kind_name(kind: int) -> str:
    """``INT``, ``FLOATS``: an attribute type as the standard writes it."""
    return AttributeProto.AttributeType.Name(kind) if kind in AttributeProto.AttributeType.values() else str(kind)


def attribute_value(attribute: AttributeProto, files: Files = NO_FILES) -> Any:
    """An attribute as kernels take it (see ops/README.md); graphs stay GraphProtos.

    Raises ModelError where it contradicts itself.
    """
    kinds = AttributeProto
    match kind_of(attribute):
        case kinds.INT:
            return attribute.i
        case kinds.FLOAT:
            return attribute.f
        case kinds.STRING:
            return _text(attribute.name, attribute.s)
        case kinds.INTS:
            return tuple(attribute.ints)
        case kinds.FLOATS:
            return tuple(attribute.floats)
        case kinds.STRINGS:
            return tuple(_text(attribute.name, s) for s in attribute.strings)
        case kinds.TENSOR:
            return array_from(attribute.t, files)
        case kinds.TENSORS:
            return tuple(array_from(t, files) for t in attribute.tensors)
        case kinds.SPARSE_TENSOR:
            return dense_from(attribute.sparse_tensor, files)
        case kinds.SPARSE_TENSORS:
            return tuple(dense_from(t, files) for t in attribute.sparse_tensors)
        case kinds.TYPE_PROTO:
            return type_from(attribute.tp)
        case kinds.TYPE_PROTOS:
            return tuple(map(type_from, attribute.type_protos))
        case kinds.GRAPH:
            return attribute.g
        case kinds.GRAPHS:
            return tuple(attribute.graphs)
        case kind:
            raise ModelError(f'attribute "{attribute.name}" has the unknown type {kind}')


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ModelError(f'attribute "{name}" holds a string that is not UTF-8: {data[:20]!r}') from None


def resolved(
    attributes: Iterable[AttributeProto], references: Mapping[str, AttributeProto] | None
) -> list[AttributeProto]:
    """A node's attributes with references to the enclosing function's put in; one that was not given vanishes.

    ``references`` is None outside functions, where a reference is a ModelError.
    """
    resolved = []
    for attribute in attributes:
        if not attribute.ref_attr_name:
            resolved.append(attribute)
        elif references is None:
            raise ModelError(
                f'the attribute "{attribute.name}" refers to "{attribute.ref_attr_name}", but stands in no function'
            )
        elif (given := references.get(attribute.ref_attr_name)) is not None:
            copy = AttributeProto()
            copy.CopyFrom(given)
            copy.name = attribute.name
            resolved.append(copy)
    return resolved

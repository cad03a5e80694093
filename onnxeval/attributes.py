"""A node's attributes as kernels take them (see ops/README.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


#: How to read the value of an attribute of each kind.
_READERS: Mapping[int, Callable[[AttributeProto, Files], Any]] = MappingProxyType(
    {
        AttributeProto.INT: lambda attribute, _: attribute.i,
        AttributeProto.FLOAT: lambda attribute, _: attribute.f,
        AttributeProto.STRING: lambda attribute, _: _text(attribute.name, attribute.s),
        AttributeProto.INTS: lambda attribute, _: tuple(attribute.ints),
        AttributeProto.FLOATS: lambda attribute, _: tuple(attribute.floats),
        AttributeProto.STRINGS: lambda attribute, _: tuple([_text(attribute.name, s) for s in attribute.strings]),
        AttributeProto.TENSOR: lambda attribute, files: array_from(attribute.t, files),
        AttributeProto.TENSORS: lambda attribute, files: tuple([array_from(t, files) for t in attribute.tensors]),
        AttributeProto.SPARSE_TENSOR: lambda attribute, files: dense_from(attribute.sparse_tensor, files),
        AttributeProto.SPARSE_TENSORS: lambda attribute, files: tuple(
            [dense_from(t, files) for t in attribute.sparse_tensors]
        ),
        AttributeProto.TYPE_PROTO: lambda attribute, _: type_from(attribute.tp),
        AttributeProto.TYPE_PROTOS: lambda attribute, _: tuple(map(type_from, attribute.type_protos)),
        AttributeProto.GRAPH: lambda attribute, _: attribute.g,
        AttributeProto.GRAPHS: lambda attribute, _: tuple(attribute.graphs),
    }
)


def attribute_value(attribute: AttributeProto, files: Files = NO_FILES) -> Any:
    """An attribute as kernels take it (see ops/README.md); graphs stay GraphProtos.

    Raises ModelError where it contradicts itself.
    """
    kind = kind_of(attribute)
    if (read := _READERS.get(kind)) is None:
        raise ModelError(f'attribute "{attribute.name}" has the unknown type {kind}')
    return read(attribute, files)


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

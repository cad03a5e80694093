"""Values as files of ONNX's protobuf messages (``input_0.pb``): read by their type, written without loss.

Raises ValueError for what cannot be read or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from google.protobuf.message import DecodeError
from onnx import MapProto, OptionalProto, SequenceProto, TensorProto

from onnxeval.dtypes import ELEMENT_TYPES, STRING, Tensor
from onnxeval.errors import ModelError
from onnxeval.tensors import array_from, map_from, optional_from, packed, sequence_from
from onnxeval.values import EmptyOptional, MapType, OptionalType, Sequence, SequenceType, Value, ValueType

from .source import Reading, Source
from .writing import Target, Typed

_SEQUENCE_FIELDS: dict[type, tuple[int, str]] = {
    TensorProto: (SequenceProto.TENSOR, "tensor_values"),
    SequenceProto: (SequenceProto.SEQUENCE, "sequence_values"),
    MapProto: (SequenceProto.MAP, "map_values"),
    OptionalProto: (SequenceProto.OPTIONAL, "optional_values"),
}
_OPTIONAL_FIELDS: dict[type, tuple[int, str]] = {
    TensorProto: (OptionalProto.TENSOR, "tensor_value"),
    SequenceProto: (OptionalProto.SEQUENCE, "sequence_value"),
    MapProto: (OptionalProto.MAP, "map_value"),
}


class ProtoFile(Source):
    """One value as a protobuf message of ONNX."""

    def __init__(self, path: Path, reading: Reading) -> None:
        super().__init__(str(path), reading)
        self._path = path

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        return parse_value(self._path.read_bytes(), wanted)[1]


def parse_value(data: bytes, value_type: ValueType | None) -> tuple[str, Value]:
    """The name and the value in a file that holds a value of ``value_type``; without one, a tensor."""
    match value_type:
        case SequenceType(element):
            sequence = _parsed(SequenceProto(), data)
            return sequence.name, _guarded(lambda: Sequence(sequence_from(sequence), element))
        case OptionalType(element):
            optional = _parsed(OptionalProto(), data)
            value = _guarded(lambda: optional_from(optional))
            return optional.name, EmptyOptional(element) if isinstance(value, EmptyOptional) else value
        case MapType():
            entries = _parsed(MapProto(), data)
            return entries.name, _guarded(lambda: map_from(entries))
        case _:
            tensor = _parsed(TensorProto(), data)
            return tensor.name, _guarded(lambda: array_from(tensor))


def _parsed(message: Any, data: bytes) -> Any:
    try:
        message.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise ValueError(f"not a {type(message).__name__}: {error}") from error
    return message


def _guarded(read: Any) -> Any:
    try:
        return read()
    except ModelError as error:
        raise ValueError(str(error)) from error


def message_of(
    value: Value, name: str = "", value_type: ValueType | None = None
) -> TensorProto | SequenceProto | OptionalProto | MapProto:
    """The message of a value, which `parse_value` reads again with the same type."""
    if isinstance(value_type, OptionalType) and not isinstance(value, EmptyOptional):
        message = message_of(value)
        kind, field = _OPTIONAL_FIELDS[type(message)]
        optional = OptionalProto(name=name, elem_type=kind)
        getattr(optional, field).CopyFrom(message)
        return optional
    if isinstance(value, np.ndarray):
        return _tensor(value, name)
    if isinstance(value, list):
        return _sequence(value, name)
    if isinstance(value, dict):
        return _map(value, name)
    if isinstance(value, EmptyOptional):
        return OptionalProto(name=name, elem_type=OptionalProto.UNDEFINED)
    raise ValueError(f"{type(value).__name__} is no ONNX value")


def _tensor(array: Tensor, name: str) -> TensorProto:
    if array.dtype not in ELEMENT_TYPES:
        raise ValueError(f"{array.dtype} is no ONNX element type")
    tensor = TensorProto(name=name, data_type=ELEMENT_TYPES[array.dtype], dims=array.shape)
    if array.dtype == STRING:
        tensor.string_data.extend(str(text).encode() for text in array.ravel())
    else:
        tensor.raw_data = packed(np.ascontiguousarray(array).ravel())
    return tensor


def _sequence(items: list[Any], name: str) -> SequenceProto:
    sequence = SequenceProto(name=name)
    kinds = set()
    for item in items:
        message = message_of(item)
        kind, field = _SEQUENCE_FIELDS[type(message)]
        kinds.add(kind)
        getattr(sequence, field).append(message)
    if len(kinds) > 1:
        raise ValueError("the sequence holds values of different kinds")
    sequence.elem_type = kinds.pop() if kinds else SequenceProto.TENSOR
    return sequence


def _map(entries: dict[Any, Any], name: str) -> MapProto:
    message = MapProto(name=name, key_type=TensorProto.INT64)
    if any(isinstance(key, str) for key in entries):
        message.key_type = TensorProto.STRING
        message.string_keys.extend(key.encode() for key in entries)
    else:
        message.keys.extend(int(key) for key in entries)
    arrays = [v if isinstance(v, (np.ndarray, list, dict)) else _scalar(v) for v in entries.values()]
    message.values.CopyFrom(_sequence(arrays, ""))
    return message


def _scalar(value: Any) -> Tensor:
    if isinstance(value, str):
        array = np.empty((), object)
        array[()] = value
        return array
    return np.asarray(value)


class Proto(Target):
    """The only output, as one message."""

    what = "a .pb file"

    def write(self, file: BinaryIO, values: Mapping[str, Typed], _notes: list[str]) -> None:
        name, (value, value_type) = self.only(values)
        file.write(message_of(value, name, value_type).SerializeToString())

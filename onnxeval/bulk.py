"""Large model files: the raw data of their tensors is read straight into arrays, beside the message.

A parsed message keeps its own copy of all raw data and hands out further ones, so that weights inside a model would be
held twice, and three times while it is read. Here they are held once.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, TensorProto

from onnxeval.dtypes import Tensor

#: Data read beside a message, by the name of its file and its offset in it.
Held: TypeAlias = Mapping[tuple[str, int], Tensor]

#: Files from this size on are worth it, and in them the data of tensors from that size on.
LARGE_FILE = 2**20
_LARGE_DATA = 2**16

#: Files of more fields than this, and of less bytes for each, are made of something else than weights, and slow to
#: read here.
_MOST_FIELDS = 2**20
_FEWEST_BYTES = 2**10

#: Protobuf's parser goes no deeper.
_DEEPEST = 100

_LONGEST_NUMBER = 10
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_TENSOR = TensorProto.DESCRIPTOR
_RAW_DATA = _TENSOR.fields_by_name["raw_data"].number
#: What a tensor has besides its data; with any other field it is left to the parser as it is.
_SIDE_FIELDS = frozenset(
    _TENSOR.fields_by_name[name].number for name in ("dims", "data_type", "name", "doc_string", "metadata_props")
)


def read_apart(path: Path) -> tuple[ModelProto, dict[tuple[str, int], Tensor]] | None:
    """A model without its large raw data, and that data; None where the file is not as simple as that.

    Such data stands in the model as external data of its own file. Raises what protobuf does for a message that does
    not parse, OSError where the file cannot be read.
    """
    held: dict[tuple[str, int], Tensor] = {}
    with open(path, "rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        try:
            message = _Reader(stream, path.name, held, size).without_data(size, ModelProto.DESCRIPTOR)
        except _NotSimpleError:
            return None
    return ModelProto.FromString(message), held


class _NotSimpleError(Exception):
    """The file uses what the reader does not know."""


class _Reader:
    """Copies the wire format of a message from a stream, large raw data left out."""

    def __init__(self, stream: BufferedReader, location: str, held: dict[tuple[str, int], Tensor], size: int) -> None:
        self.stream = stream
        self.location = location
        self.held = held
        self.fields_left = min(_MOST_FIELDS, size // _FEWEST_BYTES)

    def without_data(self, end: int, descriptor: Any, depth: int = 0) -> bytes:
        """The message that ends at ``end``."""
        if depth > _DEEPEST:
            raise _NotSimpleError
        parts: list[bytes] = []
        fields = descriptor.fields_by_number
        while (place := self.stream.tell()) < end:
            key, number, length = self._head(place, end)
            inner = fields[number].message_type if number in fields else None
            if inner is None or length < _LARGE_DATA or key[0] & 7 != _LENGTH:
                parts += (key, self._bytes(length))
                continue
            place = self.stream.tell()
            if inner is _TENSOR:
                message = self._tensor_without_data(place + length)
            else:
                message = self.without_data(place + length, inner, depth + 1)
            parts += (_varint(number << 3 | _LENGTH), _varint(len(message)), message)
        return b"".join(parts)

    def _tensor_without_data(self, end: int) -> bytes:
        start = self.stream.tell()
        parts: list[bytes] = []
        data: tuple[int, int] | None = None
        simple = True
        while (place := self.stream.tell()) < end:
            key, number, length = self._head(place, end)
            if number == _RAW_DATA and data is None and length >= _LARGE_DATA and key[0] & 7 == _LENGTH:
                data = (self.stream.tell(), length)
                self.stream.seek(length, 1)
            else:
                simple = simple and number in _SIDE_FIELDS
                parts += (key, self._bytes(length))
        if data is None or not simple:
            self.stream.seek(start)
            return self._bytes(end - start)
        parts.append(self._set_aside(*data))
        self.stream.seek(end)
        return b"".join(parts)

    def _set_aside(self, offset: int, length: int) -> bytes:
        """Read data into an array of its own; what the tensor has instead."""
        array = np.empty(length, np.uint8)
        self.stream.seek(offset)
        if self.stream.readinto(array.data) < length:
            raise _NotSimpleError
        self.held[self.location, offset] = array
        reference = TensorProto(data_location=TensorProto.EXTERNAL)
        for key, value in {"location": self.location, "offset": offset, "length": length}.items():
            reference.external_data.add(key=key, value=str(value))
        message: bytes = reference.SerializeToString()
        return message

    def _head(self, place: int, end: int) -> tuple[bytes, int, int]:
        """Of the field at ``place``: the bytes before its content, its number, how long its content is.

        The content does not go beyond ``end``.
        """
        self.fields_left -= 1
        if self.fields_left < 0:
            raise _NotSimpleError
        key, value = self._number()
        wire_type = value & 7
        if wire_type == _LENGTH:
            more, length = self._number()
            key += more
        elif wire_type == _VARINT:
            more, _ = self._number()
            key, length = key + more, 0
        elif wire_type in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if wire_type == _EIGHT_BYTES else 4
        else:
            raise _NotSimpleError
        if place + len(key) + length > end:
            raise _NotSimpleError
        return key, value >> 3, length

    def _number(self) -> tuple[bytes, int]:
        """A base-128 number: its bytes and its value."""
        data = self._bytes(1)
        value = data[0] & 127
        while data[-1] > 127:
            if len(data) == _LONGEST_NUMBER:
                raise _NotSimpleError
            data += self._bytes(1)
            value |= (data[-1] & 127) << 7 * (len(data) - 1)
        return data, value

    def _bytes(self, count: int) -> bytes:
        data: bytes = self.stream.read(count)
        if len(data) < count:
            raise _NotSimpleError
        return data


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)

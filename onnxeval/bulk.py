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
#: Bytes that are looked at together for the fields in them.
_WINDOW = 2**13
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_TENSOR = TensorProto.DESCRIPTOR
_RAW_DATA = _TENSOR.fields_by_name["raw_data"].number << 3 | _LENGTH
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
            message = _Reader(stream, path.name, held, size).without_data(0, size, ModelProto.DESCRIPTOR)
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
        self.window = b""  # the part of the stream that begins at ``window_place``
        self.window_place = 0

    def without_data(self, start: int, end: int, descriptor: Any, depth: int = 0) -> bytes:
        """The message between these places."""
        if depth > _DEEPEST:
            raise _NotSimpleError
        parts: list[bytes] = []
        fields = descriptor.fields_by_number
        copied = place = start
        while place < end:
            key, content, after = self._field(place, end)
            if after - content >= _LARGE_DATA and key & 7 == _LENGTH and key >> 3 in fields:
                inner = fields[key >> 3].message_type
                if inner is not None:
                    if inner is _TENSOR:
                        message = self._tensor_without_data(content, after)
                    else:
                        message = self.without_data(content, after, inner, depth + 1)
                    parts += (self._bytes(copied, place), _varint(key), _varint(len(message)), message)
                    copied = after
            place = after
        return b"".join([*parts, self._bytes(copied, end)])

    def _tensor_without_data(self, start: int, end: int) -> bytes:
        parts: list[bytes] = []
        copied = place = start
        data: tuple[int, int] | None = None
        while place < end:
            key, content, after = self._field(place, end)
            if key == _RAW_DATA and data is None and after - content >= _LARGE_DATA:
                data = (content, after - content)
                parts.append(self._bytes(copied, place))
                copied = after
            elif key >> 3 not in _SIDE_FIELDS:
                return self._bytes(start, end)
            place = after
        if data is None:
            return self._bytes(start, end)
        return b"".join([*parts, self._bytes(copied, end), self._set_aside(*data)])

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

    def _field(self, place: int, end: int) -> tuple[int, int, int]:
        """Of the field at ``place``: its number and wire type in one, where its content begins, where it ends.

        The content does not go beyond ``end``.
        """
        self.fields_left -= 1
        if self.fields_left < 0:
            raise _NotSimpleError
        key, content = self._number(place)
        wire_type = key & 7
        if wire_type == _LENGTH:
            length, content = self._number(content)
        elif wire_type == _VARINT:
            length = self._number(content)[1] - content
        elif wire_type in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if wire_type == _EIGHT_BYTES else 4
        else:
            raise _NotSimpleError
        if content + length > end:
            raise _NotSimpleError
        return key, content, content + length

    def _number(self, place: int) -> tuple[int, int]:
        """The base-128 number at ``place``, and where it ends."""
        at = place - self.window_place
        if not 0 <= at < len(self.window) - _LONGEST_NUMBER:
            self.window, self.window_place, at = self._bytes(place, place + _WINDOW, whole=False), place, 0
        value = shift = 0
        while (byte := self.window[at]) > 127:
            value |= (byte & 127) << shift
            shift += 7
            at += 1
            if shift == 7 * _LONGEST_NUMBER:
                raise _NotSimpleError
        return value | byte << shift, at + 1 + self.window_place

    def _bytes(self, start: int, end: int, *, whole: bool = True) -> bytes:
        """The stream between two places; where it need not be the whole of it, as far as there is any."""
        self.stream.seek(start)
        data: bytes = self.stream.read(end - start)
        if whole and len(data) < end - start:
            raise _NotSimpleError
        return data


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)

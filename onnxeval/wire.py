"""Where the bytes of a model stop being protobuf: its parser only says that they do."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto

#: Protobuf's parser goes no deeper.
_DEEPEST = 100
#: After this many fields it takes too long to be worth while.
_MOST_FIELDS = 2**20
_LONGEST_NUMBER = 10
#: Of a longer way only so many fields at either end are told.
_ENDS_OF_PATH = 5
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_WIRE_TYPES = {
    FieldDescriptor.TYPE_FLOAT: _FOUR_BYTES,
    FieldDescriptor.TYPE_DOUBLE: _EIGHT_BYTES,
    FieldDescriptor.TYPE_STRING: _LENGTH,
    FieldDescriptor.TYPE_BYTES: _LENGTH,
    FieldDescriptor.TYPE_MESSAGE: _LENGTH,
}


class _BrokenError(Exception):
    """What is wrong, the byte where it is, and the way there through the fields."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.what, self.at = what, at
        self.path: list[str] = []


class _TooLongError(Exception):
    """The message has too many fields to be looked at here."""


def broken_place(data: bytes) -> str:
    """What is wrong with bytes that do not parse as a ModelProto, and where; "" where this does not tell."""
    walk = _Walk(data)
    try:
        walk.message(0, len(data), ModelProto.DESCRIPTOR, 0)
    except _BrokenError as broken:
        if walk.known == 0:
            return "" if broken.path else "it does not begin as a model does"
        path = broken.path[::-1]
        if len(path) > 2 * _ENDS_OF_PATH:
            path = [*path[:_ENDS_OF_PATH], "...", *path[-_ENDS_OF_PATH:]]
        where = f" in {'/'.join(path)}" if path else ""
        return f"{broken.what} (at byte {broken.at:,}{where})"
    except _TooLongError:
        pass
    return ""


class _Walk:
    """A walk through the fields of a message, as deep as protobuf's parser goes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fields = 0
        #: How many fields were what ONNX has there.
        self.known = 0

    def message(self, place: int, end: int, descriptor: Any, depth: int) -> None:
        """Go through the message from ``place`` to ``end``."""
        counts: dict[int, int] = {}
        if depth > _DEEPEST:
            raise _BrokenError(f"messages stand more than {_DEEPEST} deep in one another", place)
        while place < end:
            start = place
            self.fields += 1
            if self.fields > _MOST_FIELDS:
                raise _TooLongError
            key, place = self._number(place, end)
            number, wire_type = key >> 3, key & 7
            field = descriptor.fields_by_number.get(number)
            name = "" if field is None else field.name
            if field is not None and field.is_repeated:
                name += f"[{counts.setdefault(number, 0)}]"
                counts[number] += 1
            if number == 0 or wire_type not in (_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES):
                raise _BrokenError("there is no field that begins like this", start)
            is_known = field is not None and wire_type in (_WIRE_TYPES.get(field.type, _VARINT), _LENGTH)
            if not is_known and self.known == 0:
                raise _BrokenError("there is no such field", start)
            self.known += is_known
            if wire_type == _VARINT:
                _, place = self._number(place, end)
                continue
            length = 8 if wire_type == _EIGHT_BYTES else 4
            if wire_type == _LENGTH:
                length, place = self._number(place, end)
            if length > end - place:
                raise self._too_short(name or f"field {number}", length, end - place, start, end)
            if is_known and field.message_type is not None:
                try:
                    self.message(place, place + length, field.message_type, depth + 1)
                except _BrokenError as broken:
                    broken.path.append(name)
                    raise
            place += length

    def _number(self, place: int, end: int) -> tuple[int, int]:
        """A base-128 number, and the place after it."""
        value = 0
        for count in range(_LONGEST_NUMBER):
            if place + count >= end:
                is_cut = end == len(self.data)
                raise _BrokenError("the file is cut short" if is_cut else "a number is cut short", place)
            byte = self.data[place + count]
            value |= (byte & 127) << 7 * count
            if byte < 128:
                return value, place + count + 1
        raise _BrokenError(f"a number is longer than {_LONGEST_NUMBER} bytes", place)

    def _too_short(self, what: str, length: int, left: int, at: int, end: int) -> _BrokenError:
        if end == len(self.data):
            return _BrokenError(f"the file is cut short: {what} takes {length:,} bytes, {left:,} are left", at)
        return _BrokenError(f"{what} takes {length:,} bytes, {left:,} are left for it", at)

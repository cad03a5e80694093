"""What is known of a value without running anything: its type, and its elements where they are few and fixed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onnx import TensorProto, TypeProto, numpy_helper

from onnxeval.dtypes import BY_NAME, DType, Tensor, is_integer
from onnxeval.errors import ModelError
from onnxeval.schema import Schema, slot_at
from onnxeval.tensors import array_from, type_from, type_proto
from onnxeval.values import (
    Dimension,
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    ValueType,
    type_string,
)

#: Elements are carried on up to these numbers: integers may be a shape, others are a scalar or a scale for each axis.
_MOST_INTEGERS = 1024
_MOST_OTHERS = 8
#: Inference makes a shape of as many dimensions as a list of sizes is long: it is asked up to this rank.
_MOST_DIMENSIONS = 64


class Known:
    """The type of a value (None where unknown), as schemas write it ("" where unknown), and its elements.

    ``proto`` is the type as onnx's inference gets it.
    """

    __slots__ = ("data", "name", "proto", "type")

    def __init__(self, value_type: ValueType | None, data: TensorProto | None = None) -> None:
        self.type = value_type
        self.proto: TypeProto = type_proto(value_type)
        name = type_string(value_type)
        self.name = "" if "unknown" in name else name
        self.data = data

    @property
    def shape(self) -> tuple[Dimension, ...] | None:
        return self.type.shape if isinstance(self.type, TensorType) else None

    @property
    def as_sizes(self) -> TypeProto:
        """The type of a list of sizes as inference gets it: one that is too long to be a shape is of any length."""
        match self.type:
            case TensorType(dtype, (int(length),)) if length > _MOST_DIMENSIONS:
                return type_proto(TensorType(dtype, (None,)))
            case _:
                return self.proto

    @property
    def array(self) -> Tensor | None:
        """The elements; None where they are not known."""
        return None if self.data is None else array_from(self.data)

    def __str__(self) -> str:
        return "unknown" if self.type is None else str(self.type)


UNKNOWN = Known(None)
#: Stands for an input that is left out.
ABSENT = Known(None)


class KnownTable:
    """One object for equal knowledge, so that it can be compared by identity."""

    def __init__(self) -> None:
        self._by_type: dict[tuple[ValueType, bytes | None], Known] = {}
        self._by_proto: dict[bytes, Known] = {}
        self._by_shape: dict[tuple[DType, tuple[int, ...]], Known] = {}
        self._merged: dict[tuple[Known, Known], Known] = {}

    def of_type(self, value_type: ValueType | None, data: TensorProto | None = None) -> Known:
        if value_type is None:
            return UNKNOWN
        key = (value_type, None if data is None else data.SerializeToString())
        if key not in self._by_type:
            self._by_type[key] = Known(value_type, data)
        return self._by_type[key]

    def of_proto(self, proto: TypeProto) -> Known:
        """The knowledge in a TypeProto; unknown where it is one the standard does not know."""
        return self.of_bytes(proto.SerializeToString())

    def of_bytes(self, data: bytes) -> Known:
        """The knowledge in a TypeProto's bytes."""
        if data not in self._by_proto:
            try:
                self._by_proto[data] = self.of_type(type_from(TypeProto.FromString(data)))
            except ModelError:
                self._by_proto[data] = UNKNOWN
        return self._by_proto[data]

    def of_tensor(self, tensor: TensorProto, dtype: DType) -> Known:
        """The type of a tensor, with its elements where they are few; its data must be known to be right."""
        shape = tuple(tensor.dims[:])
        few = math.prod(shape) <= (_MOST_INTEGERS if is_integer(dtype) else _MOST_OTHERS)
        if not few or tensor.data_location == TensorProto.EXTERNAL:
            if (known := self._by_shape.get((dtype, shape))) is None:
                known = self._by_shape[dtype, shape] = self.of_type(TensorType(dtype, shape))
            return known
        data = TensorProto()
        data.CopyFrom(tensor)
        data.ClearField("name")
        return self.of_type(TensorType(dtype, shape), data)

    def of_array(self, array: Tensor) -> Known:
        """The type of an array, with its elements where they are few."""
        return self.of_tensor(numpy_helper.from_array(array), array.dtype)

    def merged(self, inferred: Known, declared: Known) -> Known:
        """Both put together, which must not contradict; what is inferred goes first."""
        key = (inferred, declared)
        if key not in self._merged:
            self._merged[key] = self.of_type(_merged(inferred.type, declared.type), inferred.data)
        return self._merged[key]


def contradict(one: ValueType | None, other: ValueType | None) -> bool:
    """Whether no value can be of both types. What is unknown contradicts nothing, nor do dimensions' names."""
    match one, other:
        case (None, _) | (_, None):
            return False
        case TensorType(), TensorType():
            if one.dtype is not None and other.dtype is not None and one.dtype != other.dtype:
                return True
            if one.shape is None or other.shape is None:
                return False
            return len(one.shape) != len(other.shape) or any(map(_sizes_differ, one.shape, other.shape))
        case SequenceType(), SequenceType():
            return contradict(one.element, other.element)
        case OptionalType(), OptionalType():
            return contradict(one.element, other.element)
        case MapType(), MapType():
            return one.key != other.key or contradict(one.value, other.value)
        case _:
            return True


def _sizes_differ(one: Dimension, other: Dimension) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


def _merged(inferred: ValueType | None, declared: ValueType | None) -> ValueType | None:
    if inferred is None or declared is None:
        return inferred or declared
    if not isinstance(inferred, TensorType) or not isinstance(declared, TensorType):
        return inferred
    dtype = inferred.dtype if inferred.dtype is not None else declared.dtype
    if inferred.shape is None or declared.shape is None:
        return TensorType(dtype, declared.shape if inferred.shape is None else inferred.shape)
    return TensorType(dtype, tuple(map(_size, inferred.shape, declared.shape)))


def _size(inferred: Dimension, declared: Dimension) -> Dimension:
    return inferred if isinstance(inferred, int) or declared is None else declared


def guessed_outputs(schema: Schema, inputs: Sequence[Known], count: int, table: KnownTable) -> list[Known]:
    """The outputs' element types, as far as the schema's type variables tell, where inference gave nothing."""
    bound: dict[str, str] = {}
    for place, known in enumerate(inputs):
        slot = slot_at(schema.inputs, place)
        if slot is not None and slot.variable and slot.homogeneous and known.name in slot.allowed:
            bound.setdefault(slot.variable, known.name)
    outputs = []
    for place in range(count):
        slot = slot_at(schema.outputs, place)
        name = (
            "" if slot is None else next(iter(slot.allowed)) if len(slot.allowed) == 1 else bound.get(slot.variable, "")
        )
        outputs.append(table.of_type(_tensor_type(name)))
    return outputs


def _tensor_type(name: str) -> ValueType | None:
    dtype: Any = BY_NAME.get(name.removeprefix("tensor(").removesuffix(")"))
    return TensorType(dtype) if dtype is not None and name.startswith("tensor(") else None

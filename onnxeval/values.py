"""What flows between nodes, and the types that describe it.

A value is a tensor (a NumPy array), a `Sequence` of values, a map (``dict``), or an optional: one that holds
something flows as that thing itself, one that holds nothing as `EmptyOptional`. ``None`` is none of these: it
stands where an optional input is absent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import NAMES, DType, Tensor, name_of

#: A dimension: its size, its symbolic name, or None where nothing is known of it.
Dimension: TypeAlias = int | str | None


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor of ``dtype`` (None where unknown) and of ``shape`` (None where the rank is unknown)."""

    dtype: DType | None
    shape: tuple[Dimension, ...] | None = None

    def __str__(self) -> str:
        dtype = "unknown" if self.dtype is None else name_of(self.dtype)
        return dtype if self.shape is None else dtype + shape_text(self.shape)


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A sequence whose elements are of type ``element`` (None where unknown)."""

    element: ValueType | None

    def __str__(self) -> str:
        return f"seq({self.element or 'unknown'})"


@dataclass(frozen=True, slots=True)
class OptionalType:
    """An optional that may hold a value of type ``element`` (None where unknown)."""

    element: ValueType | None

    def __str__(self) -> str:
        return f"optional({self.element or 'unknown'})"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from ``key`` (an integer type or string) to values of type ``value``."""

    key: DType
    value: ValueType | None

    def __str__(self) -> str:
        return f"map({name_of(self.key)}, {self.value or 'unknown'})"


ValueType: TypeAlias = TensorType | SequenceType | OptionalType | MapType


class Sequence(list[Any]):
    """An ONNX sequence: a list of values that knows its element type even when empty."""

    __slots__ = ("element_type",)

    def __init__(self, items: Iterable[Any] = (), element_type: ValueType | None = None) -> None:
        super().__init__(items)
        self.element_type = element_type if element_type is not None or not self else _rankless(type_of(self[0]))


@dataclass(frozen=True, slots=True)
class EmptyOptional:
    """An optional that holds nothing, of the type it could hold (None where unknown)."""

    element_type: ValueType | None = None


#: Any of the above; the executor's dictionaries and the kernels' signatures say so with this name.
Value: TypeAlias = Any


def _rankless(value_type: ValueType) -> ValueType:
    """A tensor type without its shape: elements of one sequence share a dtype, not a shape."""
    return TensorType(value_type.dtype) if isinstance(value_type, TensorType) else value_type


def type_of(value: Value) -> ValueType:
    """The type of a value. Raises TypeError where it is none that ONNX knows."""
    if isinstance(value, np.ndarray):
        return TensorType(value.dtype, value.shape)
    if isinstance(value, Sequence):
        return SequenceType(value.element_type)
    if isinstance(value, list):
        return SequenceType(_rankless(type_of(value[0])) if value else None)
    if isinstance(value, EmptyOptional):
        return OptionalType(value.element_type)
    if isinstance(value, dict):
        return _map_type(value)
    raise TypeError(f"{type(value).__name__} is not an ONNX value")


def _map_type(value: dict[Any, Any]) -> MapType:
    first_key, first_value = next(iter(value.items()), (0, None))
    key = np.dtype(object) if isinstance(first_key, str) else np.dtype(np.int64)
    if isinstance(first_value, str):
        return MapType(key, TensorType(np.dtype(object)))
    if first_value is None:
        return MapType(key, None)
    return MapType(key, TensorType(np.asarray(first_value).dtype))


def type_string(value_type: ValueType | None) -> str:
    """The type as the standard's schemas write it: ``seq(tensor(float))``."""
    match value_type:
        case TensorType(dtype=dtype) if dtype is not None:
            return f"tensor({NAMES.get(dtype, dtype.name)})"
        case SequenceType(element):
            return f"seq({type_string(element)})"
        case OptionalType(element):
            return f"optional({type_string(element)})"
        case MapType(key, value):
            return f"map({NAMES[key]},{type_string(value)})"
        case _:
            return "unknown"


def check_countable(shape: Iterable[int], dtype: DType) -> None:
    """Raise ValueError for the shape of an empty tensor that no array can have.

    NumPy counts an array's bytes in signed 64 bits, those of an empty one as if its sizes of 0 were 1.
    """
    sizes = tuple(shape)
    if prod(size or 1 for size in sizes) * dtype.itemsize >= 2**63:
        raise ValueError(f"a tensor of shape {shape_text(sizes)} holds nothing, but its sizes are too large to count")


def shape_text(shape: Iterable[Dimension]) -> str:
    """A shape for people: ``[1, N, ?]``."""
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def describe(value: Value) -> str:
    """A value in a few words for messages: ``float32[3, 4]``, ``sequence of 2 float32``, ``absent``."""
    if value is None:
        return "absent"
    if isinstance(value, np.ndarray):
        text = str(TensorType(value.dtype, value.shape))
        return f"{text} {value.item()!r}" if value.ndim == 0 else text
    if isinstance(value, list):
        element = type_of(value)
        return f"sequence of {len(value)} {element.element or 'unknown'}" if isinstance(element, SequenceType) else ""
    if isinstance(value, EmptyOptional):
        return "an empty optional"
    if isinstance(value, dict):
        return f"map of {len(value)}"
    return type(value).__name__


__all__ = [
    "Dimension",
    "EmptyOptional",
    "MapType",
    "OptionalType",
    "Sequence",
    "SequenceType",
    "Tensor",
    "TensorType",
    "Value",
    "ValueType",
    "check_countable",
    "describe",
    "shape_text",
    "type_of",
    "type_string",
]

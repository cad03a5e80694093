"""Hold what came out against what the model declares. A declaration changes no result, so a wrong one is only told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.values import (
    EmptyOptional,
    MapType,
    OptionalType,
    Sequence,
    SequenceType,
    TensorType,
    Value,
    ValueType,
    describe,
    type_of,
)


def sizes_of(types: Mapping[str, ValueType | None], values: Mapping[str, Value]) -> dict[str, int]:
    """What the symbolic dimensions of tensor types are in the values of the same names."""
    sizes: dict[str, int] = {}
    for name, value in values.items():
        declared = types.get(name)
        if isinstance(declared, TensorType) and declared.shape is not None and isinstance(value, np.ndarray):
            pairs = zip(declared.shape, value.shape, strict=False)
            sizes.update((dimension, size) for dimension, size in pairs if isinstance(dimension, str))
    return sizes


def are_declared(
    values: Mapping[str, Value], types: Mapping[str, ValueType | None], sizes: dict[str, int], *, binds: bool
) -> bool:
    """Whether values are certain to be what is declared, as far as can be seen at a glance: nothing else is told then.

    Symbolic dimensions are ``sizes``; what is not among them is taken in where it ``binds``, and may be of any size.
    """
    for name, value in values.items():
        declared = types.get(name)
        if type(value) is not np.ndarray or type(declared) is not TensorType or declared.shape is None:
            return False
        if value.dtype != declared.dtype or value.ndim != len(declared.shape):
            return False
        for size, dimension in zip(value.shape, declared.shape, strict=True):
            wanted = dimension
            if isinstance(dimension, str):
                wanted = sizes.setdefault(dimension, size) if binds else sizes.get(dimension, size)
            if wanted is not None and wanted != size:
                return False
    return True


def contradiction(value: Value, declared: ValueType | None, sizes: Mapping[str, int]) -> str:
    """How a value contradicts its declared type; "" where it does not.

    ``sizes`` are those of symbolic dimensions; one that is not among them may be of any size.
    """
    match declared:
        case TensorType() if not isinstance(value, np.ndarray):
            fits = False
        case TensorType(dtype, shape):
            if shape is not None and len(shape) == value.ndim and (dtype is None or dtype == value.dtype):
                return _size_contradiction(value, declared, sizes)
            fits = shape is None and (dtype is None or dtype == value.dtype)
        case SequenceType(MapType(key)) if isinstance(value, Sequence) and isinstance(value.element_type, MapType):
            fits = not value or key == value.element_type.key
        case SequenceType(element):
            fits = isinstance(value, list) and _all_fit(value, element)
        case OptionalType(element):
            fits = isinstance(value, EmptyOptional) or not contradiction(value, element, sizes)
        case MapType():
            fits = isinstance(value, dict) and all(isinstance(key, str) == (declared.key.kind == "O") for key in value)
        case _:
            fits = True
    return "" if fits else f"is {_text(value)}, the model declares {declared}"


def _size_contradiction(value: Tensor, declared: TensorType, sizes: Mapping[str, int]) -> str:
    for size, dimension in zip(value.shape, declared.shape or (), strict=True):
        wanted = sizes.get(dimension, size) if isinstance(dimension, str) else dimension
        if wanted is not None and wanted != size:
            where = f", {dimension} is {wanted} in the inputs" if isinstance(dimension, str) else ""
            return f"is {_text(value)}, the model declares {declared}{where}"
    return ""


def _all_fit(values: Iterable[Value], declared: ValueType | None) -> bool:
    return not any(contradiction(value, declared, {}) for value in values)


def _text(value: Value) -> str:
    return str(type_of(value)) if isinstance(value, np.ndarray) else describe(value)

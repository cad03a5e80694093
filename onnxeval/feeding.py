"""Hold what is fed against what the model declares, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from reprlib import repr as short
from typing import Any, Protocol

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, integer_range, is_float, is_integer, name_of
from onnxeval.errors import InputError
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
    shape_text,
)


class Input(Protocol):
    """What is asked of a declared input."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> ValueType | None: ...
    @property
    def optional(self) -> bool: ...


def check_feeds(declared: Iterable[Input], feeds: Mapping[str, Any]) -> dict[str, Value]:
    """The feeds as values, one for each input without a default.

    Python numbers and lists take the declared dtype; arrays must have it. Raises InputError for an input that
    is missing, unknown, or of another dtype, rank or size, and for a symbolic dimension with two sizes.
    """
    inputs = {entry.name: entry for entry in declared}
    if not isinstance(feeds, Mapping):
        raise InputError(f"the feeds are a {type(feeds).__name__}, not a dict of input names and values")
    for name in feeds:
        if name not in inputs:
            raise InputError(f'the model has no input "{name}"', hint=_name_hint(name, inputs))
    refuse_missing(inputs.values(), feeds)
    sizes: dict[str, tuple[int, str]] = {}
    checked: dict[str, Value] = {}
    for name, entry in inputs.items():
        if name in feeds:
            checked[name] = _checked(name, feeds[name], entry.type, sizes)
        elif not entry.optional and isinstance(entry.type, OptionalType):
            checked[name] = EmptyOptional(entry.type.element)
    return checked


def refuse_missing(declared: Iterable[Input], feeds: Mapping[str, Any], hint: str = "") -> None:
    """Raise an InputError that names the inputs which need a value and have none."""
    missing = [
        entry
        for entry in declared
        if entry.name not in feeds and not entry.optional and not isinstance(entry.type, OptionalType)
    ]
    if missing:
        wanted = ", ".join(f'"{entry.name}" ({entry.type or "of undeclared type"})' for entry in missing)
        raise InputError(f"no value for the input{'s' * (len(missing) > 1)} {wanted}", hint=hint)


def _name_hint(name: str, inputs: Mapping[str, Input]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, inputs, 1)
    if near:
        return f'did you mean "{near[0]}"?'
    return "its inputs are: " + ", ".join(f'"{n}"' for n in inputs) if inputs else "it has no inputs"


def _checked(name: str, value: Any, wanted: ValueType | None, sizes: dict[str, tuple[int, str]]) -> Value:
    match wanted:
        case OptionalType(element):
            if value is None or isinstance(value, EmptyOptional):
                return EmptyOptional(element)
            return _checked(name, value, element, sizes)
        case SequenceType(element):
            if not isinstance(value, (list, tuple)):
                raise InputError(f'input "{name}" is {_given(value)}, the model declares {wanted}')
            return Sequence((_checked(name, item, element, {}) for item in value), _without_shape(element))
        case MapType():
            if not isinstance(value, dict):
                raise InputError(f'input "{name}" is {_given(value)}, the model declares {wanted}')
            return _checked_map(name, value, wanted)
        case TensorType(dtype, shape):
            if isinstance(value, Sequence):
                raise InputError(f'input "{name}" is a {describe(value)}, the model declares {wanted}')
            array = _as_array(name, value, dtype)
            if dtype is not None and array.dtype != dtype:
                hint = f"convert it first: x.astype({name_of(dtype)!r})" if array.dtype != STRING else ""
                raise InputError(
                    f'input "{name}" is {name_of(array.dtype)}, the model declares {name_of(dtype)}', hint=hint
                )
            if shape is not None:
                _check_shape(name, array, wanted, sizes)
            return array
        case _:
            return value if isinstance(value, (Sequence, dict, EmptyOptional)) else _as_array(name, value, None)


def _given(value: Any) -> str:
    """What was fed, in words: a value of ours, or any Python object."""
    try:
        return "None" if value is None else describe(value)
    except (TypeError, RecursionError):  # a list of what is no value
        return f"a {type(value).__name__}"


def _without_shape(value_type: ValueType | None) -> ValueType | None:
    return TensorType(value_type.dtype) if isinstance(value_type, TensorType) else value_type


def _as_array(name: str, value: Any, dtype: DType | None) -> Tensor:
    if value is None:
        raise InputError(f'input "{name}" is None, only optional inputs may be')
    try:
        array = np.asarray(value, object if dtype == STRING and not hasattr(value, "dtype") else None)
    except Exception as error:  # whatever the value's own way to become an array raises
        raise InputError(f'input "{name}" cannot become a tensor: {error}') from error
    if array.dtype.kind in "US":
        array = _as_strings(name, array)
    if array.dtype == STRING:
        _check_strings(name, array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if dtype is None or array.dtype == dtype:
        return array
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)  # how .npy keeps the types that NumPy does not know
    if not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "__array__"):
        return _converted(name, array, dtype)
    return array


def _converted(name: str, array: Tensor, dtype: DType) -> Tensor:
    """Python numbers in the declared dtype, where it can hold them."""
    if array.dtype == np.bool_ and dtype != np.bool_:
        array = array.astype(np.uint8)
    kind = array.dtype.kind
    if not array.size and dtype != STRING:
        return array.astype(dtype)
    if is_integer(dtype) and kind in "iu":
        least, most = integer_range(dtype)
        wrong = (array < least) | (array > most)
        converted = array.astype(dtype)
    elif (is_float(dtype) and kind in "iuf") or (dtype.kind == "c" and kind in "iufc"):
        with np.errstate(all="ignore"):
            if dtype.kind == "c":
                converted = array.astype(dtype)
            else:
                from onnxeval.ops._cast import convert

                converted = convert(array, dtype, saturate=False)
            wrong = np.isfinite(array) & ~np.isfinite(converted)
    else:
        return array
    if wrong.any():
        raise InputError(f'input "{name}" holds {array[wrong][0]}, which {name_of(dtype)} cannot')
    return converted


def _as_strings(name: str, array: Tensor) -> Tensor:
    try:
        return np.char.decode(array, "utf-8").astype(object) if array.dtype.kind == "S" else array.astype(object)
    except UnicodeDecodeError as error:
        raise InputError(f'input "{name}" holds a string that is not UTF-8: {error.reason}') from error


def _check_strings(name: str, array: Tensor) -> None:
    for item in array.reshape(-1):
        if not isinstance(item, str):
            raise InputError(f'input "{name}" holds {type(item).__name__} {short(item)}, expected strings')
        if not item.isascii() and any("\ud800" <= character <= "\udfff" for character in item):
            raise InputError(f'input "{name}" holds the string {short(item)}, half a character, which is not UTF-8')


def _check_shape(name: str, array: Tensor, wanted: TensorType, sizes: dict[str, tuple[int, str]]) -> None:
    shape = wanted.shape or ()
    if array.ndim != len(shape):
        raise InputError(_unlike(name, array, wanted))
    for axis, (size, dimension) in enumerate(zip(array.shape, shape, strict=True)):
        if isinstance(dimension, int) and size != dimension:
            raise InputError(f"{_unlike(name, array, wanted)}: axis {axis} differs")
        if isinstance(dimension, str):
            known, where = sizes.setdefault(dimension, (size, name))
            if known != size:
                raise InputError(f'{_unlike(name, array, wanted)}: {dimension} is {size} here and {known} in "{where}"')


def _unlike(name: str, array: Tensor, wanted: TensorType) -> str:
    return f'input "{name}" has shape {shape_text(array.shape)}, the model declares {wanted}'


def _checked_map(name: str, value: dict[Any, Any], wanted: MapType) -> dict[Any, Any]:
    text_keys = wanted.key == STRING
    dtype = wanted.value.dtype if isinstance(wanted.value, TensorType) else None
    checked = {}
    for key, item in value.items():
        if isinstance(key, str) != text_keys or not isinstance(key, (str, int, np.integer)):
            raise InputError(f'input "{name}" has the key {key!r}, the model declares {wanted}')
        if not text_keys and not -(2**63) <= int(key) < 2**63:
            raise InputError(f'input "{name}" has the key {key}, which int64 cannot hold')
        array = _as_array(name, item, dtype)
        if dtype is not None and array.dtype != dtype:
            raise InputError(f'input "{name}" holds {name_of(array.dtype)} values, the model declares {wanted}')
        checked[key if text_keys else int(key)] = array.item() if dtype == STRING else array[()]
    return checked

"""Values as they are typed: `3.5`, `[[1, 2], [3, 4]]`, `"text"`, in JSON with NaN and Infinity.

The type that the model declares decides what a literal means. A number that the type cannot hold is a
ValueError, never another number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, integer_range, is_float, is_integer, name_of
from onnxeval.values import (
    EmptyOptional,
    MapType,
    OptionalType,
    Sequence,
    SequenceType,
    TensorType,
    Value,
    ValueType,
)

from .typetext import DTYPES, parse_type

_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def looks_like_literal(text: str) -> bool:
    """Whether a VALUE that is no file is meant as a literal."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text[:1] in ("[", "{", '"')
    return True


def parse_json(text: str | bytes) -> Any:
    """The content of a JSON document, with NaN and Infinity. Raises ValueError for a number beyond any type too."""
    return json.loads(text, parse_float=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):  # infinity has a name of its own
        raise ValueError(f"{text} does not fit float64")
    return number


def from_json(content: Any, declared: ValueType | None) -> Value:
    """The value that parsed JSON stands for: as `jsonform` writes it, or bare."""
    kind = content.get("type") if isinstance(content, dict) else None
    if isinstance(kind, str) and kind in _FORMS:
        return _FORMS[kind](content, declared)
    match declared:
        case OptionalType(element):
            return EmptyOptional(element) if content is None else from_json(content, element)
        case SequenceType(element):
            return Sequence([from_json(item, element) for item in _expect(content, list, "a list")], element)
        case MapType(key, value):
            entries = _expect(content, dict, "an object")
            return {_key(k, key): _map_entry(v, value) for k, v in entries.items()}
        case TensorType(dtype) if dtype is not None:
            return tensor_of(content, dtype)
        case _:
            return tensor_of(content, _guessed(content))


def tensor_of(content: Any, dtype: DType) -> Tensor:
    """Nested lists of numbers, truth values or strings as a tensor of ``dtype``."""
    shape = _shape(content, dtype.kind == "c")
    elements: list[Any] = []
    _collect(content, len(shape), elements)
    if len(elements) != math.prod(shape):
        raise ValueError(f"the lists are ragged: {len(elements)} elements do not fill {list(shape)}")
    return _array(elements, dtype).reshape(shape)


def _shape(content: Any, pairs: bool) -> tuple[int, ...]:
    shape = []
    while isinstance(content, list) and not (pairs and _is_pair(content)):
        shape.append(len(content))
        content = content[0] if content else None
    return tuple(shape)


def _is_pair(content: Any) -> bool:
    """A complex number is a pair of numbers."""
    return isinstance(content, list) and len(content) == 2 and not any(isinstance(part, list) for part in content)


def _collect(content: Any, depth: int, elements: list[Any]) -> None:
    if not depth:
        elements.append(content)
        return
    if not isinstance(content, list):
        raise ValueError(f"the lists are ragged: {json.dumps(content)} stands where a list is expected")
    for item in content:
        _collect(item, depth - 1, elements)


def _array(elements: list[Any], dtype: DType) -> Tensor:
    if dtype == STRING:
        texts = np.empty(len(elements), object)
        texts[:] = [_expect(text, str, "a string") for text in elements]
        return texts
    if dtype.kind == "b":
        return np.array([_expect(flag, bool, "true or false") for flag in elements], bool)
    if dtype.kind == "c":
        pairs = [(_float(e[0]), _float(e[1])) if _is_pair(e) else (_float(e), 0.0) for e in elements]
        return narrowed(np.array(pairs, np.float64).reshape(-1), np.empty(0, dtype).real.dtype).view(dtype)
    if is_integer(dtype):
        low, high = integer_range(dtype)
        for number in elements:
            if isinstance(number, bool) or not isinstance(number, int):
                raise ValueError(f"{json.dumps(number)} is not an integer, {name_of(dtype)} is declared")
            if not low <= number <= high:
                raise ValueError(f"{number} is outside {name_of(dtype)} ({low} to {high})")
        wide = np.array(elements, np.uint64 if low == 0 else np.int64)
        return wide.astype(dtype)
    if is_float(dtype):
        return narrowed(np.array([_float(number) for number in elements], np.float64), dtype)
    raise ValueError(f"values of {name_of(dtype)} cannot be typed")


def _float(number: Any) -> float:
    if isinstance(number, str) and number in _SPECIAL:
        return _SPECIAL[number]
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise ValueError(f"{json.dumps(number)} is not a number")
    return float(number)


def narrowed(wide: Tensor, dtype: DType) -> Tensor:
    """Round once to the declared type; what is too large for it, or special and unknown to it, is refused."""
    from onnxeval.ops._cast import convert

    with np.errstate(all="ignore"):
        narrow = convert(wide, dtype, saturate=False)
        back = narrow.astype(np.float64)
    lost = np.isfinite(wide) != np.isfinite(back)
    lost |= np.isnan(wide) != np.isnan(back)
    if lost.any():
        raise ValueError(f"{wide[lost][0]} does not fit {name_of(dtype)}")
    return narrow


def _guessed(content: Any) -> DType:
    """The type of a literal for which the model declares none: float32, int64, bool or string."""
    kinds = set(_kinds(content))
    if str in kinds:
        return STRING
    if kinds == {bool}:
        return np.dtype(bool)
    return np.dtype(np.int64 if kinds == {int} else np.float32)


def _kinds(content: Any) -> Iterator[type]:
    if isinstance(content, list):
        for item in content:
            yield from _kinds(item)
    else:
        yield float if isinstance(content, str) and content in _SPECIAL else type(content)


def _key(text: str, dtype: DType) -> str | int:
    if dtype == STRING:
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the key {text!r} is not an integer") from None


def _map_entry(content: Any, declared: ValueType | None) -> Any:
    value = from_json(content, declared)
    return value.item() if isinstance(value, np.ndarray) and not value.ndim else value


def _expect(content: Any, kind: type, what: str) -> Any:
    if not isinstance(content, kind):
        raise ValueError(f"{json.dumps(content)} stands where {what} is expected")
    return content


# What jsonform writes


def _tensor_form(form: dict[str, Any], _declared: ValueType | None) -> Tensor:
    name, shape = form.get("dtype"), form.get("shape")
    if not isinstance(name, str) or name not in DTYPES:
        raise ValueError(f"the dtype {json.dumps(name)} is unknown")
    dtype = DTYPES[name]
    if not isinstance(shape, list) or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError(f"the shape {json.dumps(shape)} is none")
    if 0 in shape:
        return np.empty(shape, dtype)
    array = tensor_of(form.get("data"), dtype)
    if list(array.shape) != shape:
        raise ValueError(f"the data is of shape {list(array.shape)}, not {shape}")
    return array


def _sequence_form(form: dict[str, Any], declared: ValueType | None) -> Sequence:
    element = declared.element if isinstance(declared, SequenceType) else _held_type(form)
    return Sequence([from_json(item, element) for item in _expect(form.get("items"), list, "a list")], element)


def _map_form(form: dict[str, Any], declared: ValueType | None) -> dict[Any, Any]:
    value = declared.value if isinstance(declared, MapType) else _held_type(form)
    entries = {}
    for pair in _expect(form.get("entries"), list, "a list of pairs"):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], (str, int)):
            raise ValueError(f"{json.dumps(pair)} stands where a key and a value are expected")
        entries[pair[0]] = _map_entry(pair[1], value)
    return entries


def _optional_form(form: dict[str, Any], declared: ValueType | None) -> EmptyOptional:
    return EmptyOptional(declared.element if isinstance(declared, OptionalType) else _held_type(form))


def _held_type(form: dict[str, Any]) -> ValueType | None:
    """The type of what a sequence, a map or an optional holds, where the form tells it."""
    return parse_type(_expect(form["of"], str, "a type")) if "of" in form else None


_FORMS: dict[str, Callable[[dict[str, Any], ValueType | None], Value]] = {
    "tensor": _tensor_form,
    "sequence": _sequence_form,
    "map": _map_form,
    "optional": _optional_form,
}

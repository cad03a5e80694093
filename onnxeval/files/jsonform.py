"""Values as strict JSON: any parser reads it, and nothing is lost.

Every value is an object with its ``type``. A tensor has ``dtype``, ``shape`` and ``data``, nested lists by shape, in
which NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity", a complex number is a pair, and an
integer is an integer however large. A sequence has ``items``; a map has ``entries``, pairs of a key and a value; an
optional that holds nothing has neither.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from onnxeval.dtypes import STRING, Tensor, comparable, name_of
from onnxeval.values import EmptyOptional, MapType, OptionalType, SequenceType, Value, ValueType, type_of


def document(content: dict[str, Any]) -> str:
    """The text of a JSON document, in ASCII, ended by a line break."""
    return json.dumps(content, allow_nan=False) + "\n"


def value_form(value: Value, *, data: bool = True) -> dict[str, Any]:
    """A value as an object that `document` takes, without what it holds where ``data`` is false."""
    if not data and isinstance(value, (np.ndarray, list, dict)):
        return _outside(value)
    if isinstance(value, np.ndarray):
        with np.errstate(invalid="ignore"):  # NaNs that signal
            return {**_outside(value), "data": _data(comparable(value))}
    if isinstance(value, list):
        return {**_outside(value), "items": [value_form(item) for item in value]}
    if isinstance(value, dict):
        entries = [[_plain(key), _entry(entry)] for key, entry in value.items()]
        return {**_outside(value), "entries": entries}
    if isinstance(value, EmptyOptional):
        return {"type": "optional", **_held(type_of(value))}
    return value_form(np.array(value, object if isinstance(value, str) else None))


def _outside(value: Value) -> dict[str, Any]:
    """What a value is, without what it holds."""
    if isinstance(value, np.ndarray):
        return {"type": "tensor", "dtype": name_of(value.dtype), "shape": list(value.shape)}
    return {"type": "sequence" if isinstance(value, list) else "map", **_held(type_of(value))}


def _held(holder: ValueType) -> dict[str, str]:
    """The types of what a sequence, a map or an optional holds."""
    match holder:
        case SequenceType(element) | OptionalType(element):
            return {"of": str(element or "unknown")}
        case MapType(key, entry):
            return {"keys": name_of(key), "of": str(entry or "unknown")}
    return {}


def _entry(value: Value) -> Any:
    """What a map holds: most hold plain numbers or strings."""
    if isinstance(value, (list, dict, EmptyOptional)) or (isinstance(value, np.ndarray) and value.ndim):
        return value_form(value)
    return _plain(value)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else _data(comparable(np.asarray(value)))


def _data(array: Tensor) -> Any:
    if array.dtype == STRING:
        return array.tolist()
    if array.dtype.kind == "c":
        return _data(np.stack([array.real, array.imag], axis=-1))
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        names = np.frompyfunc(float_form, 1, 1)(array)
        return names.tolist() if isinstance(names, np.ndarray) else names
    return array.tolist()


def float_form(element: Any) -> float | str:
    """A number, or the name of what JSON has no number for."""
    number = float(element)
    if math.isnan(number):
        return "NaN"
    return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"

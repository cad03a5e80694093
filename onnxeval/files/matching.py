"""Hold what was read against the type that is wanted: nothing is cast unless that is allowed, and then it is said."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, comparable, integer_range, is_float, is_integer, name_of
from onnxeval.ops._cast import convert
from onnxeval.values import MapType, OptionalType, Sequence, SequenceType, TensorType, Value, ValueType

from .source import HintedError, Reading


def matched(value: Value, wanted: ValueType | None, reading: Reading, label: str) -> Value:
    """The value with elements of the wanted types. Shapes are not looked at, nor whether a tensor is wanted at all.

    Raises HintedError for elements of another type, or ValueError for one that the wanted type cannot hold.
    """
    match wanted:
        case TensorType(dtype) if dtype is not None and isinstance(value, np.ndarray) and value.dtype != dtype:
            return _cast(value, dtype, reading, label)
        case SequenceType(element) if isinstance(value, list):
            return Sequence([matched(item, element, reading, label) for item in value], element)
        case OptionalType(element):
            return matched(value, element, reading, label)
        case MapType(_, element) if isinstance(value, dict):
            return {key: matched(entry, element, reading, label) for key, entry in value.items()}
    return value


def _cast(array: Tensor, dtype: DType, reading: Reading, label: str) -> Tensor:
    if not reading.cast:
        hint = "--cast converts them" if reading.can_cast else ""
        raise HintedError(f"is {name_of(array.dtype)}, the model declares {name_of(dtype)}", hint)
    with np.errstate(all="ignore"):
        result = convert(array, dtype, saturate=False)
    changed = _changes(array, result)
    how = f"{changed} of {array.size} elements changed" if changed else "no element changed"
    reading.notes.append(f"{label}: cast from {name_of(array.dtype)} to {name_of(dtype)}, {how}")
    return result


def _changes(before: Tensor, after: Tensor) -> int:
    """How many elements are another number than before. Raises ValueError where one no longer is a number at all."""
    if STRING in (before.dtype, after.dtype):
        return 0
    if is_integer(after.dtype):
        least, most = integer_range(after.dtype)
        wide = comparable(before)
        if wide.dtype.kind in "iu":
            _refuse(before, (wide < least) | (wide > most), after.dtype)
        elif wide.dtype.kind == "f":
            # a float just below 2^63 is the greatest that int64 takes
            _refuse(before, ~((wide >= least) & (wide < float(most) + 1)), after.dtype)
    one, other = comparable(before), comparable(after)
    if is_float(after.dtype):
        _refuse(before, np.isfinite(one) != np.isfinite(other), after.dtype)
    different = one != other
    if one.dtype.kind in "fc" and other.dtype.kind in "fc":
        different &= ~(np.isnan(one) & np.isnan(other))
    return int(np.count_nonzero(different))


def _refuse(array: Tensor, wrong: Tensor, dtype: DType) -> None:
    if wrong.any():
        raise ValueError(f"holds {array[wrong].flat[0]}, which {name_of(dtype)} cannot")

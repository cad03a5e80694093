"""Random values of a type that meet a wish."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from onnxeval.dtypes import FLOAT8E8M0, STRING, DType, Tensor, integer_range, is_float, is_integer
from onnxeval.errors import ResourceLimitError
from onnxeval.ops._cast import convert
from onnxeval.random_feeds.wishes import ANY, Wish
from onnxeval.values import MapType, OptionalType, Sequence, SequenceType, TensorType, Value, ValueType, shape_text

_FLOAT = np.dtype(np.float32)
_WORDS = ("a", "the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "42")
_LENGTH = 3
_ITEMS = 2
#: Bytes: integers up to this width are data (pictures, quantised numbers) and take any value, wider ones small ones.
_WIDEST_OF_DATA = 2
_SMALL = 9
_LEAST_MAGNITUDE = 0.1
_SHARE_OF_ONES = 0.75
_MOST_ELEMENTS = 2**36


def draw(rng: np.random.Generator, value_type: ValueType | None, wish: Wish, sizes: Mapping[str, int]) -> Value:
    """A value of the type; ``sizes`` are those of named dimensions, what is unknown is 1."""
    match value_type:
        case OptionalType(element):
            return draw(rng, element, wish, sizes)
        case SequenceType(element):
            return Sequence([draw(rng, element, wish.moved(), sizes) for _ in range(_ITEMS)], element)
        case MapType():
            return _map(rng, value_type, wish)
        case TensorType(dtype, shape):
            fixed = tuple(size if isinstance(size, int) else sizes.get(size or "", 1) for size in shape or ())
            if math.prod(fixed) > _MOST_ELEMENTS:
                raise ResourceLimitError(f"an input of shape {shape_text(fixed)} is too large to be made up")
            return tensor(rng, fixed, dtype or _FLOAT, wish)
        case _:
            return tensor(rng, (), _FLOAT, wish)


def _map(rng: np.random.Generator, value_type: MapType, wish: Wish) -> dict[str | int, Value]:
    """Some keys, those that are wished for where there are any."""
    default = _WORDS[:3] if value_type.key == STRING else (0, 1, 2)
    dtype = value_type.value.dtype if isinstance(value_type.value, TensorType) else None
    keys = list(dict.fromkeys(wish.choices or default))
    return {key: tensor(rng, (), dtype or _FLOAT, ANY)[()] for key in keys}


def tensor(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, wish: Wish) -> Tensor:
    """A tensor that meets the wish as far as its type lets it."""
    wish = replace(wish, low=_finite(wish.low), high=_finite(wish.high))
    if wish.exact is not None and len(wish.exact) == math.prod(shape):
        return _typed(wish.exact, dtype).reshape(shape)
    if wish.make is not None:
        with suppress(ArithmeticError, IndexError, TypeError, ValueError):  # a shape that the operator does not take
            return np.asarray(wish.make(rng, shape, dtype))
    if wish.choices is not None and (choices := _possible(wish.choices, dtype)):
        if choices == [0, 1] and dtype != STRING:
            return _mask(rng, shape).astype(dtype)
        return np.asarray(_typed(choices, dtype)[rng.integers(0, len(choices), shape)], dtype)
    if dtype == STRING:
        return texts(rng, shape, " ")
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    if dtype.kind == "c":
        return np.asarray(rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return _integers(rng, shape, dtype, wish) if is_integer(dtype) else _floats(rng, shape, dtype, wish)


def _finite(bound: float | None) -> float | None:
    return bound if bound is not None and math.isfinite(bound) else None


def _mask(rng: np.random.Generator, shape: tuple[int, ...]) -> Tensor:
    """Mostly 1, and somewhere in every row: what is masked altogether has no softmax."""
    mask = np.asarray(rng.random(shape) < _SHARE_OF_ONES)
    if mask.ndim:
        mask[..., :1] = True
    return mask


def texts(rng: np.random.Generator, shape: tuple[int, ...], separator: str) -> Tensor:
    """Texts of a few words."""
    drawn = rng.integers(0, len(_WORDS), (*shape, _LENGTH))
    array = np.empty(shape, object)
    for place in np.ndindex(shape):
        array[place] = separator.join(_WORDS[word] for word in drawn[place])
    return array


def _possible(choices: tuple[object, ...], dtype: DType) -> list[object]:
    """Those of the choices that are of the type: text is no number."""
    if dtype == STRING:
        return [choice for choice in choices if isinstance(choice, str)]
    return [choice for choice in choices if isinstance(choice, (bool, int, float))]


def _typed(elements: Iterable[Any], dtype: DType) -> Tensor:
    """A few elements as an array of a type, in which they are known to fit, or nearly."""
    listed = list(elements)
    if dtype == STRING:
        texts_array = np.empty(len(listed), object)
        texts_array[:] = listed
        return texts_array
    if is_integer(dtype):
        least, most = integer_range(dtype)
        whole = [min(max(int(e), least), most) if math.isfinite(e) else 0 for e in listed]
        return np.array(whole, np.uint64 if most >= 2**63 else np.int64).astype(dtype)
    numbers = np.array(listed, np.float64)
    return _narrowed(numbers, dtype) if is_float(dtype) else numbers.astype(dtype)


def _integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, wish: Wish) -> Tensor:
    least, most = integer_range(dtype)
    most = min(most, 2**63 - 1)
    if wish.low is None and wish.high is None and dtype.itemsize <= _WIDEST_OF_DATA:
        low, high = least, most
    else:
        low = math.ceil(wish.low) if wish.low is not None else min(1, math.floor(1 if wish.high is None else wish.high))
        high = math.floor(wish.high) if wish.high is not None else max(low + _SMALL - 1, _SMALL)
        low, high = min(max(low, least), most), max(min(high, most), least)
    if wish.nonzero and low <= 0 <= high:
        low = 1
    return np.asarray(rng.integers(low, max(high, low), shape, np.int64, endpoint=True)).astype(dtype)


def _floats(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, wish: Wish) -> Tensor:
    low, high = wish.low, wish.high
    if low is None:
        low = -1.0 if high is None or high > -1 else high - 1
    if high is None:
        high = max(low + 1, 1.0)
    wide = _FLOAT if dtype.itemsize <= _FLOAT.itemsize else np.dtype(np.float64)
    numbers: Tensor = np.asarray(rng.random(shape, wide))
    numbers = numbers * wide.type(high - low) + wide.type(low)
    if wish.whole:
        numbers = np.clip(np.rint(numbers), math.ceil(low), max(math.floor(high), math.ceil(low)))
    if wish.nonzero or dtype == FLOAT8E8M0:
        numbers = np.where(np.abs(numbers) < _LEAST_MAGNITUDE, numbers + wide.type(2 * _LEAST_MAGNITUDE), numbers)
    return _narrowed(np.abs(numbers) if dtype == FLOAT8E8M0 else numbers, dtype)


def _narrowed(numbers: Tensor, dtype: DType) -> Tensor:
    return (
        np.asarray(numbers)
        if numbers.dtype == dtype
        else np.asarray(convert(np.asarray(numbers), dtype, saturate=True))
    )

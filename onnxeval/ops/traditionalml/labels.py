"""LabelEncoder and CategoryMapper: one value for another.

LabelEncoder-1 numbers a list of strings; 2 maps keys of any kind, floats by their bits; 4 adds the tensor forms, and
there all NaN are one key.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import STRING, Tensor, integer_range, is_float, is_integer, name_of
from onnxeval.ops.traditionalml._lookup import ML, only_one, positions
from onnxeval.registry import op


@op("LabelEncoder", domain=ML, versions=(4,))
def label_encoder(
    x: Tensor,
    *,
    keys_floats: tuple[float, ...] | None,
    keys_int64s: tuple[int, ...] | None,
    keys_strings: tuple[str, ...] | None,
    keys_tensor: Tensor | None,
    values_floats: tuple[float, ...] | None,
    values_int64s: tuple[int, ...] | None,
    values_strings: tuple[str, ...] | None,
    values_tensor: Tensor | None,
    default_float: float,
    default_int64: int,
    default_string: str,
    default_tensor: Tensor | None,
) -> Tensor:
    """Each element's value: that of the last key that equals it, else the default.

    ValueError where keys or values are given in none or several forms, differ in length, or have not the type of the
    input or of the default. Source: LabelEncoder-4.
    """
    keys = only_one(
        keys_floats=keys_floats, keys_int64s=keys_int64s, keys_strings=keys_strings, keys_tensor=keys_tensor
    )
    values = only_one(
        values_floats=values_floats,
        values_int64s=values_int64s,
        values_strings=values_strings,
        values_tensor=values_tensor,
    )
    if default_tensor is None:
        default = _default(values, default_float, default_int64, default_string)
    elif default_tensor.size != 1 or default_tensor.dtype != values.dtype:
        given = f"{name_of(default_tensor.dtype)}{list(default_tensor.shape)}"
        raise ValueError(f"default_tensor is {given}, expected one {name_of(values.dtype)}")
    else:
        default = default_tensor.reshape(())
    if is_float(keys.dtype) and keys.dtype == x.dtype:
        x, keys = (
            _bits(np.where(np.isnan(numbers), np.nan, numbers + 0).astype(numbers.dtype)) for numbers in (x, keys)
        )
    return _mapped(x, keys, values, default)


@op("LabelEncoder", domain=ML, versions=(2,))
def label_encoder_bitwise(
    x: Tensor,
    *,
    keys_floats: tuple[float, ...] | None,
    keys_int64s: tuple[int, ...] | None,
    keys_strings: tuple[str, ...] | None,
    values_floats: tuple[float, ...] | None,
    values_int64s: tuple[int, ...] | None,
    values_strings: tuple[str, ...] | None,
    default_float: float,
    default_int64: int,
    default_string: str,
) -> Tensor:
    """LabelEncoder that compares floats bit by bit. Source: LabelEncoder-2."""
    keys = only_one(keys_floats=keys_floats, keys_int64s=keys_int64s, keys_strings=keys_strings)
    values = only_one(values_floats=values_floats, values_int64s=values_int64s, values_strings=values_strings)
    if is_float(keys.dtype) and keys.dtype == x.dtype:
        x, keys = _bits(x), _bits(keys)
    return _mapped(x, keys, values, _default(values, default_float, default_int64, default_string))


@op("LabelEncoder", domain=ML, versions=(1,))
def label_encoder_list(
    x: Tensor, *, classes_strings: tuple[str, ...] | None, default_int64: int, default_string: str
) -> Tensor:
    """Strings to their places in a list, integers to the strings there. Source: LabelEncoder-1."""
    classes = classes_strings or ()
    return category_mapper(
        x,
        cats_int64s=tuple(range(len(classes))),
        cats_strings=classes,
        default_int64=default_int64,
        default_string=default_string,
    )


@op("CategoryMapper", domain=ML, versions=(1,))
def category_mapper(
    x: Tensor,
    *,
    cats_int64s: tuple[int, ...] | None,
    cats_strings: tuple[str, ...] | None,
    default_int64: int,
    default_string: str,
) -> Tensor:
    """Strings to integers or integers to strings, by two parallel lists. Source: CategoryMapper-1."""
    numbers, strings = np.array(cats_int64s or (), np.int64), np.array(cats_strings or (), STRING)
    if x.dtype == STRING:
        return _mapped(x, strings, numbers, np.array(default_int64, np.int64))
    return _mapped(x, numbers, strings, np.array(default_string, STRING))


def _default(values: Tensor, number: float, integer: int, string: str) -> Tensor:
    if values.dtype == STRING:
        return np.array(string, STRING)
    if is_float(values.dtype):
        return np.array(number, values.dtype)
    if not is_integer(values.dtype):
        raise ValueError(f"values are {name_of(values.dtype)}, expected strings or numbers")
    least, most = integer_range(values.dtype)
    if not least <= integer <= most:
        raise ValueError(
            f"default_int64 {integer} is outside [{least}, {most}] of {name_of(values.dtype)}, the values' type"
        )
    return np.array(integer, values.dtype)


def _bits(numbers: Tensor) -> Tensor:
    return numbers.view(f"i{numbers.itemsize}")


def _mapped(x: Tensor, keys: Tensor, values: Tensor, default: Tensor) -> Tensor:
    if keys.shape != values.shape:
        raise ValueError(f"{keys.size} keys and {values.size} values, expected as many")
    if keys.dtype != x.dtype:
        raise ValueError(f"the keys are {name_of(keys.dtype)}, the input is {name_of(x.dtype)}")
    place = positions(x, keys)
    return np.where(place < 0, default, values[place]) if keys.size else np.full(x.shape, default[()], values.dtype)

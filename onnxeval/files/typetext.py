"""Types as they are printed and typed: `float32[2, 3]`, `[N, ?]`, `seq(float32)`, `map(int64, string)`."""

from __future__ import annotations

import re
from types import MappingProxyType

from onnxeval.dtypes import BY_NAME, NAMES, DType, name_of
from onnxeval.values import Dimension, MapType, OptionalType, SequenceType, TensorType, ValueType

#: Every name of an element type: NumPy's (float32), and ONNX's (float).
DTYPES: MappingProxyType[str, DType] = MappingProxyType({name_of(dtype): dtype for dtype in NAMES} | dict(BY_NAME))

# Compiled when they are used: most runs parse no text
_NUMBER = r"[-+]?\.?[0-9]"
_HOLDER = r"(?s)(seq|optional|map)\((.*)\)"
_TENSOR = r"([a-z]\w*)?\s*(?:\[([^\[\]]*)\]|(?<![a-z0-9])(\d+(?:x\d+)+))?"


def parse_type(text: str) -> ValueType | None:
    """The type that a text means; None for "unknown". Raises ValueError where it means none."""
    text = text.strip()
    if text == "unknown":
        return None
    if not (holder := re.fullmatch(_HOLDER, text)):
        return parse_tensor_type(text)
    kind, inside = holder.groups()
    if kind == "seq":
        return SequenceType(parse_type(inside))
    if kind == "optional":
        return OptionalType(parse_type(inside))
    key, comma, entry = inside.partition(",")
    if not comma:
        raise ValueError(f"{text!r} is no type: a map has the types of its keys and its values")
    return MapType(dtype_named(key.strip()), parse_type(entry))


def parse_tensor_type(text: str) -> TensorType:
    """The type of a tensor: `float32`, `[2, 3]` or `2x3`, or both. Raises ValueError for anything else."""
    found = re.fullmatch(_TENSOR, text.strip())
    if not text.strip() or not found:
        raise ValueError(f"{text!r} is no type of a tensor, which looks like float32[2, 3]")
    name, listed, crossed = found.groups()
    dtype = None if name in (None, "unknown") else dtype_named(name)
    if crossed is not None:
        return TensorType(dtype, tuple(int(size) for size in crossed.split("x")))
    if listed is None:
        return TensorType(dtype)
    return TensorType(dtype, tuple(map(_dimension, listed.split(","))) if listed.strip() else ())


def dtype_named(name: str) -> DType:
    """The element type of that name. Raises ValueError where there is none."""
    if name not in DTYPES:
        from difflib import get_close_matches

        near = get_close_matches(name, DTYPES, 3)
        meant = f", did you mean {' or '.join(near)}?" if near else f": {', '.join(DTYPES)}"
        raise ValueError(f"{name!r} is no element type{meant}")
    return DTYPES[name]


def _dimension(text: str) -> Dimension:
    text = text.strip()
    if text in ("?", "-1"):
        return None
    if text.isascii() and text.isdecimal():
        return int(text)
    if not text or re.match(_NUMBER, text):
        raise ValueError(f"{text!r} is no size")
    return text

"""Inputs made up for measuring: where nothing is given and the model declares every size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, integer_range, is_float, is_integer
from onnxeval.errors import InputError
from onnxeval.values import OptionalType, TensorType, Value

if TYPE_CHECKING:
    from onnxeval.model import Declared

_NONE: Mapping[str, int] = {}
_WIDEST_OF_DATA = 2  # bytes: wider integers are indices, masks, lengths and shapes, for most of which 1 will do


def filled(
    inputs: Iterable[Declared], feeds: Mapping[str, Value], sizes: Mapping[str, int] = _NONE
) -> tuple[dict[str, Value], list[str]]:
    """The feeds with every other input that the model needs, and the names of those made up.

    Floats lie between 0 and 1, integers up to 16 bits are any, wider ones are 1, booleans true, strings empty; always
    the same. ``sizes`` are those of open dimensions, one without a name is called by its place, ``x[0]``. Raises
    InputError for inputs whose sizes are open all the same, naming all of them.
    """
    whole = dict(feeds)
    wanted = [
        entry
        for entry in inputs
        if entry.name not in feeds and not entry.optional and not isinstance(entry.type, OptionalType)
    ]
    shapes = {entry.name: _shape(entry, sizes) for entry in wanted}
    open_inputs = [entry for entry in wanted if shapes[entry.name] is None]
    if open_inputs:
        named = ", ".join(f'"{entry.name}" ({entry.type or "of undeclared type"})' for entry in open_inputs)
        raise InputError(
            f"no value for the input{'s' * (len(open_inputs) > 1)} {named}",
            hint="--input NAME=VALUE gives one; --dim gives the sizes that the model leaves open, as in --dim N=1",
        )
    rng = np.random.default_rng(0)
    for entry in wanted:
        assert isinstance(entry.type, TensorType)
        whole[entry.name] = _tensor(rng, shapes[entry.name] or [], entry.type.dtype or np.dtype(np.float32))
    return whole, [entry.name for entry in wanted]


def _shape(entry: Declared, sizes: Mapping[str, int]) -> list[int] | None:
    """The whole shape of an input; None where something of it, or its type, is open."""
    declared = entry.type
    if not isinstance(declared, TensorType) or declared.dtype is None or declared.shape is None:
        return None
    shape = []
    for place, size in enumerate(declared.shape):
        is_open = not isinstance(size, int) or size < 0
        known = sizes.get(size if isinstance(size, str) else f"{entry.name}[{place}]") if is_open else size
        if not isinstance(known, int):
            return None
        shape.append(known)
    return shape


def _tensor(rng: np.random.Generator, shape: list[int], dtype: DType) -> Tensor:
    if is_float(dtype) or dtype.kind == "c":
        return rng.random(shape).astype(dtype)
    if dtype == STRING:
        return np.full(shape, "", dtype)
    if is_integer(dtype) and dtype.itemsize <= _WIDEST_OF_DATA:
        low, high = integer_range(dtype)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    return np.ones(shape, dtype)

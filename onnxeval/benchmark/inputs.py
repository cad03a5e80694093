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

_WIDEST_OF_DATA = 2  # bytes: wider integers are indices, masks, lengths and shapes, for most of which 1 will do


def filled(inputs: Iterable[Declared], feeds: Mapping[str, Value]) -> tuple[dict[str, Value], list[str]]:
    """The feeds with every other input that the model needs, and the names of those made up.

    Floats lie between 0 and 1, integers up to 16 bits are any, wider ones are 1, booleans true, strings empty; always
    the same. Raises InputError for inputs whose declared sizes are open, naming all of them.
    """
    whole = dict(feeds)
    wanted = [
        entry
        for entry in inputs
        if entry.name not in feeds and not entry.optional and not isinstance(entry.type, OptionalType)
    ]
    open_inputs = [entry for entry in wanted if not _is_fixed(entry)]
    if open_inputs:
        named = ", ".join(f'"{entry.name}" ({entry.type or "of undeclared type"})' for entry in open_inputs)
        raise InputError(
            f"no value for the input{'s' * (len(open_inputs) > 1)} {named}",
            hint="give them with --input: only where the model declares every size can inputs be made up",
        )
    rng = np.random.default_rng(0)
    for entry in wanted:
        assert isinstance(entry.type, TensorType)
        shape = [size for size in entry.type.shape or () if isinstance(size, int)]
        whole[entry.name] = _tensor(rng, shape, entry.type.dtype or np.dtype(np.float32))
    return whole, [entry.name for entry in wanted]


def _is_fixed(entry: Declared) -> bool:
    declared = entry.type
    return (
        isinstance(declared, TensorType)
        and declared.dtype is not None
        and declared.shape is not None
        and all(isinstance(size, int) and size >= 0 for size in declared.shape)
    )


def _tensor(rng: np.random.Generator, shape: list[int], dtype: DType) -> Tensor:
    if is_float(dtype) or dtype.kind == "c":
        return rng.random(shape).astype(dtype)
    if dtype == STRING:
        return np.full(shape, "", dtype)
    if is_integer(dtype) and dtype.itemsize <= _WIDEST_OF_DATA:
        low, high = integer_range(dtype)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    return np.ones(shape, dtype)

"""Constant and ConstantOfShape: tensors that the model itself holds.

Constant held a dense tensor alone before version 11, where ``sparse_value`` arrived, and scalars and lists since 12.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import STRING, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.registry import op


@op("Constant", versions=(1, 9, 11, 12, 13, 19, 21, 23, 24, 25))
def constant(
    *,
    value: Tensor | None,
    sparse_value: Tensor | None = None,
    value_float: float | None = None,
    value_floats: tuple[float, ...] | None = None,
    value_int: int | None = None,
    value_ints: tuple[int, ...] | None = None,
    value_string: str | None = None,
    value_strings: tuple[str, ...] | None = None,
) -> Tensor:
    """The one value that is given, else ValueError: floats are float32, integers int64. Source: Constant-25."""
    given = {
        "value": value,
        "sparse_value": sparse_value,
        "value_float": _array(value_float, np.float32),
        "value_floats": _array(value_floats, np.float32),
        "value_int": _array(value_int, np.int64),
        "value_ints": _array(value_ints, np.int64),
        "value_string": _array(value_string, STRING),
        "value_strings": _array(value_strings, STRING),
    }
    present = {name: tensor for name, tensor in given.items() if tensor is not None}
    if len(present) != 1:
        raise ValueError(f"exactly one of {', '.join(given)} must be given, not {' and '.join(present) or 'none'}")
    return next(iter(present.values()))


def _array(attribute: object, dtype: np.typing.DTypeLike) -> Tensor | None:
    return None if attribute is None else np.array(attribute, dtype)


@op("ConstantOfShape", versions=(9, 20, 21, 23, 24, 25))
def constant_of_shape(shape: Tensor, *, value: Tensor | None, allocate: Allocate) -> Tensor:
    """A tensor of that shape, every element the one of ``value``, or a float32 0. Source: ConstantOfShape-25.

    An empty ``shape`` gives a scalar. ValueError where it is not of rank 1 or has a negative size, and where ``value``
    is not of one element.
    """
    sizes = tuple(shape.reshape(-1).tolist())
    if shape.ndim != 1 or min(sizes, default=0) < 0:
        raise ValueError(f"the shape {shape.tolist()} is not a list of sizes")
    fill = np.zeros(1, np.float32) if value is None else value
    if fill.size != 1:
        raise ValueError(f"value is of shape {list(fill.shape)}, expected one element")
    output = allocate(sizes, fill.dtype)
    output[...] = fill.reshape(())
    return output

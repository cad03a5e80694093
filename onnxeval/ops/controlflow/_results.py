"""What sub-graphs give back: whether it may be what was carried, and what stacks up over the iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.errors import NodeError
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._body import Body
from onnxeval.values import OptionalType, SequenceType, TensorType, Value, ValueType, describe, type_of


def same_type(first: ValueType | None, second: ValueType | None) -> bool:
    """Whether one variable may hold values of both types: shapes are free, an optional may be empty, None fits all."""
    if isinstance(first, OptionalType) or isinstance(second, OptionalType):
        return same_type(_held(first), _held(second))
    if first is None or second is None:
        return True
    match first, second:
        case TensorType(dtype=one), TensorType(dtype=other):
            return one is None or other is None or one == other
        case SequenceType(one), SequenceType(other):
            return same_type(one, other)
    return first == second


def _held(value_type: ValueType | None) -> ValueType | None:
    return value_type.element if isinstance(value_type, OptionalType) else value_type


def require_carried(before: Value, after: Value, place: int) -> None:
    """Raise ValueError where a carried value changes its type from one iteration to the next."""
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray) and before.dtype == after.dtype:
        return
    if before is None or after is None or not same_type(type_of(before), type_of(after)):
        raise ValueError(f"carried value {place} changes from {describe(before)} to {describe(after)}")


def stacked(rows: Sequence[Value], row_type: ValueType | None, place: int, axis: int = 0) -> Tensor:
    """One scan output: the rows of all iterations, stacked along a new ``axis``.

    Where there was none, ``row_type`` tells dtype and shape; sizes it does not tell are 0. Raises ValueError where rows
    differ in dtype or shape, and TypeError where they are no tensors.
    """
    if not rows:
        return _no_rows(row_type, place, axis)
    first = rows[0]
    for row in rows:
        if not isinstance(row, np.ndarray):
            raise TypeError(f"scan output {place} is {describe(row)}, expected a tensor")
        if row.shape != first.shape or row.dtype != first.dtype:
            raise ValueError(f"scan output {place} changes from {describe(first)} to {describe(row)}")
    return np.stack(rows, axis=normalise_axis(axis, first.ndim + 1))


def row_types(body: Body, inputs: Sequence[Value], n_carried: int) -> tuple[ValueType | None, ...]:
    """The types of the scan outputs of a sub-graph that was never run; ``n_carried`` results come before them.

    Where one is not declared, as in functions, the sub-graph is run on ``inputs``, what the first iteration would get,
    and all but the types of its results thrown away; what fails there is not the model's to answer for.
    """
    declared = body.output_types[n_carried:]
    if all(isinstance(row, TensorType) and row.dtype is not None for row in declared):
        return declared
    try:
        tried = [None if row is None else type_of(row) for row in body(*inputs)[n_carried:]]
    except (NodeError, ValueError, TypeError):
        return declared
    return tuple(
        said if isinstance(said, TensorType) and said.dtype is not None else found
        for said, found in zip(declared, tried, strict=True)
    )


def _no_rows(row_type: ValueType | None, place: int, axis: int) -> Tensor:
    if not isinstance(row_type, TensorType) or row_type.dtype is None:
        raise ValueError(f"scan output {place} has no rows, and the sub-graph does not declare their type")
    shape = [size if isinstance(size, int) else 0 for size in row_type.shape or ()]
    shape.insert(normalise_axis(axis, len(shape) + 1), 0)
    return np.empty(shape, row_type.dtype)

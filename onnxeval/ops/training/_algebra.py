"""What rules are written with, besides the operators of `Variable`: functions of variables under familiar names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from onnxeval.dtypes import ELEMENT_TYPES, DType, Tensor
from onnxeval.ops.training._tape import Input, Operand, Variable, apply, apply_all


def integers(values: Iterable[int]) -> Tensor:
    """An int64 tensor of rank 1: shapes, axes and bounds."""
    return np.array([*values], np.int64)


def number(like: Variable, value: float) -> Variable:
    """A constant of rank 0 and of the type of ``like``."""
    return like.tape.constant(np.asarray(value, like.dtype))


def filled(like: Variable, value: float, shape: Sequence[int] | None = None) -> Variable:
    """A constant of the type of ``like`` and of its shape, or another one, that holds one number."""
    sizes = like.shape if shape is None else tuple(shape)
    result = like.tape.allocate(sizes, like.dtype)
    result[...] = value
    return like.tape.constant(result)


def reshape(x: Variable, shape: Iterable[int]) -> Variable:
    sizes = tuple(shape)
    return x if x.shape == sizes else apply("Reshape", x, integers(sizes), allowzero=1)


def transpose(x: Variable, perm: Sequence[int]) -> Variable:
    return apply("Transpose", x, perm=tuple(perm))


def swapped(x: Variable) -> Variable:
    """A stack of matrices, each transposed."""
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def expand(x: Variable, shape: Sequence[int]) -> Variable:
    return x if x.shape == tuple(shape) else apply("Expand", x, integers(shape))


def concat(xs: Sequence[Variable], axis: int) -> Variable:
    return apply("Concat", *xs, axis=axis)


def split(x: Variable, axis: int, lengths: Sequence[int]) -> tuple[Variable, ...]:
    return apply_all("Split", x, integers(lengths), axis=axis, num_outputs=None, n_outputs=len(lengths))


def cast(x: Variable, dtype: DType) -> Variable:
    if x.dtype == dtype:
        return x
    return apply("Cast", x, to=ELEMENT_TYPES[dtype], saturate=1, round_mode="up")


def where(condition: Input, x: Operand, y: Operand) -> Variable:
    """``x`` or ``y``, one of which is a variable."""
    like = x if isinstance(x, Variable) else y
    assert isinstance(like, Variable)
    return apply("Where", condition, like.as_like(x), like.as_like(y))


def equal(x: Variable, y: Operand) -> Variable:
    return apply("Equal", x, x.as_like(y))


def total(x: Variable, axes: Iterable[int], *, keepdims: bool = True) -> Variable:
    """The sum over axes, which stay with a size of 1 unless told otherwise; over none it is ``x``."""
    along = integers(axes)
    return apply("ReduceSum", x, along, keepdims=int(keepdims), noop_with_empty_axes=1) if along.size else x


def mean(x: Variable, axes: Sequence[int]) -> Variable:
    """The mean over axes, which stay with a size of 1."""
    return total(x, axes) / math.prod(x.shape[axis] for axis in axes)


def fit(gradient: Variable, shape: tuple[int, ...]) -> Variable:
    """The gradient of what was broadcast from ``shape``: the sum over what stretched."""
    extra = gradient.ndim - len(shape)
    stretched = [axis for axis, size in enumerate(shape, extra) if size == 1 != gradient.shape[axis]]
    return reshape(total(gradient, [*range(extra), *stretched]), shape)


def absolute(x: Variable) -> Variable:
    return apply("Abs", x)


def exponential(x: Variable) -> Variable:
    return apply("Exp", x)


def logarithm(x: Variable) -> Variable:
    return apply("Log", x)


def root(x: Variable) -> Variable:
    return apply("Sqrt", x)


def power(x: Variable, exponent: Operand) -> Variable:
    return apply("Pow", x, x.as_like(exponent))


def sigmoid(x: Variable) -> Variable:
    return apply("Sigmoid", x)

"""The Reduce family: one number from all elements along some axes.

The axes were an attribute at first; they are an input since version 13 of ReduceSum and 18 of the others, which
brought ``noop_with_empty_axes``. What each of the ten computes stands in `KERNELS`, below.

Integers stay integers. Sums, products and absolute values wrap around as integer arithmetic does; means, norms and
logarithms are those of the exact numbers, cut towards zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor, integer_range, is_integer
from onnxeval.ops._axes import normalise_axes
from onnxeval.ops._precision import in_float32
from onnxeval.registry import Kernel, op

#: (data, axes counted from the front, whether to keep them with a size of 1) -> the reduced tensor
Reduction: TypeAlias = Callable[[Tensor, tuple[int, ...], bool], Tensor]

#: NumPy's own, without its types: they tell keepdims=True and keepdims=False apart, and know none that is a variable.
_sum: Callable[..., Any] = np.sum
_prod: Callable[..., Any] = np.prod
_max: Callable[..., Any] = np.max
_min: Callable[..., Any] = np.min


def reduce_sum(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """0 for nothing. Source: ReduceSum-13."""
    return np.asarray(_sum(data, axes, data.dtype, keepdims=keepdims))


def reduce_prod(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """1 for nothing. Source: ReduceProd-18."""
    return np.asarray(_prod(data, axes, data.dtype, keepdims=keepdims))


def reduce_max(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """NaN where there is one; minus infinity, the type's least value or False for nothing. Source: ReduceMax-20."""
    return np.asarray(_max(data, axes, keepdims=keepdims, initial=_limits(data)[0]))


def reduce_min(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """NaN where there is one; infinity, the type's greatest value or True for nothing. Source: ReduceMin-20."""
    return np.asarray(_min(data, axes, keepdims=keepdims, initial=_limits(data)[1]))


def reduce_mean(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """NaN for nothing; ValueError where that is not a number of the type. Source: ReduceMean-18."""
    count = math.prod(data.shape[axis] for axis in axes)
    if not is_integer(data.dtype):
        return np.asarray(reduce_sum(data, axes, keepdims) / np.asarray(count, data.dtype))
    _refuse_nothing("mean", count, data)
    wide = data.astype(np.int64 if data.dtype.kind == "i" else np.uint64)
    whole, rest = np.divmod(wide, np.asarray(count, wide.dtype))
    carried, remainder = np.divmod(reduce_sum(rest, axes, keepdims), np.asarray(count, wide.dtype))
    mean = reduce_sum(whole, axes, keepdims) + carried
    return np.asarray(mean + ((mean < 0) & (remainder > 0)), data.dtype)


def reduce_l1(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """0 for nothing. Source: ReduceL1-18."""
    return reduce_sum(np.abs(data), axes, keepdims)


def reduce_sum_square(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """0 for nothing. Source: ReduceSumSquare-18."""
    return reduce_sum(data * data, axes, keepdims)


def reduce_l2(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """0 for nothing; ValueError where the norm of integers is beyond their type. Source: ReduceL2-18."""
    if is_integer(data.dtype):
        squares = np.asarray(_exact(data) ** 2, dtype=object)
        return _whole("L2 norm", _each(math.isqrt, reduce_sum(squares, axes, keepdims)), data)
    norm = np.sqrt(_sum(np.square(data, dtype=np.float64), axes, keepdims=keepdims))
    return np.asarray(norm, data.dtype)


def reduce_log_sum(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """Minus infinity for nothing; ValueError where that is not a number of the type. Source: ReduceLogSum-28."""
    if not is_integer(data.dtype):
        return np.log(reduce_sum(data, axes, keepdims))
    total = reduce_sum(_exact(data), axes, keepdims)
    if (total <= 0).any():
        raise ValueError(f"the logarithm of {total[total <= 0].flat[0]} is no {data.dtype}")
    return _whole("logarithm", _each(lambda number: int(math.log(number)), total), data)


def reduce_log_sum_exp(data: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """Minus infinity for nothing; ValueError where that is not a number of the type. Source: ReduceLogSumExp-28.

    Exponentials are taken relative to the greatest element, so that none overflows.
    """
    greatest = reduce_max(data, axes, keepdims=True)
    if is_integer(data.dtype):
        _refuse_nothing("logarithm", math.prod(data.shape[axis] for axis in axes), data)
        below = np.asarray(_exact(data) - _exact(greatest), np.float64)
        excess = np.log(np.sum(np.exp(below), axes, keepdims=True))
        floor = np.asarray(_exact(greatest) + _exact(np.floor(excess).astype(np.int64)), dtype=object)
        whole = np.asarray(floor + _exact((floor < 0) & (excess > np.floor(excess))), dtype=object)
        return _whole("logarithm", whole if keepdims else np.squeeze(whole, axes), data)
    offset = np.where(np.isfinite(greatest), greatest, 0).astype(np.float64)
    total = np.sum(np.exp(data - offset), axes, keepdims=True)
    result = np.asarray(np.log(total) + offset, data.dtype)
    return result if keepdims else np.squeeze(result, axes)


def _limits(data: Tensor) -> tuple[float, float]:
    if data.dtype == np.bool_:
        return False, True
    return integer_range(data.dtype) if is_integer(data.dtype) else (-math.inf, math.inf)


def _refuse_nothing(what: str, count: int, data: Tensor) -> None:
    if not count:
        raise ValueError(f"the {what} of no elements is no {data.dtype}: the input has shape {list(data.shape)}")


def _exact(data: Tensor) -> Tensor:
    """As Python's integers, which do not overflow."""
    return np.asarray(data).astype(object)


def _each(function: Callable[[int], int], numbers: Tensor) -> Tensor:
    return np.asarray(np.frompyfunc(function, 1, 1)(numbers), dtype=object)


def _whole(what: str, numbers: Tensor, data: Tensor) -> Tensor:
    low, high = integer_range(data.dtype)
    if outside := [number for number in numbers.flat if not low <= number <= high]:
        raise ValueError(f"the {what} {outside[0]} is outside [{low}, {high}], the range of {data.dtype}")
    return numbers.astype(data.dtype)


def by_input(reduction: Reduction) -> Kernel:
    """The kernel whose axes are an input: absent or empty, they mean all axes, or none if so asked."""

    @in_float32
    def kernel(data: Tensor, axes: Tensor | None, *, keepdims: int, noop_with_empty_axes: int) -> Tensor:
        if axes is not None and axes.ndim != 1:
            raise ValueError(f"axes has rank {axes.ndim}, expected 1")
        along = () if axes is None else normalise_axes(axes, data.ndim)
        if not along and not noop_with_empty_axes:
            along = tuple(range(data.ndim))
        return reduction(data, along, bool(keepdims))

    return kernel


def by_attribute(reduction: Reduction) -> Kernel:
    """The kernel whose axes are an attribute: without it, all axes."""

    @in_float32
    def kernel(data: Tensor, *, axes: tuple[int, ...] | None, keepdims: int) -> Tensor:
        along = normalise_axes(axes, data.ndim) if axes else tuple(range(data.ndim))
        return reduction(data, along, bool(keepdims))

    return kernel


#: operator -> (what it computes, versions with axes as an attribute, versions with axes as an input)
KERNELS: dict[str, tuple[Reduction, tuple[int, ...], tuple[int, ...]]] = {
    "ReduceL1": (reduce_l1, (1, 11, 13), (18,)),
    "ReduceL2": (reduce_l2, (1, 11, 13), (18,)),
    "ReduceLogSum": (reduce_log_sum, (1, 11, 13), (18, 28)),
    "ReduceLogSumExp": (reduce_log_sum_exp, (1, 11, 13), (18, 28)),
    "ReduceMax": (reduce_max, (1, 11, 12, 13), (18, 20)),
    "ReduceMean": (reduce_mean, (1, 11, 13), (18,)),
    "ReduceMin": (reduce_min, (1, 11, 12, 13), (18, 20)),
    "ReduceProd": (reduce_prod, (1, 11, 13), (18,)),
    "ReduceSum": (reduce_sum, (1, 11), (13,)),
    "ReduceSumSquare": (reduce_sum_square, (1, 11, 13), (18,)),
}

for _name, (_reduction, _by_attribute, _by_input) in KERNELS.items():
    op(_name, versions=_by_attribute)(by_attribute(_reduction))
    op(_name, versions=_by_input)(by_input(_reduction))

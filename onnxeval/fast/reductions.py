"""Sums, means, norms and extremes over any axes, where an extreme is, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import DType, Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import FLOAT32, TYPES, contiguous, is_plain
from onnxeval.fast.engine import native
from onnxeval.ops.reduction.reduce import KERNELS
from onnxeval.registry import STANDARD, Kernel, OpKey

_FLOATS = frozenset({FLOAT32})
_NUMBERS = _FLOATS | frozenset(map(np.dtype, ("i4", "i8")))
_LINES = _NUMBERS | frozenset({np.dtype(np.float64)})
_SEARCHED = _LINES | frozenset(map(np.dtype, ("i1", "u1")))

#: Operator -> its number in arrays.h and the types that it serves
_REDUCTIONS: dict[str, tuple[int, frozenset[DType]]] = {
    "ReduceSum": (0, _NUMBERS),
    "ReduceMean": (1, _FLOATS),
    "ReduceSumSquare": (2, _FLOATS),
    "ReduceL1": (3, _FLOATS),
    "ReduceL2": (4, _FLOATS),
    "ReduceMax": (5, _NUMBERS),
    "ReduceMin": (6, _NUMBERS),
}

_MOST_PLANS = 256


@lru_cache(_MOST_PLANS)
def _reduced(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[tuple[int, ...], int] | None:
    """The shape of a result and the bits of the axes that give way; None where they are no such axes."""
    rank = len(shape)
    if any(not -rank <= axis < rank for axis in axes):
        return None
    along = {axis % rank for axis in axes}
    if len(along) != len(axes):
        return None
    left = [(1 if axis in along else size) for axis, size in enumerate(shape) if keepdims or axis not in along]
    return tuple(left), sum(1 << axis for axis in along)


def _reduction(what: int, served: frozenset[DType]) -> Callable[[Tensor, Sequence[int], bool], Tensor | None]:
    """What reduces over those axes; it gives None where that is for the readable kernel."""
    kernels = native()
    assert kernels is not None
    reduce = kernels.reduce

    def reduced(x: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor | None:
        if type(x) is not np.ndarray or x.dtype not in served or not is_plain(x, x.dtype):
            return None
        plan = _reduced(x.shape, tuple(axes), keepdims)
        if plan is None:
            return None
        result = empty(plan[0], x.dtype)
        reduce(what, TYPES[x.dtype], x, result, plan[1])
        return result

    return reduced


def _by_input(readable: Kernel, name: str) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel]:
    def bind(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
        reduce = _reduction(*_REDUCTIONS[name])

        @replayable
        def reduced(data: Tensor, axes: Tensor | None, *, keepdims: int, noop_with_empty_axes: int) -> Tensor:
            result = None
            if axes is None or axes.ndim == 1:
                along = [] if axes is None else axes.tolist()
                if not along and not noop_with_empty_axes:
                    along = list(range(data.ndim))
                result = reduce(data, along, bool(keepdims))
            if result is None:
                return readable(  # type: ignore[no-any-return]
                    data, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes
                )
            return result

        return reduced

    return bind


def _by_attribute(readable: Kernel, name: str) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel]:
    def bind(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
        reduce = _reduction(*_REDUCTIONS[name])

        @replayable
        def reduced(data: Tensor, *, axes: tuple[int, ...] | None, keepdims: int) -> Tensor:
            result = reduce(data, axes or range(data.ndim), bool(keepdims))
            return readable(data, axes=axes, keepdims=keepdims) if result is None else result

        return reduced

    return bind


for _name in _REDUCTIONS:
    _, _attribute_versions, _input_versions = KERNELS[_name]
    for _versions, _make in ((_attribute_versions, _by_attribute), (_input_versions, _by_input)):
        _kernel = STANDARD[OpKey("", _name, _versions[-1])]
        replaces(_kernel)(_make(_kernel, _name))


def _search(readable: Kernel, *, least: bool) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel]:
    def bind(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
        kernels = native()
        assert kernels is not None

        @replayable
        def found(data: Tensor, *, axis: int, keepdims: int, select_last_index: int = 0) -> Tensor:
            plan = _reduced(data.shape, (axis,), bool(keepdims)) if is_plain(data, data.dtype) else None
            if plan is None or data.dtype not in _SEARCHED or not data.shape[axis]:
                return readable(data, axis=axis, keepdims=keepdims, select_last_index=select_last_index)  # type: ignore[no-any-return]
            result = empty(plan[0], np.int64)
            place = axis % data.ndim
            kernels.search(TYPES[data.dtype], contiguous(data), result, place, least, select_last_index)
            return result

        return found

    return bind


for _name in ("ArgMax", "ArgMin"):
    _kernel = STANDARD.require(OpKey("", _name, 13), "reduction")
    replaces(_kernel)(_search(_kernel, least=_name == "ArgMin"))


_running_sum = STANDARD.require(OpKey("", "CumSum", 14), "math")


@replaces(_running_sum)
def bind_cumulative_sum(constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel | None:
    """CumSum along a constant axis."""
    kernels = native()
    assert kernels is not None
    axis = constants[1]
    if axis is None or axis.size != 1 or axis.dtype.kind != "i":
        return None
    along = int(axis.item())

    @replayable
    def summed(x: Tensor, axis: Tensor, *, exclusive: int, reverse: int) -> Tensor:
        if not is_plain(x, x.dtype) or x.dtype not in _LINES or not -x.ndim <= along < x.ndim:
            return _running_sum(x, axis, exclusive=exclusive, reverse=reverse)  # type: ignore[no-any-return]
        result = empty(x.shape, x.dtype)
        kernels.add_up(TYPES[x.dtype], contiguous(x), result, along % x.ndim, exclusive, reverse)
        return result

    return summed

"""MaxPool, of 8 bits too, and AveragePool of float32 over up to three axes: the last two at once, then the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_bytes, is_float32
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._windows import Windows, check_seen, windows_of
from onnxeval.ops.nn.average_pool import average_pool, global_average_pool
from onnxeval.ops.nn.max_pool import global_max_pool, max_pool
from onnxeval.registry import Kernel

#: Taps on an axis, and elements of padding, that the compiled kernel makes room for.
_MOST = 1 << 16

#: Elements of a plane that a float counts exactly.
_MOST_ELEMENTS = 1 << 24

#: Shapes of planes whose counts are remembered.
_MOST_PLANS = 256

_OF_WINDOWS = ("auto_pad", "pads", "strides", "dilations", "ceil_mode")


class _Plan(NamedTuple):
    """What the shape of an input decides, for two of its axes."""

    planes: tuple[int, ...]  # that shape, with two spatial axes
    results: tuple[int, ...]  # the result's
    geometry: tuple[int, ...]  # taps, strides, dilations and the padding before, of two axes
    counted: tuple[Tensor | None, Tensor | None]  # how much each window's mean is of, for each axis


#: That an axis without windows counts.
_ONE = np.ones(1, np.float32)


@replaces(max_pool)
def bind_max_pool(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """MaxPool, of float32 alone where the places of the maxima are asked for."""
    if attributes.get("n_outputs", 1) > 1:
        return _with_places(attributes)

    def counted(windows: Sequence[Windows]) -> None:
        check_seen(windows)

    pooled = _pool(attributes, counted, takes_bytes=True)

    @replayable
    def pool(x: Tensor, *, allocate: Allocate, **given: Any) -> Any:
        result = pooled(x, allocate)
        return max_pool(x, allocate=allocate, **given) if result is None else result

    return pool


def _with_places(attributes: Mapping[str, Any]) -> Kernel | None:
    """MaxPool that tells where the maxima are."""
    kernels = native()
    assert kernels is not None
    options = {name: attributes[name] for name in _OF_WINDOWS if name in attributes}
    kernel_shape, order = attributes["kernel_shape"], attributes.get("storage_order", 0)
    if order not in (0, 1):
        return None

    def found(x: Tensor, allocate: Allocate) -> tuple[Tensor, Tensor] | None:
        if not is_float32(x) or x.ndim not in (3, 4, 5) or not x.size or len(kernel_shape) != x.ndim - 2:
            return None
        windows = windows_of(x.shape[2:], kernel_shape, **options)
        if any(max(w.kernel * w.dilation, w.begin, w.stride) > _MOST or w.number < 1 for w in windows):
            return None
        check_seen(windows)
        shape = (*x.shape[:2], *(w.number for w in windows))
        maxima, places = allocate(shape, x.dtype), allocate(shape, np.dtype(np.int64))
        missing = 3 - len(windows)
        axes = [(1, 1, 1, 0)] * missing + [(w.kernel, w.stride, w.dilation, w.begin) for w in windows]
        planes = math.prod(x.shape[:2])
        sizes, numbers = ((planes, *(1,) * missing, *each[2:]) for each in (x.shape, shape))
        results = (each.reshape(numbers) for each in (maxima, places))
        kernels.search_maxima(contiguous(x).reshape(sizes), *results, axes[0], axes[1], axes[2], order == 1)
        return maxima, places

    @replayable
    def pool(x: Tensor, *, allocate: Allocate, **given: Any) -> Any:
        results = found(x, allocate)
        return max_pool(x, allocate=allocate, **given) if results is None else results

    return pool


@replaces(average_pool)
def bind_average_pool(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
    """AveragePool."""
    padding_counts = attributes.get("count_include_pad", 0)

    def counted(windows: Sequence[Windows]) -> list[Tensor]:
        if not padding_counts:
            check_seen(windows)
        return [np.asarray(w.padded() if padding_counts else w.seen(), np.float32) for w in windows]

    pooled = _pool(attributes, counted, takes_bytes=False)

    @replayable
    def pool(x: Tensor, *, allocate: Allocate, **given: Any) -> Tensor:
        result = pooled(x, allocate)
        return average_pool(x, allocate=allocate, **given) if result is None else result

    return pool


@replaces(global_average_pool)
def bind_global_average_pool(_: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """GlobalAveragePool, as one window over each plane."""
    return _of_whole_planes(global_average_pool, _counts_of_one)


@replaces(global_max_pool)
def bind_global_max_pool(_: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """GlobalMaxPool, the same way."""
    return _of_whole_planes(global_max_pool, lambda _: (None, None))


def _of_whole_planes(
    readable: Kernel, counts: Callable[[int], tuple[Tensor | None, Tensor | None]]
) -> Callable[[Tensor], Tensor]:
    kernels = native()
    assert kernels is not None

    @replayable
    def pool(x: Tensor) -> Any:
        size = math.prod(x.shape[2:])
        if not is_float32(x) or x.ndim < 3 or not x.size or size > _MOST_ELEMENTS:
            return readable(x)
        result = empty((*x.shape[:2], *(1,) * (x.ndim - 2)), np.float32)
        planes = contiguous(x).reshape(*x.shape[:2], 1, size)
        kernels.pool(planes, result.reshape(*x.shape[:2], 1, 1), *counts(size), 1, size, 1, 1, 1, 1, 0, 0)
        return result

    return pool


@lru_cache(_MOST_PLANS)
def _counts_of_one(size: int) -> tuple[Tensor, Tensor]:
    """How many elements one window over a plane sees along each of two axes, the plane as a row."""
    return _ONE, np.array([size], np.float32)


def _pool(
    attributes: Mapping[str, Any],
    counted: Callable[[Sequence[Windows]], Sequence[Tensor] | None],
    *,
    takes_bytes: bool,
) -> Callable[[Tensor, Allocate], Tensor | None]:
    """What computes the result; None where this is for the readable kernel."""
    kernels = native()
    assert kernels is not None
    options = {name: attributes[name] for name in _OF_WINDOWS if name in attributes}
    kernel_shape = attributes["kernel_shape"]
    plans: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[_Plan, ...]]] = {}

    def plans_for(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[_Plan, ...]]:
        windows = windows_of(shape[2:], kernel_shape, **options)
        if any(max(w.kernel * w.dilation, w.begin, w.stride) > _MOST or w.number < 1 for w in windows):
            return (), ()
        sizes_after = (*shape[:2], *(w.number for w in windows))
        counts = counted(windows)
        whole: list[Windows | None] = [*(None,) * (3 - len(windows)), *windows]  # None: an axis of size one
        sizes = (1,) * (3 - len(windows)) + shape[2:]
        divisors = [None if counts is None else _ONE] * (3 - len(windows)) + list(counts or (None,) * len(windows))
        height, width = (1 if w is None else w.number for w in whole[1:])
        planes = (shape[0], shape[1] * sizes[0])
        last = _plan((*planes, *sizes[1:]), (*planes, height, width), whole[1:], divisors[1:])
        if whole[0] is None:
            return sizes_after, (last,)
        after = (shape[0], shape[1])
        outer = (*after, whole[0].number, height * width)
        one = None if counts is None else np.ones(height * width, np.float32)
        return sizes_after, (
            last,
            _plan((*after, sizes[0], height * width), outer, [whole[0], None], [divisors[0], one]),
        )

    def pooled(x: Tensor, allocate: Allocate) -> Tensor | None:
        of_bytes = takes_bytes and is_bytes(x)
        if not (is_float32(x) or of_bytes) or x.ndim not in (3, 4, 5) or not x.size or len(kernel_shape) != x.ndim - 2:
            return None
        found = plans.get(x.shape)
        if found is None:
            found = plans_for(x.shape)
            if len(plans) < _MOST_PLANS:
                plans[x.shape] = found
        sizes, steps = found
        if not steps:
            return None
        result = contiguous(x)
        for step in steps:
            source, result = result, allocate(step.results, x.dtype)
            if of_bytes:
                kernels.pool_bytes(source.reshape(step.planes), result, *step.geometry)
            else:
                kernels.pool(source.reshape(step.planes), result, *step.counted, *step.geometry)
        return result.reshape(sizes)

    return pooled


def _plan(
    planes: tuple[int, ...],
    results: tuple[int, ...],
    windows: Sequence[Windows | None],
    counts: Sequence[Tensor | None],
) -> _Plan:
    """Over two axes, each of which may have no windows: then all its elements stand alone."""
    numbers = [
        *(1 if w is None else w.kernel for w in windows),
        *(1 if w is None else w.stride for w in windows),
        *(1 if w is None else w.dilation for w in windows),
        *(0 if w is None else w.begin for w in windows),
    ]
    return _Plan(planes, results, tuple(numbers), (counts[0], counts[1]))

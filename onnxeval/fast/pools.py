"""MaxPool and AveragePool of float32 over one or two axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._windows import Windows, check_seen, windows_of
from onnxeval.ops.nn.average_pool import average_pool, global_average_pool
from onnxeval.ops.nn.max_pool import max_pool
from onnxeval.registry import Kernel

#: Taps on an axis, and elements of padding, that the compiled kernel makes room for.
_MOST = 1 << 16

#: Shapes of planes whose counts are remembered.
_MOST_PLANS = 256

_OF_WINDOWS = ("auto_pad", "pads", "strides", "dilations", "ceil_mode")


class _Plan(NamedTuple):
    """What the shape of an input decides."""

    planes: tuple[int, ...]  # that shape, with two spatial axes
    counts: tuple[int, ...]  # the result's spatial sizes
    geometry: tuple[int, ...]  # taps, strides, dilations and the padding before, of two axes
    counted: tuple[Tensor | None, Tensor | None]  # how much each window's mean is of, for each axis


@replaces(max_pool)
def bind_max_pool(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """MaxPool that nobody asks for the places of the maxima."""
    if attributes.get("n_outputs", 1) > 1:
        return None

    def counted(windows: Sequence[Windows]) -> tuple[None, None]:
        check_seen(windows)
        return None, None

    pooled = _pool(attributes, counted)

    @replayable
    def pool(x: Tensor, *, allocate: Allocate, **given: Any) -> Any:
        result = pooled(x, allocate)
        return max_pool(x, allocate=allocate, **given) if result is None else result

    return pool


@replaces(average_pool)
def bind_average_pool(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
    """AveragePool."""
    padding_counts = attributes.get("count_include_pad", 0)

    def counted(windows: Sequence[Windows]) -> tuple[Tensor, Tensor]:
        if not padding_counts:
            check_seen(windows)
        counts = [np.asarray(w.padded() if padding_counts else w.seen(), np.float32) for w in windows]
        return (np.ones(1, np.float32), counts[0]) if len(counts) == 1 else (counts[0], counts[1])

    pooled = _pool(attributes, counted)

    @replayable
    def pool(x: Tensor, *, allocate: Allocate, **given: Any) -> Tensor:
        result = pooled(x, allocate)
        return average_pool(x, allocate=allocate, **given) if result is None else result

    return pool


@replaces(global_average_pool)
def bind_global_average_pool(_: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """GlobalAveragePool, as one window over each plane."""
    kernels = native()
    assert kernels is not None

    @replayable
    def pool(x: Tensor) -> Tensor:
        if not is_float32(x) or x.ndim not in (3, 4) or not x.size or max(x.shape[2:]) > _MOST:
            return global_average_pool(x)
        height, width = x.shape[2:] if x.ndim == 4 else (1, x.shape[2])
        counts = _whole_counts(height, width)
        result = np.empty((*x.shape[:2], 1, 1), np.float32)
        planes = contiguous(x).reshape(*x.shape[:2], height, width)
        kernels.pool(planes, result, counts[0], counts[1], height, width, 1, 1, 1, 1, 0, 0)
        return result.reshape(*x.shape[:2], *(1,) * (x.ndim - 2))

    return pool


@lru_cache(_MOST_PLANS)
def _whole_counts(height: int, width: int) -> Tensor:
    """How many elements one window over a plane sees along each axis."""
    return np.array([[height], [width]], np.float32)


def _pool(
    attributes: Mapping[str, Any],
    counted: Callable[[Sequence[Windows]], tuple[Tensor | None, Tensor | None]],
) -> Callable[[Tensor, Allocate], Tensor | None]:
    """What computes the result; None where this is for the readable kernel."""
    kernels = native()
    assert kernels is not None
    options = {name: attributes[name] for name in _OF_WINDOWS if name in attributes}
    kernel_shape = attributes["kernel_shape"]
    plans: dict[tuple[int, ...], _Plan | None] = {}

    def plan_for(shape: tuple[int, ...]) -> _Plan | None:
        windows = windows_of(shape[2:], kernel_shape, **options)
        if any(max(w.kernel * w.dilation, w.begin, w.stride) > _MOST or w.count < 1 for w in windows):
            return None
        counts = tuple(w.count for w in windows)
        flat = len(windows) == 1
        numbers: list[int] = []
        for alone, each in (
            (1, [w.kernel for w in windows]),
            (1, [w.stride for w in windows]),
            (1, [w.dilation for w in windows]),
            (0, [w.begin for w in windows]),
        ):
            numbers += [alone, *each] if flat else each
        return _Plan((*shape[:2], 1, shape[2]) if flat else shape, counts, tuple(numbers), counted(windows))

    def pooled(x: Tensor, allocate: Allocate) -> Tensor | None:
        if not is_float32(x) or x.ndim not in (3, 4) or not x.size or len(kernel_shape) != x.ndim - 2:
            return None
        plan = plans.get(x.shape)
        if plan is None:
            plan = plan_for(x.shape)
            if plan is None:
                return None
            if len(plans) < _MOST:
                plans[x.shape] = plan
        result = allocate((*x.shape[:2], *plan.counts), np.float32)
        out = result.reshape(*x.shape[:2], *(1,) * (4 - x.ndim), *plan.counts)
        kernels.pool(contiguous(x).reshape(plan.planes), out, *plan.counted, *plan.geometry)
        return result

    return pooled

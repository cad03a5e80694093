"""Pad: the whole filled and the middle moved, or each axis gathered from where it copies. Of any type but strings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import bits, contiguous, is_movable
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._axes import normalise_axes
from onnxeval.ops.tensor._zero import zero
from onnxeval.ops.tensor.pad import SOURCES, Span, pad, pad_without_wrap
from onnxeval.registry import Kernel

_MOST_PLANS = 64
#: The readable kernel refuses what takes more memory than there is, before it makes anything of that size.
_LONGEST = 1 << 24


class _Plan(NamedTuple):
    """What the shape of an input and the amounts decide."""

    shape: tuple[int, ...]
    kept: tuple[Any, ...]  # slices, and an ellipsis that keeps a single element an array
    target: tuple[Any, ...]
    sources: tuple[tuple[int, Tensor], ...]  # axis -> which of its elements each place copies; none for a constant


@lru_cache(_MOST_PLANS)
def _plan_for(
    shape: tuple[int, ...], amounts: tuple[int, ...], axes: tuple[int, ...] | None, mode: str
) -> _Plan | None:
    """None where this is for the readable kernel."""
    try:
        along = tuple(range(len(shape))) if axes is None else normalise_axes(axes, len(shape))
    except ValueError:
        return None
    if len(amounts) != 2 * len(along):
        return None
    spans = [Span(size, 0, 0) for size in shape]
    for axis, before, after in zip(along, amounts[: len(along)], amounts[len(along) :], strict=True):
        spans[axis] = Span(shape[axis], before, after)
    result = tuple([span.padded for span in spans])
    kept = tuple([span.kept for span in spans])
    if min(result, default=0) < 1 or max(result) > _LONGEST or any(each.stop <= each.start for each in kept):
        return None
    changed = [(axis, span) for axis, span in enumerate(spans) if span.before or span.after]
    sources = () if mode == "constant" else tuple([(axis, span.sources(mode)) for axis, span in changed])
    return _Plan(result, (*kept, ...), (*(span.target for span in spans), ...), sources)


_zero = lru_cache(zero)  # one array a type: a call that is recorded reads it again


def _with_constant(data: Tensor, plan: _Plan, fill: Tensor | None, allocate: Allocate) -> Tensor | None:
    kernels = native()
    assert kernels is not None
    value = _zero(data.dtype) if fill is None else fill
    if value.size != 1 or value.dtype != data.dtype or value.ndim > data.ndim:
        return None
    result = allocate(plan.shape, data.dtype)
    whole = bits(result)
    kernels.copy(bits(value), whole)
    kernels.copy(bits(data)[plan.kept], whole[plan.target])
    return result


def _with_copies(data: Tensor, plan: _Plan, allocate: Allocate) -> Tensor:
    kernels = native()
    assert kernels is not None
    kept: Tensor = data[plan.kept]
    for axis, source in plan.sources:
        result = allocate((*kept.shape[:axis], len(source), *kept.shape[axis + 1 :]), data.dtype)
        kernels.move_slices(bits(contiguous(kept)), source, bits(result), axis, True, False)
        kept = result
    return kept


def _binder(readable: Kernel, modes: Sequence[str]) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel]:
    def bind(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
        @replayable
        def padded(
            data: Tensor,
            pads: Tensor,
            constant_value: Tensor | None,
            axes: Tensor | None,
            *,
            mode: str,
            allocate: Allocate,
        ) -> Tensor:
            suits = mode in modes and is_movable(data) and pads.ndim == 1 and (axes is None or axes.ndim == 1)
            plan = None
            if suits:
                along = None if axes is None else tuple(axes.tolist())
                plan = _plan_for(data.shape, tuple(pads.tolist()), along, mode)
            result = None
            if plan is not None and mode == "constant":
                result = _with_constant(data, plan, constant_value, allocate)
            elif plan is not None and plan.sources:
                result = _with_copies(data, plan, allocate)
            if result is None:
                return readable(data, pads, constant_value, axes, mode=mode, allocate=allocate)  # type: ignore[no-any-return]
            return result

        return padded

    return bind


replaces(pad)(_binder(pad, ("constant", *SOURCES)))
replaces(pad_without_wrap)(_binder(pad_without_wrap, ("constant", "reflect", "edge")))

"""Resize and Upsample axis by axis: elements that are copied are gathered, averages are of float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import bits, contiguous, is_float32, is_movable
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.tensor._sampling import COORDINATES, LINEAR, NEAREST, Axis, coordinates, cubic, nearest, taps
from onnxeval.ops.tensor.resize import POLICIES, is_in_place, planned, resize, resize_by_scales, scaled, upsample
from onnxeval.registry import Kernel

#: Shapes, scales and sizes for which one step remembers what to do.
_MOST_PLANS = 16


class _Step(NamedTuple):
    """One axis: the elements that are copied, or (taps, length) of those that are weighed."""

    axis: int
    places: Tensor
    weights: Tensor | None


#: What plans for an array, from scales and sizes; None where that is for the readable kernel.
_Planner = Callable[[Tensor, "Tensor | None", "Tensor | None", Allocate], "Sequence[_Step] | None"]


class _Resizer:
    """Does what a planner says, remembered for shapes, scales and sizes."""

    def __init__(self, planner: _Planner, *, copies: bool) -> None:
        self.planner = planner
        self.copies = copies
        self.plans: dict[Any, Sequence[_Step] | None] = {}

    def __call__(self, x: Tensor, scales: Tensor | None, sizes: Tensor | None, allocate: Allocate) -> Tensor | None:
        """None where this is for the readable kernel."""
        kernels = native()
        assert kernels is not None
        if not (is_movable(x) if self.copies else is_float32(x)) or not x.size:
            return None
        key = (x.shape, *(None if each is None else (each.dtype.str, each.tobytes()) for each in (scales, sizes)))
        if key not in self.plans:
            if len(self.plans) >= _MOST_PLANS:
                self.plans.clear()
            self.plans[key] = self.planner(x, scales, sizes, allocate)
        plan = self.plans[key]
        if not plan:
            return None
        for axis, places, weights in plan:
            result = allocate((*x.shape[:axis], places.shape[-1], *x.shape[axis + 1 :]), x.dtype)
            if weights is None:
                kernels.move_slices(bits(contiguous(x)), places, bits(result), axis, True, False)
            else:
                kernels.resample(contiguous(x), result, places, weights, axis)
            x = result
        return x


def _copies(x: Tensor, chosen: Mapping[int, Tensor]) -> list[_Step]:
    order = _inner_first(x, {at: places.size for at, places in chosen.items()})
    return [_Step(at, np.ascontiguousarray(chosen[at]), None) for at in order]


def _inner_first(x: Tensor, lengths: Mapping[int, int]) -> list[int]:
    """Axes that grow less first; of equal ones the inner one, as single elements cost more than rows of them."""
    return sorted(lengths, key=lambda at: (lengths[at] / x.shape[at], -at))


def _averages(
    x: Tensor, where: Mapping[int, Tensor], plan: Mapping[int, Axis], filter_: Any, allocate: Allocate, **weighing: bool
) -> list[_Step]:
    steps = []
    for at in _inner_first(x, {at: each.size for at, each in where.items()}):
        each = taps(where[at], plan[at], filter_, allocate, **weighing)
        weights = np.ascontiguousarray(each.weights, np.float32)
        steps.append(_Step(at, np.ascontiguousarray(each.places, np.int32), weights))
    return steps


@replaces(resize)
def bind_resize(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """Resize, but for crops and what has no elements."""
    mode, coordinate_mode = attributes["mode"], attributes["coordinate_transformation_mode"]
    filters = {"nearest": None, "linear": LINEAR, "cubic": cubic(attributes["cubic_coeff_a"])}
    if mode not in filters or coordinate_mode == "tf_crop_and_resize" or attributes.get("axes") is not None:
        return None
    if coordinate_mode not in COORDINATES or attributes["nearest_mode"] not in NEAREST:
        return None
    weighing = {name: bool(attributes.get(name, 0)) for name in ("antialias", "exclude_outside")}
    policy = attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy not in POLICIES:
        return None

    def planner(x: Tensor, scales: Tensor | None, sizes: Tensor | None, allocate: Allocate) -> Sequence[_Step] | None:
        try:
            plan = planned(x, tuple(range(x.ndim)), None, scales, sizes, policy)
            if not all(axis.resized for axis in plan.values()):
                return None
            where = {at: coordinates(axis, coordinate_mode, allocate) for at, axis in plan.items()}
        except (ValueError, KeyError):  # the readable kernel says what is wrong
            return None
        where = {at: each for at, each in where.items() if not is_in_place(each, plan[at])}
        filter_ = filters[mode]
        if filter_ is None:
            chosen = {at: nearest(each, plan[at], attributes["nearest_mode"]) for at, each in where.items()}
            return _copies(x, chosen)
        return _averages(x, where, plan, filter_, allocate, **weighing)

    resizer = _Resizer(planner, copies=mode == "nearest")

    @replayable
    def resized(
        x: Tensor, roi: Tensor | None, scales: Tensor | None, sizes: Tensor | None, *, allocate: Allocate, **given: Any
    ) -> Tensor:
        result = resizer(x, scales, sizes, allocate)
        return resize(x, roi, scales, sizes, allocate=allocate, **given) if result is None else result

    return resized


def _by_scales(readable: Kernel, *, may_shrink: bool) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel]:
    """What binds versions whose coordinates are ``x / scale``."""

    def bind(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
        mode = attributes["mode"]

        def planner(x: Tensor, scales: Tensor | None, _: Tensor | None, allocate: Allocate) -> Sequence[_Step] | None:
            if mode not in ("nearest", "linear") or scales is None or (not may_shrink and (scales < 1).any()):
                return None
            try:
                plan = dict(enumerate(scaled(x.shape, scales.ravel().tolist(), [(0.0, 1.0)] * x.ndim)))
            except ValueError:
                return None
            if not all(axis.resized for axis in plan.values()):
                return None
            where = {at: coordinates(axis, "asymmetric", allocate) for at, axis in plan.items()}
            where = {at: each for at, each in where.items() if not is_in_place(each, plan[at])}
            if mode == "nearest":
                rounding = {True: "floor", False: "ceil"}
                chosen = {at: nearest(each, plan[at], rounding[plan[at].scale >= 1]) for at, each in where.items()}
                return _copies(x, chosen)
            return _averages(x, where, plan, LINEAR, allocate)

        resizer = _Resizer(planner, copies=mode == "nearest")

        @replayable
        def resized(x: Tensor, scales: Tensor, *, allocate: Allocate, **given: Any) -> Tensor:
            result = resizer(x, scales, None, allocate)
            return readable(x, scales, allocate=allocate, **given) if result is None else result

        return resized

    return bind


replaces(resize_by_scales)(_by_scales(resize_by_scales, may_shrink=True))
replaces(upsample)(_by_scales(upsample, may_shrink=False))

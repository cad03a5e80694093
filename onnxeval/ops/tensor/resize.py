"""Resize and Upsample: a tensor sampled anew along its axes.

Upsample became Resize in version 10. Until then the coordinates are ``x / scale``, the element at or before one is the
nearest (at or after, when shrinking), and the scales were attributes before 9. Version 11 brought the attributes and
``sizes``, 18 ``antialias``, ``axes`` and ``keep_aspect_ratio_policy``. Only 11 lists ``tf_half_pixel_for_nn`` and only
19 ``half_pixel_symmetric``; they mean the same wherever they are found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._axes import normalise_axes
from onnxeval.ops.tensor._sampling import (
    COORDINATES,
    LINEAR,
    NEAREST,
    Axis,
    averaged,
    coordinates,
    copied,
    cubic,
    extrapolated,
    nearest,
    taps,
)
from onnxeval.registry import op

POLICIES = ("stretch", "not_larger", "not_smaller")


@op("Resize", versions=(11, 13, 18, 19))
def resize(
    x: Tensor,
    roi: Tensor | None,
    scales: Tensor | None,
    sizes: Tensor | None,
    *,
    mode: str,
    nearest_mode: str,
    coordinate_transformation_mode: str,
    cubic_coeff_a: float,
    exclude_outside: int,
    extrapolation_value: float,
    antialias: int = 0,
    axes: tuple[int, ...] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
    allocate: Allocate,
) -> Tensor:
    """``x`` with ``axes`` (all, if absent) resized by ``scales`` or to ``sizes``. Source: Resize-19.

    Averages of integers are cut towards zero and stay within their type. ``roi`` counts under ``tf_crop_and_resize``
    alone; the lengths that ``scales`` give are then those of the part that it marks. In the formulas of the
    coordinates ``length_resized`` is the product of length and scale, which need not be whole.
    ValueError for an unknown mode, for both or none of ``scales`` and ``sizes``, and where they or ``roi`` do not fit
    the axes; TypeError where strings or booleans would be averaged.
    """
    filters = {"nearest": None, "linear": LINEAR, "cubic": cubic(cubic_coeff_a)}
    _known("mode", mode, filters)
    _known("nearest_mode", nearest_mode, NEAREST)
    _known("coordinate_transformation_mode", coordinate_transformation_mode, COORDINATES)
    _known("keep_aspect_ratio_policy", keep_aspect_ratio_policy, POLICIES)
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    along = tuple(range(x.ndim)) if axes is None else normalise_axes(axes, x.ndim)
    plan = planned(x, along, roi if crops else None, scales, sizes, keep_aspect_ratio_policy)
    if crops and roi is None:
        raise ValueError("coordinate_transformation_mode 'tf_crop_and_resize' needs roi, which is absent")
    if not all(axis.resized for axis in plan.values()):
        return allocate(tuple(plan[at].resized if at in plan else size for at, size in enumerate(x.shape)), x.dtype)

    where = {at: coordinates(axis, coordinate_transformation_mode, allocate) for at, axis in plan.items()}
    outside = {at: ~((c >= 0) & (c <= plan[at].original - 1)) for at, c in where.items()} if crops else {}
    where.update({at: np.where(beyond, 0, where[at]) for at, beyond in outside.items()})
    moved = {at: axis for at, axis in plan.items() if not is_in_place(where[at], axis)}
    if (filter_ := filters[mode]) is None:
        output = copied(x, {at: nearest(where[at], axis, nearest_mode) for at, axis in moved.items()}, allocate)
    else:
        weighing = {"antialias": bool(antialias), "exclude_outside": bool(exclude_outside)}
        by_axis = {at: taps(where[at], axis, filter_, allocate, **weighing) for at, axis in moved.items()}
        output = averaged(x, by_axis=by_axis, allocate=allocate)
    return extrapolated(output, outside, extrapolation_value)


@op("Resize", versions=(10,))
def resize_by_scales(x: Tensor, scales: Tensor, *, mode: str, allocate: Allocate) -> Tensor:
    """``x`` with every axis resized, ``nearest`` or ``linear``. Source: Resize-10."""
    _known("mode", mode, ("nearest", "linear"))
    plan = scaled(x.shape, scales.ravel().tolist(), [(0.0, 1.0)] * x.ndim)
    if not all(axis.resized for axis in plan):
        return allocate(tuple(axis.resized for axis in plan), x.dtype)
    where = {at: coordinates(axis, "asymmetric", allocate) for at, axis in enumerate(plan)}
    if mode == "nearest":
        rounding = {True: "floor", False: "ceil"}
        chosen = {at: nearest(where[at], axis, rounding[axis.scale >= 1]) for at, axis in enumerate(plan)}
        return copied(x, chosen, allocate)
    moved = {at: axis for at, axis in enumerate(plan) if not is_in_place(where[at], axis)}
    by_axis = {at: taps(where[at], axis, LINEAR, allocate) for at, axis in moved.items()}
    return averaged(x, by_axis=by_axis, allocate=allocate)


@op("Upsample", versions=(9, 10))
def upsample(x: Tensor, scales: Tensor, *, mode: str, allocate: Allocate) -> Tensor:
    """Resize-10 that does not shrink. Source: Upsample-10."""
    if (scales < 1).any():
        raise ValueError(f"scales {scales.tolist()} hold one below 1")
    return resize_by_scales(x, scales, mode=mode, allocate=allocate)


@op("Upsample", versions=(7,))
def upsample_attribute(x: Tensor, *, scales: tuple[float, ...], mode: str, allocate: Allocate) -> Tensor:
    """Upsample with the scales as an attribute. Source: Upsample-7."""
    return upsample(x, np.array(scales, np.float32), mode=mode, allocate=allocate)


@op("Upsample", versions=(1,))
def upsample_picture(x: Tensor, *, height_scale: float, width_scale: float, mode: str, allocate: Allocate) -> Tensor:
    """Upsample of (N, C, H, W), ``nearest`` or ``bilinear``. Source: Upsample-1."""
    if x.ndim != 4:
        raise ValueError(f"the input has rank {x.ndim}, expected 4 (N, C, H, W)")
    _known("mode", mode, ("nearest", "bilinear"))
    scales = (1.0, 1.0, height_scale, width_scale)
    return upsample_attribute(x, scales=scales, mode="linear" if mode == "bilinear" else mode, allocate=allocate)


def _known(name: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ValueError(f"{name} {value!r} is none of {', '.join(map(repr, known))}")


def is_in_place(where: Tensor, axis: Axis) -> bool:
    return axis.resized == axis.original and np.array_equal(where, np.arange(axis.original))


def planned(
    x: Tensor,
    along: Sequence[int],
    roi: Tensor | None,
    scales: Tensor | None,
    sizes: Tensor | None,
    policy: str,
) -> Mapping[int, Axis]:
    """Each axis of ``along`` as it is and as it shall be. An empty tensor counts as an absent one."""
    scales, sizes = (None if given is None or not given.size else given for given in (scales, sizes))
    if (scales is None) == (sizes is None) and along:
        raise ValueError(f"{'both' if sizes is not None else 'neither'} of scales and sizes given, expected one")
    for name, given, count in (("roi", roi, 2), ("scales", scales, 1), ("sizes", sizes, 1)):
        if given is not None and given.shape != (count * len(along),):
            raise ValueError(f"{name} is {list(given.shape)}, expected [{count * len(along)}] for {len(along)} axes")
    ends = [0.0] * len(along) + [1.0] * len(along) if roi is None else roi.astype(np.float64).tolist()
    spans = list(zip(ends[: len(along)], ends[len(along) :], strict=True))
    lengths = [x.shape[axis] for axis in along]
    if scales is not None:
        plan = scaled(lengths, scales.tolist(), spans)
    else:
        plan = _sized(lengths, [] if sizes is None else sizes.tolist(), spans, policy)
    for axis in plan:
        if axis.resized and not axis.original:
            raise ValueError(f"an axis of no elements cannot be resized to {axis.resized}")
    return dict(zip(along, plan, strict=True))


def scaled(lengths: Sequence[int], scales: Sequence[float], spans: Sequence[tuple[float, float]]) -> list[Axis]:
    """floor(length * (end - start) * scale), in float32 as the scales are."""
    if len(scales) != len(lengths):
        raise ValueError(f"scales {list(scales)} have {len(scales)} elements for {len(lengths)} axes")
    plan = []
    for length, scale, (start, end) in zip(lengths, scales, spans, strict=True):
        if not 0 < scale < math.inf:
            raise ValueError(f"scales {list(scales)} hold {scale}, expected a positive number")
        product = np.float32(length) * np.float32(end - start) * np.float32(scale)
        if not 0 <= product < 2.0**63:
            raise ValueError(f"an axis of {length} resized by {scale} from {start} to {end} would be {product} long")
        plan.append(Axis(length, int(product), float(product), scale, 1, start, end))
    return plan


def _sized(
    lengths: Sequence[int], sizes: Sequence[int], spans: Sequence[tuple[float, float]], policy: str
) -> list[Axis]:
    """The sizes as given, or those of the one ratio that keeps within them or covers them, halves rounded up."""
    if min(sizes, default=0) < 0:
        raise ValueError(f"sizes {list(sizes)} hold a negative one")
    from fractions import Fraction  # most models give scales, and it takes decimal along

    if policy == "stretch" or not lengths:
        ratios = [Fraction(size, length or 1) for size, length in zip(sizes, lengths, strict=True)]
        resized = list(sizes)
    elif 0 in lengths:
        raise ValueError(f"axes of {list(lengths)} have no aspect ratio to keep")
    else:
        fitting = [Fraction(size, length) for size, length in zip(sizes, lengths, strict=True)]
        ratio = min(fitting) if policy == "not_larger" else max(fitting)
        ratios = [ratio] * len(lengths)
        resized = [math.floor(ratio * length + Fraction(1, 2)) for length in lengths]
    return [
        Axis(length, size, float(ratio * length), ratio.numerator, ratio.denominator, start, end)
        for length, size, ratio, (start, end) in zip(lengths, resized, ratios, spans, strict=True)
    ]

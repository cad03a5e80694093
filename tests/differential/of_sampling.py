"""Strategies of operators that sample pictures."""

from __future__ import annotations

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, strategy


@strategy("AffineGrid", ulps=16, scaled=True, palettes=("plain",))
def affine_grid(d: Drawing) -> Node:
    rank = d.integer(2, 3)
    batch = d.integer(1, 2)
    size = np.array([batch, 1, *(d.integer(1, 4) for _ in range(rank))], np.int64)
    return d.node(d.tensor(0, (batch, rank, rank + 1)), size, **d.some(align_corners=d.integer(0, 1)))


@strategy("GridSample", ulps=1024, bindings=64, scaled=True, palettes=("plain",))
def grid_sample(d: Drawing) -> Node:
    rank = 2 if d.version < 20 else d.integer(2, 3)
    batch = d.integer(1, 2)
    modes = ("bilinear", "nearest", "bicubic") if d.version < 20 else ("linear", "nearest", "cubic")
    x = d.tensor(0, (batch, d.integer(1, 2), *(d.integer(1, 4) for _ in range(rank))))
    grid = d.integers((batch, *(d.integer(1, 3) for _ in range(rank)), rank), -23, 23) / 16
    options = d.some(
        align_corners=d.integer(0, 1),
        mode=d.one_of(*modes[: 2 if rank == 3 else 3]),
        padding_mode=d.one_of("zeros", "border", "reflection"),
    )
    return d.node(x, grid.astype(d.dtype(1)), **options)


@strategy("Upsample", ulps=8, scaled=True, palettes=("plain",))
def upsample(d: Drawing) -> Node:
    mode = d.one_of("nearest", "linear")
    shape = (d.integer(1, 2), d.integer(1, 2), d.integer(1, 4), d.integer(1, 4))
    scales = [1.0, 1.0, d.one_of(1.0, 1.5, 2.0, 3.0), d.one_of(1.0, 1.5, 2.0, 2.5)]
    x = d.tensor(0, shape)
    if d.has("scales"):
        return d.node(x, mode=mode, scales=scales)
    return d.node(x, np.array(scales, np.float32), mode=mode)


_MODES = (
    *("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
    *("tf_crop_and_resize", "half_pixel_symmetric"),
)


@strategy("Resize", ulps=64, scaled=True, palettes=("plain",))
def resize(d: Drawing) -> Node:
    mode = d.one_of("nearest", "linear", "cubic")
    rank = 2 if mode == "cubic" else d.integer(1, 3)
    picture = tuple(d.integer(1, 5) for _ in range(rank))
    shape = (d.integer(1, 2), d.integer(1, 2), *picture) if rank == 2 or d.flag() else picture
    still = len(shape) - rank
    factors = [1.0] * still + [d.one_of(1.0, 0.5, 2.0, 1.5, 0.75, 3.0) for _ in range(rank)]
    factors = [f if int(f * n) > 0 else 1.0 for f, n in zip(factors, shape, strict=True)]
    x, scales = d.tensor(0, shape), np.array(factors, np.float32)
    if d.version == 10:
        return d.node(x, scales, mode="linear" if mode == "cubic" else mode)
    options = d.some(
        coordinate_transformation_mode=d.one_of(*_MODES[: 6 if d.version >= 19 else 5]),
        nearest_mode=d.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        cubic_coeff_a=d.one_of(-0.5, -0.75),
        exclude_outside=d.integer(0, 1),
    )
    if mode != "cubic":
        options.pop("exclude_outside", None)
    if mode != "nearest":
        options |= d.some(antialias=d.integer(0, 1))
    axes = None
    if d.has("axes") and still and d.flag():
        axes = list(range(still, len(shape)))
    kept = scales if axes is None else scales[still:]
    roi = None if d.version >= 13 else np.zeros(0, np.float32)
    if options.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        inset = [[0.0] * still + [0.25 * d.integer(0, 1) for _ in picture] for _ in range(2)]
        region = [inset[0], [1 - size for size in inset[1]]]
        roi = np.array([edge[still if axes is not None else 0 :] for edge in region], np.float32).ravel()
        options |= d.some(extrapolation_value=9.0)
    if d.flag():
        sizes = [int(f * n) for f, n in zip(factors, shape, strict=True)]
        if axes is not None:
            sizes = sizes[still:]
            options |= d.some(keep_aspect_ratio_policy=d.one_of("stretch", "not_larger", "not_smaller"))
        no_scales = None if d.version >= 13 else np.zeros(0, np.float32)
        return d.node(x, roi, no_scales, np.array(sizes, np.int64), mode=mode, axes=axes, **options)
    return d.node(x, roi, kept, mode=mode, axes=axes, **options)

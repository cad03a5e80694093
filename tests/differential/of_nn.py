"""Strategies of convolutions, pools and what goes with them."""

from __future__ import annotations

import math

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, strategy
from differential.values import SUMS


def geometry(d: Drawing, rank: int, *, dilated: bool = True) -> tuple[list[int], list[int], dict[str, object]]:
    """A kernel that fits a picture, the picture's size, and the attributes that say how it moves."""
    kernel = [d.integer(1, 3) for _ in range(rank)]
    strides = [d.integer(1, 3) for _ in range(rank)]
    dilations = [d.integer(1, 2) if dilated else 1 for _ in range(rank)]
    reach = [(k - 1) * step + 1 for k, step in zip(kernel, dilations, strict=True)]
    picture = [d.integer(size, size + 4) for size in reach]
    attributes: dict[str, object] = d.some(strides=strides, dilations=dilations)
    padding = d.one_of("NOTSET", "NOTSET", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID")
    if padding == "pads":
        attributes["pads"] = [d.integer(0, size - 1) for size in kernel * 2]
    elif padding != "NOTSET":
        attributes["auto_pad"] = padding
    return kernel, picture, attributes


@strategy("Conv", ulps=32, scaled=True, palettes=SUMS)
def conv(d: Drawing) -> Node:
    x, w, bias, attributes = convolution(d)
    return d.node(d.tensor(0, x), d.tensor(1, w), d.tensor(2, bias) if d.flag() else None, **attributes)


def convolution(d: Drawing) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, object]]:
    """The shapes of input, weights and bias, and the attributes."""
    kernel, picture, attributes = geometry(d, d.integer(1, 3))
    groups, inner, outer = d.integer(1, 3), d.integer(1, 2), d.integer(1, 2)
    attributes |= {"group": groups} | d.some(kernel_shape=kernel)
    channels = groups * outer
    return (d.size(0, 2), groups * inner, *picture), (channels, inner, *kernel), (channels,), attributes


@strategy("ConvTranspose", ulps=32, scaled=True, palettes=SUMS)
def conv_transpose(d: Drawing) -> Node:
    rank = d.integer(1, 3)
    kernel, picture, attributes = geometry(d, rank)
    groups, inner, outer = d.integer(1, 2), d.integer(1, 2), d.integer(1, 2)
    attributes |= {"group": groups} | d.some(kernel_shape=kernel)
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    extra = [d.integer(0, max(s, k) - 1) for s, k in zip(strides, dilations, strict=True)]  # type: ignore[call-overload]
    attributes |= d.some(output_padding=extra)
    bias = d.tensor(2, (groups * outer,)) if d.flag() else None
    x = (d.size(0, 2), groups * inner, *picture)
    return d.node(d.tensor(0, x), d.tensor(1, (groups * inner, outer, *kernel)), bias, **attributes)


@strategy("ConvInteger", palettes=("plain", "wide"))
def conv_integer(d: Drawing) -> Node:
    x, w, _, attributes = convolution(d)
    points = [d.tensor(0, ()) if d.flag() else None, d.tensor(1, d.one_of((), (w[0],))) if d.flag() else None]
    return d.node(d.tensor(0, x), d.tensor(1, w), *points, **attributes)


@strategy("QLinearConv", palettes=("plain", "wide"))
def quantized_conv(d: Drawing) -> Node:
    x, w, bias, attributes = convolution(d)
    channels = d.one_of((), (w[0],))
    half, eighth = np.array(0.5, np.float32), np.array(0.125, np.float32)
    weights = (d.tensor(3, w), np.full(channels, 0.25, np.float32), d.tensor(5, channels))
    last = d.array(np.int32, bias, "plain") if d.flag() else None
    return d.node(d.tensor(0, x), half, d.tensor(2, ()), *weights, eighth * 4, d.tensor(7, ()), last, **attributes)


@strategy("MaxPool", ulps=1)
@strategy("AveragePool", ulps=16, scaled=True, palettes=SUMS)
@strategy("LpPool", ulps=32, scaled=True, palettes=SUMS)
def pool(d: Drawing) -> Node:
    kernel, picture, attributes = geometry(d, d.integer(1, 3))
    attributes |= d.some(ceil_mode=d.integer(0, 1), count_include_pad=d.integer(0, 1), p=d.integer(1, 3))
    attributes |= d.some(storage_order=d.integer(0, 1))
    two = d.schema.key.op_type == "MaxPool" and d.version >= 8 and d.flag()
    x = d.tensor(0, (d.size(0, 2), d.size(1, 2), *picture))
    return d.node(x, kernel_shape=kernel, wanted=(True,) * (1 + two), **attributes)


@strategy("GlobalAveragePool", "GlobalLpPool", ulps=16, scaled=True, palettes=SUMS)
@strategy("GlobalMaxPool", ulps=1)
def global_pool(d: Drawing) -> Node:
    return d.node(d.tensor(0, (d.size(), d.size(), *d.shape(1, 3))), **d.some(p=d.integer(1, 3)))


@strategy("MaxUnpool")
def max_unpool(d: Drawing) -> Node:
    rank = d.integer(1, 3)
    pooled = [d.integer(1, 3) for _ in range(rank)]
    kernel = [d.integer(1, 3) for _ in range(rank)]
    strides = [d.integer(1, 3) for _ in range(rank)]
    batch = (d.integer(1, 2), d.integer(1, 2))
    whole = [(n - 1) * s + k for n, s, k in zip(pooled, strides, kernel, strict=True)]
    places = d.permutation(math.prod(whole))[: math.prod(pooled)]
    if len(places) < math.prod(pooled):
        places = (places * math.prod(pooled))[: math.prod(pooled)]
    plane = np.array(places).reshape(pooled)
    planes = np.arange(math.prod(batch)).reshape(*batch, *[1] * rank) * math.prod(whole)
    x = d.tensor(0, (*batch, *pooled), "plain")
    if len(set(places)) < len(places):
        x = np.full_like(x, 2)
    shape = np.array([*batch, *whole], np.int64) if d.flag() else None
    return d.node(x, (plane + planes).astype(np.int64), shape, kernel_shape=kernel, strides=strides)


@strategy("LRN", ulps=64, palettes=("plain",))
def lrn(d: Drawing) -> Node:
    numbers = d.some(alpha=d.one_of(0.5, 1.0), beta=d.one_of(0.5, 0.25), bias=d.one_of(2.0, 0.5))
    return d.node(d.tensor(0, (d.size(), d.size(), *d.shape(0, 2))), size=d.integer(1, 5), **numbers)


@strategy("Dropout")
def dropout(d: Drawing) -> Node:
    x = d.tensor(0, d.shape())
    wanted = (True,) * d.integer(1, 2)
    if d.has("ratio"):
        return d.node(x, wanted=wanted, **d.some(ratio=0.25))
    ratio = np.array(d.one_of(0.25, 0.0), d.dtype(1)) if d.flag() else None
    return d.node(x, ratio, np.array(False) if d.flag() else None, wanted=wanted, **d.some(seed=3))


@strategy("Col2Im", ulps=16, scaled=True, palettes=("plain",))
def col2im(d: Drawing) -> Node:
    rank = d.integer(1, 3)
    kernel, picture, attributes = geometry(d, rank)
    attributes.pop("auto_pad", None)
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    pads = attributes.get("pads", [0] * 2 * rank)
    steps = [
        (picture[i] + pads[i] + pads[i + rank] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1  # type: ignore[index]
        for i in range(rank)
    ]
    x = (d.size(0, 2), d.integer(1, 2) * math.prod(kernel), math.prod(steps))
    return d.node(d.tensor(0, x), np.array(picture, np.int64), np.array(kernel, np.int64), **attributes)


@strategy("DeformConv", ulps=64, scaled=True, palettes=("plain",))
def deform_conv(d: Drawing) -> Node:
    kernel, picture, attributes = geometry(d, 2)
    attributes.pop("auto_pad", None)
    strides = attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0] * 4)
    steps = [
        (picture[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1  # type: ignore[index]
        for i in range(2)
    ]
    batch, groups, offset_groups = d.integer(1, 2), d.integer(1, 2), d.integer(1, 2)
    channels, out = groups * offset_groups, groups * d.integer(1, 2)
    x, w = d.tensor(0, (batch, channels, *picture)), d.tensor(1, (out, channels // groups, *kernel))
    offset = d.tensor(2, (batch, offset_groups * math.prod(kernel) * 2, *steps))
    bias = d.tensor(3, (out,)) if d.flag() else None
    mask = d.tensor(4, (batch, offset_groups * math.prod(kernel), *steps)) if d.flag() else None
    return d.node(x, w, offset, bias, mask, group=groups, offset_group=offset_groups, **attributes)


@strategy("MaxRoiPool", ulps=1, palettes=("plain",))
def max_roi_pool(d: Drawing) -> Node:
    batch, height, width = d.integer(1, 2), d.integer(1, 6), d.integer(1, 6)
    count = d.size(0, 3)
    corners = d.integers((count, 4), 0, 6)
    starts, ends = np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])
    rois = np.hstack([d.integers((count, 1), 0, batch - 1), starts, ends]).astype(d.dtype(1))
    x = d.tensor(0, (batch, d.integer(1, 2), height, width))
    scale = d.some(spatial_scale=d.one_of(0.5, 1.0))
    return d.node(x, rois, pooled_shape=[d.integer(1, 3), d.integer(1, 3)], **scale)


@strategy("RoiAlign", ulps=64, scaled=True, palettes=("plain",))
def roi_align(d: Drawing) -> Node:
    batch, count = d.integer(1, 2), d.size(0, 3)
    corners = d.integers((count, 4), -4, 24) / 4
    rois = np.hstack([np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])])
    options = d.some(
        coordinate_transformation_mode=d.one_of("half_pixel", "output_half_pixel"),
        mode=d.one_of("avg", "max"),
        output_height=d.integer(1, 3),
        output_width=d.integer(1, 3),
        sampling_ratio=d.integer(0, 3),
        spatial_scale=d.one_of(0.5, 1.0),
    )
    x = d.tensor(0, (batch, d.integer(1, 2), d.integer(1, 6), d.integer(1, 6)))
    return d.node(x, rois.astype(d.dtype(1)), d.integers((count,), 0, batch - 1), **options)


@strategy("NonMaxSuppression", palettes=("plain",))
def non_max_suppression(d: Drawing) -> Node:
    batch, classes, boxes = d.integer(1, 2), d.integer(1, 2), d.size(0, 6)
    corners = d.integers((batch, boxes, 4), 0, 8).astype(np.float32) / 4
    scores = np.stack([d.permutation(boxes) for _ in range(batch * classes)]).reshape(batch, classes, boxes) / 8
    limits = [
        np.array([d.integer(0, 4)], np.int64) if d.integer(0, 3) else None,
        np.array([d.one_of(0.0, 0.25, 0.3, 1.0)], np.float32) if d.integer(0, 3) else None,
        np.array([d.one_of(0.0, 0.26, 0.5)], np.float32) if d.flag() else None,
    ]
    return d.node(corners, scores.astype(np.float32), *limits, **d.some(center_point_box=d.integer(0, 1)))

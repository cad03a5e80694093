"""Strategies of quantization."""

from __future__ import annotations

import math

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, element_of, strategy

from onnxeval.dtypes import ELEMENT_TYPES


def granularity(d: Drawing) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, int]]:
    """The shape of the data, the shape of the scales, and the attributes that relate them."""
    shape = d.shape(1, 3, (1, 4))
    if not d.has("axis") or d.integer(0, 2) == 0:
        return shape, d.one_of((), (1,)) if d.version >= 13 else (), {}
    axis = d.axis(len(shape), 13)
    if not d.has("block_size") or d.flag():
        return shape, (shape[axis],), {"axis": axis}
    block = d.integer(1, 3)
    scales = list(shape)
    scales[axis] = -(-shape[axis] // block)
    if math.prod(scales) == 1:  # which granularity this is nobody can tell
        return shape, (), {}
    return shape, tuple(scales), {"axis": axis, "block_size": block}


def scales_of(d: Drawing, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(2.0 ** d.integers(shape, -3, 2)).astype(dtype)


@strategy("QuantizeLinear", ulps=1, bindings=300, palettes=("plain", "special", "wide"))
def quantize(d: Drawing) -> Node:
    shape, grain, options = granularity(d)
    x = d.tensor(0, shape)
    scale = scales_of(d, d.dtype(1), grain)
    point = d.tensor(2, grain) if d.flag() or "y_scale" not in {s.name for s in d.schema.inputs} else None
    kinds = {}
    if point is None and d.has("output_dtype"):
        targets = sorted(ELEMENT_TYPES[element_of(name)] for name in d.schema.outputs[0].allowed)
        kinds = d.some(output_dtype=d.one_of(*targets))
    elif point is not None and point.dtype.kind not in "iu" and "float" in point.dtype.name:
        point = np.zeros_like(point)
    return d.node(x, scale, point, **kinds, **options, **d.some(saturate=d.integer(0, 1)))


@strategy("DequantizeLinear", ulps=1, palettes=("plain", "wide"))
def dequantize(d: Drawing) -> Node:
    shape, grain, options = granularity(d)
    dtype = d.dtype(0)
    point = d.tensor(0, grain) if d.flag() else None
    if point is not None and ("float" in dtype.name or dtype == np.int32):
        point = np.zeros_like(point)
    return d.node(d.tensor(0, shape), scales_of(d, d.dtype(1), grain), point, **options)


@strategy("DynamicQuantizeLinear", ulps=2, palettes=("plain",))
def dynamic(d: Drawing) -> Node:
    return d.node(d.tensor(0, d.shape(1, 3, (1, 4))), wanted=(True, True, True))

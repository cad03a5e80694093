"""GatherBlockQuantized: slices of a table of few bits an element, made into numbers with the scale of their block."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import (
    FLOAT4E2M1,
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    INT4,
    UINT4,
    DType,
    Tensor,
    name_of,
)
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops.contrib._packing import require_bits, require_block_size, unpacked
from onnxeval.ops.contrib._typed import FLOATS, INT32, INT64, UINT8, microsoft_op
from onnxeval.values import shape_text

_SMALL_FLOATS: tuple[DType, ...] = (FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT4E2M1)


@microsoft_op("GatherBlockQuantized", "DISD", D=(INT4, UINT4, UINT8, *_SMALL_FLOATS), I=(INT32, INT64), S=FLOATS)
def gather_block_quantized(
    data: Tensor,
    indices: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Tensor:
    """Gather of (code - zero point) * scale, of the type of ``scales``; an index outside gives zeros.

    Blocks of ``block_size`` codes along ``quantize_axis`` share a scale and a zero point. Codes of uint8 have ``bits``
    bits and are packed along the last axis, and so are their zero points, which are 2^(bits - 1) where there are none;
    other integers have 0 then. Floats have no zero points, their blocks may span the axis (size 0), and scales of size
    1 hold for a whole axis.

    Raises ValueError where shapes, axes and widths are not of this kind. Source: com.microsoft.GatherBlockQuantized-1.
    """
    along, blocked = normalise_axis(gather_axis, data.ndim), normalise_axis(quantize_axis, data.ndim)
    is_float = data.dtype in _SMALL_FLOATS
    is_packed = data.dtype == np.uint8 and bits < 8
    if data.dtype == np.uint8:
        require_bits(bits)
        if along or (is_packed and blocked == along):
            raise ValueError(f"uint8 is gathered on axis 0 and blocked on another, not on {along} and {blocked}")
    if is_float and zero_points is not None:
        raise ValueError(f"{name_of(data.dtype)} has no zero points")
    if not (is_float and block_size == 0):
        require_block_size(block_size)
    shape = _logical_shape(data.shape, bits if is_packed else 8)
    block = block_size or shape[blocked]
    expected = tuple(-(-size // block) if axis == blocked else size for axis, size in enumerate(shape))
    _require_scales(scales, expected, blocked, is_float)
    if zero_points is not None:
        packed = (*expected[:-1], -(-expected[-1] * bits // 8)) if is_packed else expected
        if zero_points.shape != packed:
            raise ValueError(f"zero_points have shape {shape_text(zero_points.shape)}, expected {shape_text(packed)}")

    result_shape = (*shape[:along], *indices.shape, *shape[along + 1 :])
    size = shape[along]
    if not size:
        return np.zeros(result_shape, scales.dtype)
    outside = (indices < -size) | (indices >= size)
    places = np.where(outside, 0, indices) % size
    codes = data.take(places, axis=along)
    if is_packed:
        codes = unpacked(codes, bits)
    values = codes.astype(np.float32)
    spread = _Spread(along, blocked, block, places, shape[blocked])
    if zero_points is not None:
        zeros = spread(unpacked(zero_points, bits)[..., : expected[-1]] if is_packed else zero_points)
        values -= zeros.astype(np.float32)
    elif data.dtype == np.uint8:
        values -= 2 ** (bits - 1)
    values = values * spread(scales).astype(np.float32)
    axes = tuple(range(values.ndim))
    hidden = np.expand_dims(outside, axes[:along] + axes[along + indices.ndim :])
    return np.where(hidden, np.float32(0), values).astype(scales.dtype)


class _Spread:
    """Brings what blocks share to the gathered elements."""

    def __init__(self, along: int, blocked: int, block: int, places: Tensor, length: int) -> None:
        self.along, self.blocked, self.block, self.places, self.length = along, blocked, block, places, length

    def __call__(self, x: Tensor) -> Tensor:
        if self.along == self.blocked:
            return x.take(self.places // self.block, axis=self.along)
        places = self.places if x.shape[self.along] != 1 else np.zeros_like(self.places)
        axis = self.blocked if self.blocked < self.along else self.blocked + self.places.ndim - 1
        gathered = x.take(places, axis=self.along)
        return gathered.take(np.arange(self.length) // self.block, axis=axis)


def _logical_shape(shape: tuple[int, ...], bits: int) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] * 8 // bits)


def _require_scales(scales: Tensor, expected: tuple[int, ...], blocked: int, is_float: bool) -> None:
    fits = scales.ndim == len(expected) and all(
        size == wanted or (is_float and size == 1 and axis != blocked)
        for axis, (size, wanted) in enumerate(zip(scales.shape, expected, strict=True))
    )
    if not fits:
        raise ValueError(f"scales have shape {shape_text(scales.shape)}, expected {shape_text(expected)}")

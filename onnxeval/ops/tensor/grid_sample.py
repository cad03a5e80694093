"""GridSample: the values of a picture, or of a space of any rank, where a grid says.

Version 16 knows pictures alone and names its modes bilinear and bicubic; since 20 they are linear and cubic. Version 22
added bfloat16.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from onnxeval.dtypes import BFLOAT16, STRING, DType, Tensor, is_integer
from onnxeval.ops._cast import convert
from onnxeval.ops._interpolate import Neighbour, Resolve, around, gather, interpolate
from onnxeval.ops.tensor._sampling import LINEAR, cubic
from onnxeval.registry import op
from onnxeval.values import shape_text

_FILTERS = {"linear": LINEAR, "cubic": cubic(-0.75)}
_MODES_16 = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


@op("GridSample", versions=(20, 22))
def grid_sample(x: Tensor, grid: Tensor, *, align_corners: int, mode: str, padding_mode: str) -> Tensor:
    """(N, C, *sizes), (N, *places, r) -> (N, C, *places), r being the number of sizes.

    The last axis of the grid lists the coordinate along the innermost axis first. -1 and 1 are the centres of the
    outermost elements with ``align_corners``, else their outer edges, and "reflection" reflects there. Positions are
    computed in float64. "nearest" rounds halves to even, "cubic" is cubic convolution of coefficient -0.75.

    Integers and booleans are interpolated in float64 and cast at the end. A position that is not a number gives NaN,
    and so does an infinite one that should be reflected.

    Raises ValueError for such positions where the type has no NaN, for shapes that do not fit together, and for
    unknown modes; TypeError where strings would be interpolated. Source: GridSample-22.
    """
    rank, sizes = x.ndim - 2, x.shape[2:]
    if rank < 1 or 0 in sizes:
        raise ValueError(
            f"the input has shape {shape_text(x.shape)}, expected [N, C, D1, ...] with something to sample"
        )
    if grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != rank:
        expected = f"[{x.shape[0]}, {', '.join(f'D{axis}_out' for axis in range(1, rank + 1))}, {rank}]"
        raise ValueError(f"the grid has shape {shape_text(grid.shape)}, expected {expected}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"padding_mode {padding_mode!r} is none of 'zeros', 'border', 'reflection'")
    if mode not in ("nearest", *_FILTERS):
        raise ValueError(f"mode {mode!r} is none of 'linear', 'nearest', 'cubic'")
    if mode != "nearest" and x.dtype == STRING:
        raise TypeError(f"strings cannot be interpolated, as mode {mode!r} asks for")

    coordinates = grid.reshape(grid.shape[0], -1, rank).astype(np.float64)
    known = np.isfinite(coordinates) if padding_mode == "reflection" else ~np.isnan(coordinates)
    lost = ~known.all(axis=2)
    if lost.any() and _working_type(x.dtype) != x.dtype and not _is_narrow(x.dtype):
        raise ValueError(f"positions of the grid are not numbers, and {x.dtype} has no value for them")
    coordinates[lost] = 0
    np.clip(coordinates, -1e300, 1e300, out=coordinates)  # infinity has no product with a size of 0
    resolve = _resolve(padding_mode, bool(align_corners))
    by_axis = list(zip(np.moveaxis(coordinates, 2, 0)[::-1], sizes, strict=True))
    positions = [_position(along, size, padding_mode, bool(align_corners)) for along, size in by_axis]
    if mode == "nearest":
        nearest = [np.rint(np.clip(p, -1, size)).astype(np.int64) for p, size in zip(positions, sizes, strict=True)]
        y = gather(x, [Neighbour.at(index, size, resolve) for index, size in zip(nearest, sizes, strict=True)])
    else:
        kind = _FILTERS[mode]
        axes = [around(p, size, kind.radius, kind.weight, resolve) for p, size in zip(positions, sizes, strict=True)]
        y = _cast(interpolate(x, axes, _working_type(x.dtype)), x.dtype)
    if lost.any():
        y.swapaxes(1, 2)[lost] = np.nan
    return y.reshape(*x.shape[:2], *grid.shape[1:-1])


@op("GridSample", versions=(16,))
def grid_sample_16(x: Tensor, grid: Tensor, *, align_corners: int, mode: str, padding_mode: str) -> Tensor:
    """`grid_sample` of (N, C, H, W) in the modes "bilinear", "nearest" and "bicubic". Source: GridSample-16."""
    if x.ndim != 4:
        raise ValueError(f"the input has rank {x.ndim}, expected 4 (N, C, H, W)")
    if mode not in _MODES_16:
        raise ValueError(f"mode {mode!r} is none of {', '.join(map(repr, _MODES_16))}")
    return grid_sample(x, grid, align_corners=align_corners, mode=_MODES_16[mode], padding_mode=padding_mode)


def _position(coordinate: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Where a coordinate of the grid lies, counted in elements, already reflected where that is asked for."""
    centred = (coordinate + 1) / 2
    position = centred * (size - 1) if align_corners else centred * size - 0.5
    if padding_mode != "reflection":
        return position
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    if not span:
        return np.zeros_like(position)
    distance = np.fmod(np.abs(position - low), 2 * span)
    return np.asarray(low + np.minimum(distance, 2 * span - distance))


def _resolve(padding_mode: str, align_corners: bool) -> Resolve | None:
    if padding_mode == "zeros":
        return None
    return _clamped if padding_mode == "border" else partial(_reflected, align_corners=align_corners)


def _clamped(index: Tensor, size: int) -> Tensor:
    return np.clip(index, 0, size - 1)


def _reflected(index: Tensor, size: int, align_corners: bool) -> Tensor:
    """Reflected at the centres of the outermost elements, or at their outer edges."""
    period = max(1, 2 * (size - 1)) if align_corners else 2 * size
    mirrored = -index if align_corners else -1 - index
    return np.asarray(np.minimum(index % period, mirrored % period))


def _is_narrow(dtype: DType) -> bool:
    return dtype in (np.float16, BFLOAT16)


def _working_type(dtype: DType) -> DType:
    if _is_narrow(dtype):
        return np.dtype(np.float32)
    return dtype if np.issubdtype(dtype, np.inexact) else np.dtype(np.float64)


def _cast(sums: Tensor, dtype: DType) -> Tensor:
    """``sums`` as ``dtype``; what is whole but for the rounding of the weights is not cut to the integer below."""
    if is_integer(dtype):
        whole = np.rint(sums)
        sums = np.where(np.isclose(sums, whole, rtol=1e-12, atol=1e-9), whole, sums)
    return sums if sums.dtype == dtype else convert(sums, dtype)

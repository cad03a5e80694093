"""Elements and slices picked by their indices, or put where these say. Of any type but strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import DType, Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import MOST_AXES, bits, contiguous, is_movable
from onnxeval.fast.engine import native
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops.tensor.gather import gather, gather_elements, gather_nd
from onnxeval.ops.tensor.scatter import scatter_elements, scatter_nd
from onnxeval.registry import Kernel

_INDICES = (np.dtype(np.int64), np.dtype(np.int32))

#: Bytes that a single index may pick which are copied: so few take less time than a step of its own.
_SMALL = 1 << 16


def _picks(data: Any, indices: Any) -> bool:
    """Whether compiled kernels can move elements of the one by the other."""
    return is_movable(data) and type(indices) is np.ndarray and indices.dtype in _INDICES and indices.ndim <= MOST_AXES


@replaces(gather)
def bind_gather(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """Gather. What a single index picks is a view where it is large; the index says of what."""
    kernels = native()
    assert kernels is not None

    @replayable
    def gathered(data: Tensor, indices: Tensor, *, axis: int) -> Tensor:
        if not _picks(data, indices) or not -data.ndim <= axis < data.ndim:
            return gather(data, indices, axis=axis)
        along = axis % data.ndim
        copied = data.nbytes // data.shape[along] if data.flags.c_contiguous and data.size else data.nbytes
        if not indices.ndim and copied > _SMALL:
            kernels.interrupt()
            return gather(data, indices, axis=axis)
        before, after = data.shape[:along], data.shape[along + 1 :]
        result = empty((*before, *indices.shape, *after), data.dtype)
        several = indices if indices.ndim else indices.reshape(1)
        rows = bits(result).reshape(*before, *several.shape, *after)
        try:
            kernels.move_slices(bits(contiguous(data)), contiguous(several), rows, along, True, False)
        except IndexError:
            return gather(data, indices, axis=axis)  # which says what index that is
        return result

    return gathered


@replaces(gather_nd)
def bind_gather_nd(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """GatherND."""
    kernels = native()
    assert kernels is not None

    @replayable
    def gathered(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
        depth = indices.shape[-1] if indices.ndim else 0
        fits = _picks(data, indices) and 0 <= batch_dims < min(data.ndim, indices.ndim)
        if (
            not fits
            or not 1 <= depth <= data.ndim - batch_dims
            or data.shape[:batch_dims] != indices.shape[:batch_dims]
        ):
            return gather_nd(data, indices, batch_dims=batch_dims)
        result = empty((*indices.shape[:-1], *data.shape[batch_dims + depth :]), data.dtype)
        try:
            kernels.move_slices(bits(contiguous(data)), contiguous(indices), bits(result), batch_dims, False, False)
        except IndexError:
            return gather_nd(data, indices, batch_dims=batch_dims)
        return result

    return gathered


@replaces(gather_elements)
def bind_gather_elements(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """GatherElements."""
    kernels = native()
    assert kernels is not None

    @replayable
    def gathered(data: Tensor, indices: Tensor, *, axis: int) -> Tensor:
        if not _picks(data, indices) or not _fits_elements(data.shape, indices.shape, axis):
            return gather_elements(data, indices, axis=axis)
        result = empty(indices.shape, data.dtype)
        try:
            kernels.move_elements(bits(data), contiguous(indices), bits(result), axis % data.ndim, False)
        except IndexError:
            return gather_elements(data, indices, axis=axis)
        return result

    return gathered


@replaces(scatter_elements)
def bind_scatter_elements(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """ScatterElements that combines nothing."""
    kernels = native()
    assert kernels is not None

    @replayable
    def scattered(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int, reduction: str = "none") -> Tensor:
        suits = reduction == "none" and _picks(data, indices) and _updates(updates, data.dtype)
        if not suits or updates.shape != indices.shape or not _fits_elements(data.shape, indices.shape, axis):
            return scatter_elements(data, indices, updates, axis=axis, reduction=reduction)
        result = empty(data.shape, data.dtype)
        kernels.copy(bits(data), bits(result))
        try:
            kernels.move_elements(bits(result), contiguous(indices), bits(updates), axis % data.ndim, True)
        except IndexError:
            return scatter_elements(data, indices, updates, axis=axis, reduction=reduction)
        return result

    return scattered


@replaces(scatter_nd)
def bind_scatter_nd(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """ScatterND that combines nothing."""
    kernels = native()
    assert kernels is not None

    @replayable
    def scattered(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
        depth = indices.shape[-1] if indices.ndim else 0
        suits = reduction == "none" and _picks(data, indices) and _updates(updates, data.dtype)
        if not suits or not 1 <= depth <= data.ndim or updates.shape != indices.shape[:-1] + data.shape[depth:]:
            return scatter_nd(data, indices, updates, reduction=reduction)
        result = empty(data.shape, data.dtype)
        kernels.copy(bits(data), bits(result))
        try:
            kernels.move_slices(bits(result), contiguous(indices), bits(contiguous(updates)), 0, False, True)
        except IndexError:
            return scatter_nd(data, indices, updates, reduction=reduction)
        return result

    return scattered


def _updates(x: Any, dtype: DType) -> bool:
    return is_movable(x) and x.dtype == dtype


def _fits_elements(shape: tuple[int, ...], indices: tuple[int, ...], axis: int) -> bool:
    """Whether indices of that shape name elements along an axis."""
    if len(indices) != len(shape) or not -len(shape) <= axis < len(shape):
        return False
    along = normalise_axis(axis, len(shape))
    return all(size <= limit or place == along for place, (size, limit) in enumerate(zip(indices, shape, strict=True)))

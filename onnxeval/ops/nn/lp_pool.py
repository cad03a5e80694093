"""LpPool and GlobalLpPool: the norm (Σ |x|^p)^(1/p) of what each window sees.

``p`` is a float in version 1 and an integer since 2; LpPool gained ``ceil_mode`` and ``dilations`` in 18.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops._windows import slide, spatial_axes, whole_planes, windows_of
from onnxeval.registry import op


@op("LpPool", versions=(2, 11, 18, 22))
@in_float32
def lp_pool(
    x: Tensor,
    *,
    auto_pad: str,
    kernel_shape: Sequence[int],
    p: float,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    allocate: Allocate,
) -> Tensor:
    """(N, C, *sizes) -> (N, C, *counts): the norm of the elements under each window's taps; padding is zero.

    Raises ValueError where ``p`` is not positive. Source: LpPool-22.
    """
    sizes = [x.shape[axis] for axis in spatial_axes(x)]
    windows = windows_of(
        sizes,
        kernel_shape,
        auto_pad=auto_pad,
        pads=pads,
        strides=strides,
        dilations=dilations,
        ceil_mode=ceil_mode,
    )
    return _root(slide(_powers(x, p), windows, np.add, 0, allocate), p, x)


@op("LpPool", versions=(1,))
def lp_pool_1(
    x: Tensor,
    *,
    auto_pad: str,
    kernel_shape: Sequence[int] | None,
    p: float,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    allocate: Allocate,
) -> Tensor:
    """`lp_pool` for any positive p. Raises ValueError where ``kernel_shape`` is missing. Source: LpPool-1."""
    if kernel_shape is None:
        raise ValueError("kernel_shape is missing, and there is no default for it")
    pooled: Tensor = lp_pool(
        x, auto_pad=auto_pad, kernel_shape=kernel_shape, p=p, pads=pads, strides=strides, allocate=allocate
    )
    return pooled


@op("GlobalLpPool", versions=(2, 22))
@in_float32
def global_lp_pool(x: Tensor, *, p: float) -> Tensor:
    """(N, C, D1, ...) -> (N, C, 1, ...): the norm of each plane. Source: GlobalLpPool-22."""
    return _root(np.sum(_powers(x, p), axis=whole_planes(x), keepdims=True), p, x)


@op("GlobalLpPool", versions=(1,))
def global_lp_pool_1(x: Tensor, *, p: float) -> Tensor:
    """`global_lp_pool` for any positive p. Source: GlobalLpPool-1."""
    norms: Tensor = global_lp_pool(x, p=p)
    return norms


def _powers(x: Tensor, p: float) -> Tensor:
    """|x|^p in float64, where float32 would overflow soon. Raises ValueError where ``p`` makes no norm."""
    if not 0 < p < np.inf:
        raise ValueError(f"p {p} is not a positive number")
    magnitudes: Tensor = np.abs(x.astype(np.float64))
    return magnitudes**p


def _root(sums: Tensor, p: float, x: Tensor) -> Tensor:
    return (sums ** (1 / p)).astype(x.dtype)

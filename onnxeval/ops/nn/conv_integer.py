"""ConvInteger and QLinearConv: convolutions of 8-bit integers, each of which stands for its distance to a zero point.

A product of two such distances has 16 bits, and float64 holds sums of 2^37 of them exactly: the sums are left to the
matrix product of floats, which is many times faster than that of integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._cast import convert
from onnxeval.ops._scalar import scalar
from onnxeval.ops.nn._correlate import check_bias, conv_windows, correlate, per_channel
from onnxeval.registry import op


@op("ConvInteger", versions=(10,))
def conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None,
    w_zero_point: Tensor | None,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    allocate: Allocate,
) -> Tensor:
    """(N, C, *sizes), (M, C / group, *kernel) -> int32 (N, M, *counts); padding has no distance to the zero point.

    ``w_zero_point`` is a scalar or one for each feature map. A sum beyond 32 bits wraps around, as the text
    allows. Raises ValueError where shapes do not fit together. Source: ConvInteger-10.
    """
    windows = conv_windows(
        x,
        w,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    distances = _distances(x, 0 if x_zero_point is None else scalar(x_zero_point, name="x_zero_point"))
    weights = _distances(w, 0 if w_zero_point is None else _per_map(w_zero_point, w, "w_zero_point")[:, None])
    return correlate(distances, weights, windows, group, allocate).astype(np.int64).astype(np.int32)


@op("QLinearConv", versions=(10,))
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    b: Tensor | None,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    allocate: Allocate,
) -> Tensor:
    """(N, C, *sizes), (M, C / group, *kernel), int32 (M,) -> (N, M, *counts) of the type of ``y_zero_point``.

    The sums are exact. They are scaled by x_scale * w_scale / y_scale in float64, rounded to the nearest integer,
    ties to even, and saturated. ``w_scale`` and ``w_zero_point`` are scalars or one for each feature map.

    Raises ValueError where shapes do not fit together, and where a scale is not a finite number or ``y_scale`` is
    zero. Source: QLinearConv-10.
    """
    windows = conv_windows(
        x,
        w,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    if w_scale.size != w_zero_point.size:
        raise ValueError(f"w_scale has shape {w_scale.shape}, w_zero_point {w_zero_point.shape}, expected the same")
    scales = scalar(x_scale, name="x_scale") * _per_map(w_scale.astype(np.float64), w, "w_scale")
    divisor = scalar(y_scale, name="y_scale")
    if not (np.isfinite(scales).all() and np.isfinite(divisor) and divisor):
        raise ValueError(f"x_scale * w_scale {scales.ravel()} over y_scale {divisor} is not finite")
    check_bias(b, w.shape[0])
    distances = _distances(x, scalar(x_zero_point, name="x_zero_point"))
    weights = _distances(w, _per_map(w_zero_point, w, "w_zero_point")[:, None])
    sums = correlate(distances, weights, windows, group, allocate)
    if b is not None:
        sums += per_channel(b, sums.ndim)
    quotients = np.rint(sums * scales / divisor) + scalar(y_zero_point, name="y_zero_point")
    return convert(quotients, y_zero_point.dtype)


def _distances(values: Tensor, zero_point: int | Tensor) -> Tensor:
    return values.astype(np.float64) - zero_point


def _per_map(values: Tensor, w: Tensor, name: str) -> Tensor:
    """A scalar, or one value for each feature map, as (1, 1, ...) or (M, 1, ...) to broadcast against the output."""
    if values.size != 1 and values.shape != (w.shape[0],):
        raise ValueError(f"{name} has shape {values.shape}, expected a scalar or ({w.shape[0]},)")
    return per_channel(values, w.ndim)

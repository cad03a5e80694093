"""ConvInteger and QLinearConv: convolutions of 8-bit integers, each of which stands for its distance to a zero point.

The sums are left to the matrix product of floats, which is many times faster than that of integers, and exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._exact import distances, requantized, summable, wrapped
from onnxeval.ops._scalar import scalar
from onnxeval.ops.nn._correlate import check_bias, conv_windows, correlate, per_channel
from onnxeval.registry import op, prepared_by


def _weights(w: Tensor, w_zero_point: Tensor | None) -> Tensor:
    zero_point = None if w_zero_point is None else _per_map(w_zero_point, w, "w_zero_point")[:, None]
    return summable(distances(w, zero_point), tuple(range(1, w.ndim)))


@op("ConvInteger", versions=(10,))
@prepared_by(_weights)
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
    prepared: Tensor | None = None,
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
    weights = _weights(w, w_zero_point) if prepared is None else prepared
    x_steps = distances(x, None if x_zero_point is None else scalar(x_zero_point, name="x_zero_point"))
    return wrapped(correlate(x_steps.astype(weights.dtype, copy=False), weights, windows, group, allocate))


@op("QLinearConv", versions=(10,))
@prepared_by(_weights)
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
    prepared: Tensor | None = None,
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
    weights = _weights(w, w_zero_point) if prepared is None else prepared
    x_steps = distances(x, scalar(x_zero_point, name="x_zero_point"))
    sums = correlate(x_steps.astype(weights.dtype, copy=False), weights, windows, group, allocate)
    if b is not None:
        sums = np.add(sums, per_channel(b, sums.ndim), dtype=np.float64)
    return requantized(sums, scales, divisor, scalar(y_zero_point, name="y_zero_point"), y_zero_point.dtype)


def _per_map(values: Tensor, w: Tensor, name: str) -> Tensor:
    """A scalar, or one value for each feature map, as (1, 1, ...) or (M, 1, ...) to broadcast against the output."""
    if values.size != 1 and values.shape != (w.shape[0],):
        raise ValueError(f"{name} has shape {values.shape}, expected a scalar or ({w.shape[0]},)")
    return per_channel(values, w.ndim)

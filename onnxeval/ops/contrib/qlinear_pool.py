"""QLinearAveragePool, QLinearGlobalAveragePool and QLinearReduceMean: means of numbers of 8 bits.

What the inputs stand for is averaged and quantized by the scale and the zero point of the output. Sums are exact, so
that a mean halfway between two numbers goes to the even one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._scalar import scalar
from onnxeval.ops.contrib._eight_bits import EIGHT_BITS, distances, quantized
from onnxeval.ops.contrib._layout import channels_first
from onnxeval.ops.contrib._layout import channels_last as to_last
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT32, microsoft_op


@microsoft_op("QLinearAveragePool", "TFTFT", T=EIGHT_BITS, F=(FLOAT32,))
def qlinear_average_pool(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor | None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    allocate: Allocate,
) -> Tensor:
    """AveragePool-22; padding that counts stands for 0. (N, *sizes, C) -> (N, *counts, C) with ``channels_last``.

    Source: com.microsoft.QLinearAveragePool-1.
    """

    def pool(numbers: Tensor) -> Tensor:
        means: Tensor = standard("nn", "AveragePool", 22)(
            numbers,
            auto_pad=auto_pad,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            dilations=None,
            kernel_shape=kernel_shape,
            pads=pads,
            strides=strides,
            allocate=allocate,
        )
        return means

    return _pooled(pool, x, x_scale, x_zero_point, y_scale, y_zero_point, last=channels_last)


@microsoft_op("QLinearGlobalAveragePool", "TFTFT", T=EIGHT_BITS, F=(FLOAT32,))
def qlinear_global_average_pool(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    *,
    channels_last: int = 0,
) -> Tensor:
    """(N, C, D1, ...) -> (N, C, 1, ...), or (N, D1, ..., C) -> (N, 1, ..., C) with ``channels_last``.

    Source: com.microsoft.QLinearGlobalAveragePool-1.
    """
    pool = standard("nn", "GlobalAveragePool", 22)
    return _pooled(pool, x, x_scale, x_zero_point, y_scale, y_zero_point, last=channels_last)


@microsoft_op("QLinearReduceMean", "TFTFT", T=EIGHT_BITS, F=(FLOAT32,))
def qlinear_reduce_mean(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor | None,
    *,
    axes: Sequence[int],
    keepdims: int,
) -> Tensor:
    """The mean over ``axes``, as ReduceMean-13. Source: com.microsoft.QLinearReduceMean-1."""

    def mean(numbers: Tensor) -> Tensor:
        means: Tensor = standard("reduction", "ReduceMean", 13)(numbers, axes=axes, keepdims=keepdims)
        return means

    return _pooled(mean, x, x_scale, x_zero_point, y_scale, y_zero_point, last=0)


def _pooled(
    pool: Callable[[Tensor], Tensor],
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor | None,
    *,
    last: int,
) -> Tensor:
    steps = distances(x, None if x_zero_point is None else scalar(x_zero_point, name="x_zero_point"))
    means = pool(channels_first(steps) if last else steps)
    y = quantized(means * float(scalar(x_scale, name="x_scale")), y_scale, y_zero_point, x.dtype, name="y")
    return to_last(y) if last else y

"""BlackmanWindow, HammingWindow and HannWindow: sums of cosines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor, dtype_of, is_integer
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._cast import convert
from onnxeval.ops._scalar import scalar
from onnxeval.registry import op


def _window(constant: float, first: float, second: float) -> Callable[..., Tensor]:
    def kernel(size: Tensor, *, output_datatype: int, periodic: int, allocate: Allocate) -> Tensor:
        """``size`` values of constant - first cos(a) + second cos(2 a), where a goes once round the circle.

        ``periodic``: the circle closes one step after the last value, else with it. Computed in float64; integers are
        truncated from float32, the type of the function bodies, in which the peak of a Blackman window is 1. Raises
        ValueError where size is negative. Source: the function bodies of version 17.
        """
        count = scalar(size, name="size")
        if count < 0:
            raise ValueError(f"size {count} is negative")
        angles = allocate((count,), np.float64)
        angles[:] = np.arange(count) * np.divide(2 * np.pi, count if periodic else count - 1)
        values = constant - first * np.cos(angles) + second * np.cos(2 * angles)
        dtype = dtype_of(output_datatype)
        return convert(values.astype(np.float32) if is_integer(dtype) else values, dtype)

    return kernel


op("BlackmanWindow", versions=(17,))(_window(0.42, 0.5, 0.08))
op("HammingWindow", versions=(17,))(_window(25 / 46, 21 / 46, 0.0))
op("HannWindow", versions=(17,))(_window(0.5, 0.5, 0.0))

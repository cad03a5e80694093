"""CumSum and CumProd. The versions of CumSum differ in types alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._precision import in_float32
from onnxeval.ops._scalar import scalar
from onnxeval.registry import op


def _running(accumulate: Callable[..., Tensor], start: int) -> Callable[..., Tensor]:
    @in_float32
    def kernel(x: Tensor, axis: Tensor, *, exclusive: int, reverse: int) -> Tensor:
        """What ``accumulate`` makes of the elements so far, from the front or, ``reverse``, from the back.

        ``exclusive`` leaves out the element at hand: the first result is ``start``. Integers wrap around.
        """
        place = normalise_axis(scalar(axis, name="axis"), x.ndim)
        lines = np.moveaxis(x, place, 0)
        if reverse:
            lines = lines[::-1]
        if exclusive:
            result = np.full_like(lines, start)
            accumulate(lines[:-1], axis=0, dtype=x.dtype, out=result[1:])
        else:
            result = accumulate(lines, axis=0, dtype=x.dtype)
        return np.moveaxis(result[::-1] if reverse else result, 0, place)

    return kernel


op("CumSum", versions=(11, 14))(_running(np.cumsum, 0))
op("CumProd", versions=(26,))(_running(np.cumprod, 1))

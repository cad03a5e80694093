"""ArgMax and ArgMin: where along an axis the greatest or the least element is.

``select_last_index`` arrived in version 12; until then the first of several wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._precision import in_float32
from onnxeval.registry import Kernel, op


def arg(find: Callable[..., Any]) -> Kernel:
    """The kernel for ``np.argmax`` or ``np.argmin``."""

    @in_float32
    def kernel(data: Tensor, *, axis: int, keepdims: int, select_last_index: int = 0) -> Tensor:
        """int64 indices along ``axis``, the first or the last of several; a NaN counts as the extreme.

        ValueError where ``axis`` is outside or has no elements. Source: ArgMax-13, ArgMin-13.
        """
        axis = normalise_axis(axis, data.ndim)
        if not data.shape[axis]:
            raise ValueError(f"axis {axis} of {list(data.shape)} has no elements")
        searched = np.flip(data, axis) if select_last_index else data
        found = find(searched, axis, keepdims=bool(keepdims))
        return np.asarray(data.shape[axis] - 1 - found if select_last_index else found, np.int64)

    return kernel


op("ArgMax", versions=(1, 11, 12, 13))(arg(np.argmax))
op("ArgMin", versions=(1, 11, 12, 13))(arg(np.argmin))

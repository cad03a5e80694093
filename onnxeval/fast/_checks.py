"""What the compiled kernels take: aligned float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor

FLOAT32 = np.dtype(np.float32)


def is_float32(x: Any) -> bool:
    """Whether a value is a float32 array in this machine's byte order, aligned."""
    # An array that was unpickled has a dtype of its own, which is equal
    return type(x) is np.ndarray and (x.dtype is FLOAT32 or x.dtype == FLOAT32) and x.flags.aligned


def known_float32(x: Tensor | None) -> bool:
    """Whether a constant is known, and float32."""
    return x is not None and is_float32(x)


def contiguous(x: Tensor) -> Tensor:
    """The array itself where its elements lie in order, else a copy."""
    return x if x.flags.c_contiguous else np.ascontiguousarray(x).reshape(x.shape)

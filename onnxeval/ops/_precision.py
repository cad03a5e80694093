"""16-bit floats compute in float32 and round once, at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType

K = TypeVar("K", bound=Callable[..., Any])

_HALF: tuple[DType, ...] = (np.dtype(np.float16), BFLOAT16)


def in_float32(kernel: K) -> K:
    """Let a kernel see its float16 and bfloat16 inputs as float32; its float32 results get the type back.

    The type given back is that of the first 16-bit input. A kernel whose outputs need other types
    converts for itself.
    """

    @wraps(kernel)
    def widened(*inputs: Any, **attributes: Any) -> Any:
        narrow = next((x.dtype for x in inputs if getattr(x, "dtype", None) in _HALF), None)
        if narrow is None:
            return kernel(*inputs, **attributes)
        wide = (x.astype(np.float32) if getattr(x, "dtype", None) in _HALF else x for x in inputs)
        results = kernel(*wide, **attributes)
        if isinstance(results, tuple):
            return tuple(_narrowed(result, narrow) for result in results)
        return _narrowed(results, narrow)

    return cast("K", widened)


def _narrowed(result: Any, dtype: DType) -> Any:
    return result.astype(dtype) if getattr(result, "dtype", None) == np.float32 else result

"""16-bit floats compute in float32 and round once, at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType

K = TypeVar("K", bound=Callable[..., Any])

#: NumPy's numbers of the two types: quicker to look up than dtypes, on every call.
_HALF = frozenset({np.dtype(np.float16).num, BFLOAT16.num})


def in_float32(kernel: K) -> K:
    """Let a kernel see its float16 and bfloat16 inputs as float32; its float32 results get the type back.

    The type given back is that of the first 16-bit input. A kernel whose outputs need other types
    converts for itself.
    """

    @wraps(kernel)
    def widened(*inputs: Any, **attributes: Any) -> Any:
        for x in inputs:
            if isinstance(x, np.ndarray) and x.dtype.num in _HALF:
                break
        else:
            return kernel(*inputs, **attributes)
        results = kernel(*map(as_float32, inputs), **attributes)
        if isinstance(results, tuple):
            return tuple(_narrowed(result, x.dtype) for result in results)
        return _narrowed(results, x.dtype)

    vars(widened)["is_in_float32"] = True
    return cast("K", widened)


def is_in_float32(kernel: Callable[..., Any]) -> bool:
    """Whether `in_float32` decorates a kernel."""
    return bool(getattr(kernel, "is_in_float32", False))


def as_float32(value: Any) -> Any:
    """An array of 16-bit floats as float32, anything else as it is."""
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype.num in _HALF else value


def _narrowed(result: Any, dtype: DType) -> Any:
    return result.astype(dtype) if getattr(result, "dtype", None) == np.float32 else result

"""What the compiled kernels take: aligned float32, and elements of any kind where they are only moved."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import BFLOAT16, DType, Tensor
from onnxeval.fast.engine import native

FLOAT32 = np.dtype(np.float32)
EIGHT_BITS = (np.dtype(np.int8), np.dtype(np.uint8))
HALVES = frozenset({np.dtype(np.float16), BFLOAT16})

#: Element types as arrays.h numbers them.
TYPES: dict[DType, int] = {
    dtype: number
    for number, dtype in enumerate(
        [*(np.dtype(name) for name in ("f4", "f8", "i1", "u1", "i4", "i8", "?", "f2")), BFLOAT16]
    )
}

#: Axes and bytes of an element that compiled kernels have room for.
MOST_AXES = 16
_MOST_BYTES = 16

#: Bytes of an element -> the integers that stand for elements which lend no buffer.
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def is_float32(x: Any) -> bool:
    """Whether a value is a float32 array in this machine's byte order, aligned."""
    # An array that was unpickled has a dtype of its own, which is equal
    return type(x) is np.ndarray and (x.dtype is FLOAT32 or x.dtype == FLOAT32) and x.flags.aligned


def known_float32(x: Tensor | None) -> bool:
    """Whether a constant is known, and float32."""
    return x is not None and is_float32(x)


def is_movable(x: Any) -> bool:
    """Whether compiled kernels can move the elements of a value: an array of no Python objects."""
    return type(x) is np.ndarray and x.dtype.kind not in "OSUM" and x.itemsize <= _MOST_BYTES and x.ndim <= MOST_AXES


def bits(x: Tensor) -> Tensor:
    """A movable array as one that lends its buffer: ml_dtypes' numbers as the integers of their bits."""
    return x.view(_BITS[x.itemsize]) if x.dtype.isbuiltin == 2 else x


def contiguous(x: Tensor) -> Tensor:
    """The array itself where its elements lie in order, else a copy."""
    if x.flags.c_contiguous:
        return x
    return moved(x, x.shape) if is_movable(x) else np.ascontiguousarray(x).reshape(x.shape)


def moved(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A copy of a movable array, as it broadcasts to that shape."""
    kernels = native()
    assert kernels is not None
    result = empty(shape, x.dtype)
    kernels.copy(bits(x), bits(result))
    return result


def is_plain(x: Any, dtype: DType) -> bool:
    """Whether a value is an aligned array of that type, of no more axes than there is room for."""
    return type(x) is np.ndarray and x.dtype == dtype and x.flags.aligned and x.ndim <= MOST_AXES


@lru_cache(256)
def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that all broadcast to; None where they do not."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def is_bytes(x: Any) -> bool:
    """Whether a value is an array of 8-bit integers."""
    return type(x) is np.ndarray and x.dtype in EIGHT_BITS

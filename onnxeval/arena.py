"""Memory that results share by their lifetimes, where the steps of a plan write to the same places each time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import local

import numpy as np

from onnxeval.dtypes import DType, Tensor

_ALIGNMENT = 64


class Arena:
    """So many bytes. Within `with`, what this thread makes with `empty` lies in them, as far as there is room."""

    def __init__(self, size: int) -> None:
        self._memory = np.empty(size + _ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % _ALIGNMENT
        self._free = [(start, start + size)]  # in their order, none beside the next
        self._taken: dict[int, int] = {}  # where a block begins -> where it ends

    def __enter__(self) -> Arena:
        _USED.arena = self
        return self

    def __exit__(self, *reason: object) -> None:
        _USED.arena = None

    def empty(self, shape: Sequence[int], dtype: DType | type[np.generic]) -> Tensor:
        """An uninitialised array; of memory of its own where there is no room left, and where it has no bytes."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        size = -(-size // _ALIGNMENT) * _ALIGNMENT
        fitting = [(end - start, start) for start, end in self._free if end - start >= size]
        if not fitting or not size or dtype.hasobject:
            return np.empty(shape, dtype)
        room, start = min(fitting)
        self._free.remove((start, start + room))
        if room > size:
            self._free.append((start + size, start + room))
            self._free.sort()
        self._taken[start] = start + size
        return np.ndarray(shape, dtype, self._memory, start)

    def block_of(self, value: Tensor) -> int | None:
        """What names the block that an array lies in; None for memory from elsewhere."""
        at = value.ctypes.data - self._memory.ctypes.data
        return next((start for start, end in self._taken.items() if start <= at < end), None)

    def take_back(self, block: int) -> None:
        """Let other arrays have the memory of a block, whose own are not read any more."""
        start, end = block, self._taken.pop(block)
        for other in list(self._free):
            if other[1] == start or other[0] == end:
                self._free.remove(other)
                start, end = min(start, other[0]), max(end, other[1])
        self._free.append((start, end))
        self._free.sort()


class _Used(local):
    arena: Arena | None = None


_USED = _Used()


def empty(shape: Sequence[int], dtype: DType | type[np.generic]) -> Tensor:
    """An uninitialised array, in the arena that this thread uses, if any."""
    arena = _USED.arena
    return np.empty(shape, dtype) if arena is None else arena.empty(shape, dtype)

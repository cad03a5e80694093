"""Arrays between pages that nobody may touch: reading or writing one element beside them ends the process."""

import ctypes
import mmap
import sys

import numpy as np

#: Whether `guarded` guards here.
GUARDS = sys.platform == "linux"

_PAGE = mmap.PAGESIZE
_HELD: list[mmap.mmap] = []


def guarded(values: np.ndarray, *, at_end: bool = True) -> np.ndarray:
    """A copy whose last element, or first, borders on a page that cannot be read. Contiguous, of the same shape."""
    if not GUARDS or not values.size:
        return values.copy()
    pages = -(-values.nbytes // _PAGE)
    memory = mmap.mmap(-1, (pages + 2) * _PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for page in (start, start + (pages + 1) * _PAGE):
        if protect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = _PAGE + (pages * _PAGE - values.nbytes if at_end else 0)
    offset -= offset % values.itemsize
    result = np.ndarray(values.shape, values.dtype, memory, offset)
    result[...] = values
    _HELD.append(memory)  # protected pages cannot be handed back to Python's allocator: they stay
    if len(_HELD) > 64:
        _HELD.pop(0)
    return result

"""What this package asks of the memory of its process: to keep what is freed, and not to look for garbage at times.

Where it can, the GNU C library gives the memory of each large array back to the system, which hands it out again page
by page: writing to a new array takes several times as long as to an old one. A model's tensors are made and freed many
times over.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

#: Bytes of freed memory that are kept, and the size from which an array is returned to the system by itself.
_KEPT = 1 << 28
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


@cache
def keep_freed_memory() -> None:
    """Let this process keep freed memory, where its C library can be told so and the environment says nothing of it."""
    if sys.platform != "linux" or any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for threshold in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            mallopt(ctypes.c_int(threshold), ctypes.c_int(_KEPT))


@contextmanager
def uncollected() -> Iterator[None]:
    """Let Python not look for cycles meanwhile: what a large model is made into stays, and each look goes over it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

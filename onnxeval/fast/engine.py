"""The compiled kernels: whether they are there, which instruction set they use, on how many threads."""

from __future__ import annotations

import atexit
import os
from functools import cache
from types import ModuleType

from onnxeval import threads
from onnxeval.errors import InputError

#: The environment variable that turns them off (0) or names the instruction set: see `native`.
VARIABLE = "ONNXEVAL_NATIVE"

_OFF = "0"
_BEST = ("", "1")


def native() -> ModuleType | None:
    """The compiled kernels, ready to use; None where they are not built, or turned off.

    They use the best instruction set that the processor has, or the one that ONNXEVAL_NATIVE names. Raises InputError
    where the processor does not have that one.
    """
    return _native(os.environ.get(VARIABLE, ""))


def status() -> str:
    """In words, for ``onnxeval --version``."""
    if os.environ.get(VARIABLE, "") == _OFF:
        return f"off ({VARIABLE} is {_OFF})"
    kernels = native()
    return "not built" if kernels is None else f"{kernels.active()} of {', '.join(kernels.tiers())}"


@cache
def _native(wanted: str) -> ModuleType | None:
    if wanted == _OFF:
        return None
    try:
        from onnxeval.fast import _native as kernels
    except ImportError:
        return None
    tiers = kernels.tiers()
    if wanted not in (*_BEST, *tiers):
        raise InputError(
            f"{VARIABLE} is {wanted!r}, expected {_OFF}, 1, or what this processor has: {', '.join(tiers)}"
        )
    kernels.select(tiers[-1] if wanted in _BEST else wanted)
    kernels.set_threads(threads.wanted() or threads.available())
    threads.LISTENERS.append(kernels.set_threads)
    atexit.register(kernels.close)
    return kernels

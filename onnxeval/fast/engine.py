"""The compiled kernels: whether they are there, which instruction set they use, on how many threads."""

from __future__ import annotations

import atexit
import os
from functools import cache
from types import ModuleType

from onnxeval import threads
from onnxeval.errors import InputError
from onnxeval.fast.interface import fingerprint

#: The environment variable that turns them off (0) or names the instruction set: see `native`.
VARIABLE = "ONNXEVAL_NATIVE"

#: How a compiled kernel uses a buffer, as in bindings.h: it writes it without reading, or reads and writes.
WRITTEN, UPDATED = 2, 4

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
    return _why_none() if kernels is None else f"{kernels.active()} of {', '.join(kernels.tiers())}"


@cache
def _native(wanted: str) -> ModuleType | None:
    if wanted == _OFF or _why_none():
        return None
    import onnxeval.fast._native as kernels

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


@cache
def _why_none() -> str:
    """In words, why there are no compiled kernels; nothing where there are."""
    try:
        import onnxeval.fast._native as kernels
    except ModuleNotFoundError:
        return "not built, for want of a C compiler that builds them"
    except ImportError as error:
        return f"not used: {error}"
    expected = fingerprint()
    if expected and getattr(kernels, "INTERFACE", None) != expected:
        return "not used: built from other sources; `python setup.py build_ext --inplace` builds them again"
    return ""

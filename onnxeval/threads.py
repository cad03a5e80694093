"""How many threads a computation may use: this package's, and those of the BLAS that NumPy multiplies with.

A BLAS reads its environment once, when NumPy is imported: what is set before governs it whichever it is. Afterwards
it can be told by threadpoolctl where that is installed, and where NumPy came from PyPI with its OpenBLAS.
"""

from __future__ import annotations

import ctypes
import operator
import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from onnxeval.errors import InputError

#: The environment variable that `load` and the command line heed.
VARIABLE = "ONNXEVAL_NUM_THREADS"

#: Told the number whenever it is set: thread pools of this package.
LISTENERS: list[Callable[[int], None]] = []

_OF_BLAS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_SETTERS = tuple(f"{start}openblas_set_num_threads{end}" for start in ("scipy_", "") for end in ("64_", ""))


def available() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wanted() -> int | None:
    """How many threads are asked for: by the environment, which `set_num_threads` writes too. None where nothing is.

    Raises InputError where the environment holds no number.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise InputError(f"{VARIABLE} is {text!r}, expected a number of threads")
    return int(text)


def environment(count: int) -> dict[str, str]:
    """The variables under which a new process uses so many threads."""
    return dict.fromkeys((VARIABLE, *_OF_BLAS), str(count))


def set_num_threads(count: int) -> None:
    """Use so many threads from now on, in this process and in those that it starts.

    Warns with a RuntimeWarning where NumPy is loaded already with a BLAS that cannot be told any more. Raises
    InputError for less than one.
    """
    count = operator.index(count)
    if count < 1:
        raise InputError(f"the number of threads is {count}, expected at least 1")
    os.environ.update(environment(count))
    for listener in LISTENERS:
        listener(count)
    if "numpy" in sys.modules and not _tell_blas(count):
        hint = f"set {VARIABLE} before Python starts, or install threadpoolctl"
        warnings.warn(f"NumPy's BLAS keeps its number of threads: {hint}", RuntimeWarning, stacklevel=2)


def heed_environment() -> None:
    """Use as many threads as the environment asks for. Raises InputError where that is no number."""
    count = wanted()
    if count is not None and any(os.environ.get(name) != str(count) for name in _OF_BLAS):
        set_num_threads(count)  # otherwise all was set together, before NumPy was there


def _tell_blas(count: int) -> bool:
    """Tell the BLAS that is loaded; whether it listens."""
    try:
        threadpoolctl = import_module("threadpoolctl")
    except ImportError:
        return _tell_openblas(count)
    return bool(threadpoolctl.threadpool_limits(count, user_api="blas").get_original_num_threads().get("blas"))


def _tell_openblas(count: int) -> bool:
    """Tell the OpenBLAS that lies beside NumPy in wheels from PyPI; whether there is one."""
    import numpy as np

    package = Path(np.__file__).parent
    for path in (*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")):
        library = ctypes.CDLL(str(path))
        for name in _SETTERS:
            if hasattr(library, name):
                getattr(library, name)(ctypes.c_int(count))
                return True
    return False

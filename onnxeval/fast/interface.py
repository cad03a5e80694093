"""What Python and the compiled kernels agree on. setup.py runs this file by itself."""

from __future__ import annotations

import zlib
from pathlib import Path

_HERE = Path(__file__).parent

#: The functions and their arguments; the numbers and layouts that are handed over.
_FILES = (_HERE / "_native.pyi", *(_HERE / "native" / name for name in ("kernels.h", "arrays.h", "attention.h")))


def fingerprint() -> str | None:
    """A number for the interface as the sources have it; None where they are not there, as in an installed package."""
    if not all(path.exists() for path in _FILES):
        return None
    return f"{zlib.crc32(b''.join(path.read_bytes() for path in _FILES)):08x}"

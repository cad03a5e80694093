"""Names of values as names of files, and back: `/conv1/weight:0` becomes `%2Fconv1%2Fweight%3A0`."""

from __future__ import annotations

import re
from pathlib import Path

_UNSAFE = r'[\x00-\x1f\x7f"%*/:<>?\\|]|^\.|[. ]$'
_ESCAPED = r"(?:%[0-9A-F]{2})+"


def file_stem(name: str) -> str:
    """A file name, without suffix, that every system takes; `name_from_file` gives the name back."""
    return re.sub(_UNSAFE, lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)


def name_from_file(path: Path) -> str:
    """The name of the value in a file that `file_stem` named; any other file's name without its suffix."""
    return re.sub(_ESCAPED, lambda found: bytes.fromhex(found[0].replace("%", "")).decode(errors="replace"), path.stem)

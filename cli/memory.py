"""No more memory than there is: an allocation fails then, where the system would else kill the process, or another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: What a process may take however little is left: the system may yet find it.
_LEAST = 2**28


@contextmanager
def kept_to_memory(system: Path = Path("/")) -> Iterator[None]:
    """Bound the data of this process by what it has now and what the system has left; only Linux tells."""
    bound = _bound(system) if sys.platform == "linux" else None
    if bound is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or bound < soft:
        resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _bound(system: Path) -> int | None:
    left = memory_left(system)
    try:
        return None if left is None else 1024 * _number(system / "proc/self/status", "VmData:") + max(left, _LEAST)
    except (OSError, ValueError):
        return None


def memory_left(system: Path) -> int | None:
    """Bytes that the machine and this process's control group have left, with swap; None where nothing tells."""
    meminfo, group = system / "proc/meminfo", system / "sys/fs/cgroup"
    try:
        left = 1024 * (_number(meminfo, "MemAvailable:") + _number(meminfo, "SwapFree:"))
    except (OSError, ValueError):
        return None
    try:
        bound, current = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        cache = sum(_number(group / "memory.stat", name) for name in ("active_file", "inactive_file"))
    except (OSError, ValueError):  # no group of version 2, or one without a bound ("max")
        return left
    return min(left, max(bound - current + cache, 0))


def _number(path: Path, name: str) -> int:
    """The number behind a name at the start of a line. Raises ValueError where there is none."""
    for line in path.read_text().splitlines():
        if line.startswith((f"{name} ", f"{name}\t")):
            return int(line.split()[1])
    raise ValueError(f"{path} has no {name}")

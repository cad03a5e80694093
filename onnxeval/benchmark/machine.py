"""What figures are measured on, and who else was busy there meanwhile."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from onnxeval.threads import available


def facts() -> dict[str, Any]:
    """Processor, system and versions."""
    return {
        "processor": _processor(),
        "processors": available(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


class Bystanders:
    """Measures from its making on how busy the machine is with what is none of this process and its children."""

    def __init__(self) -> None:
        self._begin = perf_counter()
        self._busy = _busy_seconds()
        self._own = _own_seconds()

    def processors(self) -> float | None:
        """How many processors others kept busy, on average; None where the system does not tell.

        Children count as this process's own once they have been waited for.
        """
        busy = _busy_seconds()
        if busy is None or self._busy is None:
            return None
        own = _own_seconds() - self._own
        return max(busy - self._busy - own, 0.0) / max(perf_counter() - self._begin, 1e-9)


def _busy_seconds() -> float | None:
    """The seconds that all processors together have been busy, time that a hypervisor took away included."""
    try:
        fields = Path("/proc/stat").read_text().split(maxsplit=10)
        user, nice, system, _, _, irq, softirq, steal = map(int, fields[1:9])
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system

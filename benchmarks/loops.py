"""A process that keeps one processor busy while others are measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Self


class Loop:
    """The process, for a ``with`` statement. It ends with the one that started it."""

    def __enter__(self) -> Self:
        waiting = "import threading, sys, os; threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"{waiting}\nwhile True: pass"], stdin=subprocess.PIPE, text=True
        )
        self._begin, self._used = perf_counter(), self._seconds()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def processors(self) -> float:
        """How much of a processor it had since it was asked last; one where the system does not tell."""
        begin, used = self._begin, self._used
        self._begin, self._used = perf_counter(), self._seconds()
        if used is None or self._used is None:
            return 1.0
        return (self._used - used) / max(self._begin - begin, 1e-9)

    def _seconds(self) -> float | None:
        """The processor time it has used."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

"""Time whole processes from a small one: ``python -I -S stopwatch.py``.

It reads commands from standard input, a JSON list a line, and answers each with a JSON object: ``seconds`` from start
to end, ``peak_memory`` in bytes, ``code`` and what the process said on standard ``error``. A process counts as its
own the memory of the one that starts it, until it has more: hence a small one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from time import perf_counter


def time_process(command: list[str]) -> dict[str, float | int | str | None]:
    """Run a command whose output nobody reads."""
    with tempfile.TemporaryFile() as errors:
        begin = perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        peak = None
        if hasattr(os, "wait4"):
            _, status, usage = os.wait4(process.pid, 0)
            seconds = perf_counter() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
            peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        else:
            process.wait()
            seconds = perf_counter() - begin
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return {"seconds": seconds, "peak_memory": peak, "code": process.returncode, "error": said}


def main() -> None:
    with suppress(KeyboardInterrupt):  # the process that asks says so
        for line in sys.stdin:
            print(json.dumps(time_process(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

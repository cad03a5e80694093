"""The process of one engine: ``python -m onnxeval.benchmark.serve ENGINE``.

It reads (method, arguments) from standard input and writes a verdict and an answer to standard output, pickled:
"done" and the result, "refused" and an OnnxEvalError, or "failed" and an exception's summary and traceback.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
import warnings
from typing import Any, BinaryIO

from onnxeval.benchmark.engines import ENGINES
from onnxeval.errors import OnnxEvalError


def serve(engine: object, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    while True:
        try:
            method, arguments = pickle.load(requests)
        except EOFError:
            return
        call = peak_memory if method == "peak_memory" else getattr(engine, method)
        pickle.dump(_answer(call, arguments), answers)
        answers.flush()


def _answer(call: Any, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "done", call(*arguments)
    except OnnxEvalError as error:
        return "refused", error
    except Exception as error:  # engines raise what they like
        summary = f"{type(error).__name__}: {error}".strip()
        return "failed", (summary, traceback.format_exc())


def peak_memory() -> int | None:
    """The most memory that this process has held so far, in bytes; None where the system does not tell."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def serve_standard_streams(engine: object) -> None:
    """Answer what comes in on standard input, by standard output, which is closed to everybody else."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks decides when this one ends
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an engine prints is no answer
    serve(engine, sys.stdin.buffer, answers)


if __name__ == "__main__":
    serve_standard_streams(ENGINES[sys.argv[1]]())

"""The other end of `serve`: an engine in a process of its own, called like an object."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from onnxeval.errors import OnnxEvalError
from onnxeval.threads import environment


class EngineFailed(Exception):  # noqa: N818  # what happened
    """An engine raised something, or its process ended. The text is a summary, ``details`` the traceback there."""

    def __init__(self, summary: str, details: str = "") -> None:
        super().__init__(summary)
        self.details = details


class Worker:
    """A process in which one engine runs on so many threads. Use it in a ``with`` statement: it ends with that.

    ``module`` is what serves there, with ``arguments`` besides the engine.
    """

    def __init__(
        self, engine: str, threads: int, module: str = "onnxeval.benchmark.serve", arguments: Sequence[str] = ()
    ) -> None:
        self.engine = engine
        # -P: a file named like a package in the user's folder is none
        command = [sys.executable, "-P", "-m", module, engine, *arguments]
        with _uninterrupted():
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **environment(threads)},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            # A request that never reached a dead process is flushed once more here
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()

    def kill(self) -> None:
        """End the process at once: whoever waits for an answer hears that it is gone."""
        self._process.kill()

    def call(self, method: str, *arguments: Any) -> Any:
        """What the engine's method returns. Raises OnnxEvalError or EngineFailed where it does not return."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None  # noqa: PT018  # both are pipes
        try:
            pickle.dump((method, arguments), requests)
            requests.flush()
            verdict, answer = pickle.load(answers)
        except (EOFError, ConnectionError, pickle.UnpicklingError):
            raise EngineFailed(f"the process of {self.engine} {_ending(self._process.wait())}") from None
        if verdict == "refused":
            assert isinstance(answer, OnnxEvalError)
            raise answer
        if verdict == "failed":
            raise EngineFailed(*answer)
        return answer


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let a process that is started here not hear Ctrl-C: who started it decides when it ends."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was ended by signal {-code}{', which the system sends where memory runs out' * (code == -9)}"

"""Jobs in processes of their own, so that an engine that breaks breaks one job alone."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from threading import Event, Thread, Timer
from time import perf_counter

from onnxeval.benchmark.workers import EngineFailed, Worker
from onnxeval.errors import OnnxEvalError
from onnxeval.testing.jobs import Job, Outcome
from onnxeval.threads import available

SERVE = "onnxeval.testing.serve"


def run_jobs(
    jobs: Sequence[Job], engine: str, processes: int, timeout: float | None = None, kernels: Sequence[str] = ()
) -> Iterator[Outcome]:
    """The outcomes, as they come. A job that takes longer than ``timeout`` seconds counts as crashed."""
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    done: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    stop = Event()
    processes = max(1, min(processes, len(jobs)))
    lanes = [
        _Lane(waiting, done, stop, engine, max(1, available() // processes), timeout, kernels) for _ in range(processes)
    ]
    for lane in lanes:
        lane.start()
    try:
        for _ in jobs:
            outcome = done.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
    finally:
        stop.set()
        for lane in lanes:
            lane.end()


class _Lane(Thread):
    """One process after the other: a new one where the last has gone."""

    def __init__(
        self,
        waiting: queue.SimpleQueue[Job],
        done: queue.SimpleQueue[Outcome | BaseException],
        stop: Event,
        engine: str,
        threads: int,
        timeout: float | None,
        kernels: Sequence[str],
    ) -> None:
        super().__init__(daemon=True)
        self._waiting, self._done, self._halt = waiting, done, stop
        self._engine, self._threads, self._timeout, self._kernels = engine, threads, timeout, kernels
        self._worker: Worker | None = None

    def run(self) -> None:
        try:
            while not self._halt.is_set():
                with ExitStack() as stack:
                    self._worker = worker = stack.enter_context(
                        Worker(self._engine, self._threads, module=SERVE, arguments=self._kernels)
                    )
                    while not self._halt.is_set():
                        job = self._waiting.get_nowait()
                        outcome = self._outcome(worker, job)
                        self._done.put(outcome)
                        if outcome.status == "crashed":
                            break
        except queue.Empty:
            pass
        except BaseException as error:  # for the thread that waits
            self._done.put(error)

    def _outcome(self, worker: Worker, job: Job) -> Outcome:
        begin = perf_counter()
        too_slow = Event()

        def interrupt() -> None:
            too_slow.set()
            worker.kill()

        timer = Timer(self._timeout or 0, interrupt)
        if self._timeout is not None:
            timer.start()
        try:
            outcome: Outcome = worker.call("test", job)
            return outcome
        except (EngineFailed, OnnxEvalError) as error:
            reason = f"took longer than {self._timeout:g} seconds" if too_slow.is_set() else str(error)
            return Outcome(job, "crashed", perf_counter() - begin, reason)
        finally:
            timer.cancel()

    def end(self) -> None:
        """Let go of what still runs."""
        if self.is_alive() and self._worker is not None:
            self._worker.kill()
        self.join()

"""Blocks in several processes of this machine, each of which reads its own part of the inputs."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from threading import Event, Thread

from onnxeval.batches.running import Rows, Work
from onnxeval.benchmark.workers import EngineFailed, Worker
from onnxeval.errors import OnnxEvalError, ResourceLimitError
from onnxeval.threads import available

_SERVE = "onnxeval.batches.serve"
_WAITING = 2  # blocks done for each process that nobody has taken yet


class Processes:
    """Runs blocks in so many processes."""

    def __init__(self, work: Work, processes: int) -> None:
        self._work, self._processes = work, processes

    def each(self, blocks: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, Rows]]:
        """(block, first item, rows) for each (block, start, stop), as they are done."""
        waiting: queue.SimpleQueue[tuple[int, int, int]] = queue.SimpleQueue()
        for block in blocks:
            waiting.put(block)
        count = max(1, min(self._processes, len(blocks)))
        done: queue.Queue[tuple[int, int, Rows] | BaseException] = queue.Queue(_WAITING * count)
        halt = Event()
        lanes = [_Lane(self._work, waiting, done, halt, max(1, available() // count)) for _ in range(count)]
        for lane in lanes:
            lane.start()
        try:
            for _ in blocks:
                result = done.get()
                if isinstance(result, BaseException):
                    raise result
                yield result
        finally:
            halt.set()
            for lane in lanes:
                lane.end(done)


class _Lane(Thread):
    """One process and what waits for it."""

    def __init__(
        self,
        work: Work,
        waiting: queue.SimpleQueue[tuple[int, int, int]],
        done: queue.Queue[tuple[int, int, Rows] | BaseException],
        halt: Event,
        threads: int,
    ) -> None:
        super().__init__(daemon=True)
        self._work, self._waiting, self._done, self._halt, self._threads = work, waiting, done, halt, threads
        self._worker: Worker | None = None

    def run(self) -> None:
        try:
            with Worker("batch", self._threads, module=_SERVE) as worker:
                self._worker = worker
                worker.call("open", self._work)
                while not self._halt.is_set():
                    block, start, stop = self._waiting.get_nowait()
                    self._done.put((block, start, worker.call("run", start, stop)))
        except queue.Empty:
            pass
        except OnnxEvalError as error:
            self._done.put(error)
        except EngineFailed as error:
            self._done.put(ResourceLimitError(f"a process of the batch is gone: {error}", hint="--resume goes on"))
        except BaseException as error:  # for the thread that waits
            self._done.put(error)

    def end(self, done: queue.Queue[tuple[int, int, Rows] | BaseException]) -> None:
        """Let go of what still runs, and of what nobody takes any more."""
        if self._worker is not None and self.is_alive():
            self._worker.kill()
        while self.is_alive():
            while not done.empty():
                done.get_nowait()
            self.join(0.05)

"""Blocks on a Dask cluster: the model and the items travel there, the results come back.

A worker that is lost loses nothing: the scheduler gives its blocks to another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from onnxeval.batches.running import Rows, Work, run_rows
from onnxeval.checks.mending import has_external_data
from onnxeval.errors import InputError, MissingExtra, OnnxEvalError, ResourceLimitError
from onnxeval.loader import parse_model
from onnxeval.model import Model, load
from onnxeval.plugins import load_file

_CONNECTING = 10  # seconds
_AHEAD = 3  # blocks under way for each thread of the cluster
_RETRIES = 5
_LARGEST = 2**29  # bytes of a model that travel


class Cluster:
    """Runs blocks on the cluster whose scheduler has this address. Raises MissingExtra without the package."""

    def __init__(self, work: Work, address: str) -> None:
        if find_spec("distributed") is None:
            raise MissingExtra("--dask", "dask")
        self._work, self._address = work, address

    def each(self, blocks: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, Rows]]:
        """(block, first item, rows) for each (block, start, stop), as they are done."""
        dask: Any = import_module("distributed")
        with self._client(dask) as client:
            width = _AHEAD * max(1, sum(client.nthreads().values()))
            task = _Task(self._work)
            waiting = iter(blocks)
            under_way = dask.as_completed([], loop=client.loop)
            places: dict[str, tuple[int, int]] = {}

            def send() -> None:
                for block, start, stop in waiting:
                    future = client.submit(
                        _run, task, self._work.read(start, stop), start, pure=False, retries=_RETRIES
                    )
                    places[future.key] = (block, start)
                    under_way.add(future)
                    return

            for _ in range(width):
                send()
            for future in under_way:
                yield (*places.pop(future.key), self._result(future))
                future.release()
                send()

    def _client(self, dask: Any) -> Any:
        try:
            return dask.Client(self._address, timeout=_CONNECTING, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(f"--dask {self._address}: {error}") from error

    def _result(self, future: Any) -> Rows:
        try:
            rows: Rows = future.result()
            return rows
        except OnnxEvalError:
            raise
        except Exception as error:  # what the cluster raises where it gives a block up
            raise ResourceLimitError(f"the cluster gave up: {error}", hint="--resume goes on") from error


class _Task:
    """The work without its items, and a name by which a worker knows that it has the model already."""

    def __init__(self, work: Work) -> None:
        self.work = replace(work, model=_travelling(work.model), items={})
        model = self.work.model if isinstance(self.work.model, bytes) else self.work.model.encode()
        self.key = f"{hashlib.sha256(model).hexdigest()} {work.fast_math}"


def _travelling(model: str | bytes) -> str | bytes:
    """The model's bytes; its path where weights lie beside it or are too large, and the machines share the files."""
    if isinstance(model, bytes) or Path(model).stat().st_size > _LARGEST:
        return model
    loaded = parse_model(model)
    return model if has_external_data(loaded) else loaded.proto.SerializeToString()


_TASKS: dict[str, _Task] = {}


@cache
def _model(key: str) -> Model:
    task = _TASKS[key]
    for path in task.work.kernels:
        load_file(path)
    return load(task.work.model, fast_math=task.work.fast_math)


def _run(task: _Task, inputs: Rows, start: int) -> Rows:
    """A block, on a worker."""
    _TASKS.setdefault(task.key, task)
    with np.errstate(all="ignore"):
        return run_rows(_model(task.key), task.work, inputs, start)

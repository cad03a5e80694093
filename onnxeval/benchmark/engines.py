"""What is measured: an engine loads a model once and runs it on the same inputs again and again.

Each lives in a process of its own (`workers`), so it imports what it needs itself, and the clock runs meanwhile.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any

#: The engine that this package is.
OURS = "onnxeval"


@dataclass(frozen=True, slots=True)
class Start:
    """What it took to the first result, in seconds.

    ``load`` is the way from the file to ready, ``compile`` the part of it that is no reading, where that is known.
    """

    version: str
    imports: float
    load: float
    compile: float | None
    first_run: float
    outputs: Mapping[str, Any]


class Engine(ABC):
    """One engine, one model, one set of inputs."""

    def start(
        self, model: str, feeds: bytes, threads: int, kernels: Sequence[str] = (), fast_math: bool = False
    ) -> Start:
        """Import, load the model at this path, and run it once on the pickled feeds.

        ``kernels`` are files of operators; they and ``fast_math`` are for the engine of this package.
        """
        self._kernels = kernels
        self._fast_math = fast_math
        begin = perf_counter()
        version = self._import()
        imported = perf_counter()
        self._feeds: dict[str, Any] = pickle.loads(feeds)
        given = perf_counter()
        compiled = self._load(model, threads)
        loaded = perf_counter()
        outputs = self.run()
        return Start(version, imported - begin, loaded - given, compiled, perf_counter() - loaded, outputs)

    def turn(self, seconds: float, lead_in: bool) -> list[float]:
        """The seconds of each run, of as many as start within ``seconds``, at least one.

        With ``lead_in`` one more goes before, unmeasured: it finds the caches as the last engine left them.
        """
        if lead_in:
            self.run()
        took = []
        end = perf_counter() + seconds
        while True:
            begin = perf_counter()
            self.run()
            now = perf_counter()
            took.append(now - begin)
            if now >= end:
                return took

    @abstractmethod
    def _import(self) -> str:
        """Import the engine; its version."""

    @abstractmethod
    def _load(self, model: str, threads: int) -> float | None:
        """Make the model ready to run; the seconds of compiling alone, where they can be told apart."""

    @abstractmethod
    def run(self) -> dict[str, Any]:
        """The outputs by name."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step's own time over all profiled runs; ``path`` holds the labels from the outermost graph."""

    path: tuple[str, ...]
    operator: str
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """Where ``runs`` runs spent ``seconds``: in steps, the rest between them."""

    runs: int
    seconds: float
    steps: tuple[StepTime, ...]


class OnnxEval(Engine):
    """The engine of this package."""

    def _import(self) -> str:
        import_module("onnxeval.model")
        import onnxeval

        return onnxeval.__version__

    def _load(self, model: str, _threads: int) -> float:  # the environment of the process has set the threads
        import onnxeval
        from onnxeval.plugins import load_file

        for path in self._kernels:
            load_file(path)
        self._model = onnxeval.load(model, fast_math=self._fast_math)
        begin = perf_counter()
        self._model.plan(None, self._feeds)
        return perf_counter() - begin

    def run(self) -> dict[str, Any]:
        return self._model.run(self._feeds)

    def profile(self, seconds: float) -> ProfileReport:
        """Where the time goes, over the runs that start within ``seconds``."""
        from onnxeval.observe import Profile

        observer, runs, taken = Profile(), 0, 0.0
        while not runs or taken < seconds:
            begin = perf_counter()
            self._model.run(self._feeds, observer=observer)
            taken += perf_counter() - begin
            runs += 1
        steps = [StepTime(path, timing.operator, timing.calls, timing.own_seconds) for path, timing in observer]
        return ProfileReport(runs, taken, tuple(steps))


class Reference(Engine):
    """The ReferenceEvaluator that comes with onnx."""

    def _import(self) -> str:
        import_module("onnx.reference")
        return str(import_module("onnx").__version__)

    def _load(self, model: str, _threads: int) -> None:
        self._session = import_module("onnx.reference").ReferenceEvaluator(model)

    def run(self) -> dict[str, Any]:
        return dict(zip(self._session.output_names, self._session.run(None, self._feeds), strict=True))


class OnnxRuntime(Engine):
    """onnxruntime on the CPU, with all of its optimisations."""

    def _import(self) -> str:
        return str(import_module("onnxruntime").__version__)

    def _load(self, model: str, threads: int) -> None:
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._names = [output.name for output in self._session.get_outputs()]

    def run(self) -> dict[str, Any]:
        return dict(zip(self._names, self._session.run(None, self._feeds), strict=True))


ENGINES: dict[str, type[Engine]] = {OURS: OnnxEval, "onnxruntime": OnnxRuntime, "reference": Reference}

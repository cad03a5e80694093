"""Measure a model: engines in processes of their own take turns, so that what disturbs the machine disturbs all."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from onnxeval.benchmark.cold import Cold, Stopwatch, others_command, own_command
from onnxeval.benchmark.differences import Difference, differences
from onnxeval.benchmark.engines import ENGINES, OURS, ProfileReport, Start
from onnxeval.benchmark.machine import Bystanders
from onnxeval.benchmark.workers import EngineFailed, Worker
from onnxeval.errors import MissingExtra, OnnxEvalError
from onnxeval.threads import available, wanted
from onnxeval.values import EmptyOptional, Value

#: Engine -> the package and the extra that bring it.
_EXTRAS = {"onnxruntime": "compare"}
_TURNS = 10
_LEAST_TURNS = 3
_PAUSE = 0.05  # seconds: the threads of the engine before spin that long at most
_WARM_UP = 0.1  # of the time


def _threads() -> int:
    return wanted() or available()


@dataclass(frozen=True, slots=True)
class Setting:
    """How to measure.

    ``threads`` for each engine, by default those asked for or one for each processor; ``seconds`` of runs for each;
    ``cold`` whole processes of each at most, in about as many seconds; ``kernels`` are files for
    `onnxeval.plugins.load_file`. ``fast_math`` is for the engine of this package.
    """

    threads: int = field(default_factory=_threads)
    seconds: float = 2.0
    cold: int = 3
    profile: bool = False
    kernels: tuple[str, ...] = ()
    fast_math: bool = False


@dataclass(slots=True)
class Measured:
    """One engine. ``turns`` holds the seconds of each run, by turn; ``failure`` says why there are no more figures."""

    engine: str
    fast_math: bool = False
    start: Start | None = None
    turns: list[list[float]] = field(default_factory=list)
    peak_memory: int | None = None
    cold: Cold = field(default_factory=Cold)
    differences: list[Difference] = field(default_factory=list)
    failure: str = ""

    @property
    def runs(self) -> list[float]:
        """The seconds of all runs, the shortest first."""
        return sorted(seconds for turn in self.turns for seconds in turn)

    def percentile(self, percent: float) -> float:
        """The seconds that so many percent of the runs do not exceed."""
        runs = self.runs
        return runs[min(int(len(runs) * percent / 100), len(runs) - 1)]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times the other engine's time one takes: the median over the turns, the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> Ratio | None:
        """Of the times of turns, taken in pairs; None without any."""
        ratios = [one / other for one, other in zip(ours, theirs, strict=False)]
        return cls(median(ratios), min(ratios), max(ratios)) if ratios else None

    @classmethod
    def warm(cls, ours: Measured, theirs: Measured) -> Ratio | None:
        """Of the medians of the turns that both had."""
        return cls.of(list(map(median, ours.turns)), list(map(median, theirs.turns)))

    @classmethod
    def cold(cls, ours: Measured, theirs: Measured) -> Ratio | None:
        """Of whole processes."""
        return cls.of(ours.cold.seconds, theirs.cold.seconds)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything measured; this package is the first of the engines.

    ``others`` is the number of processors that other processes kept busy meanwhile, None where nobody knows.
    """

    setting: Setting
    others: float | None
    engines: tuple[Measured, ...]
    profile: ProfileReport | None


def require(engines: Sequence[str]) -> None:
    """Raises MissingExtra for an engine that is not installed."""
    for engine in engines:
        if engine in _EXTRAS and find_spec(engine) is None:
            raise MissingExtra(f"the engine {engine}", _EXTRAS[engine])


def measure(
    model: str | Path,
    feeds: Mapping[str, Value],
    others: Sequence[str] = (),
    setting: Setting | None = None,
    *,
    feeds_path: str | None = None,
    model_for_others: str | Path | None = None,
) -> Report:
    """Measure the model of a file, with feeds that `onnxeval.model.Model.run` takes, and other engines beside it.

    Whole processes read the feeds from ``feeds_path``, a file or folder that ``onnxeval run --input`` reads; without
    it they are left out, unless there are no feeds. Other engines read ``model_for_others``, where that is given.

    What other engines raise is their ``failure``. Raises MissingExtra for an engine that is not installed, and what
    loading and running the model raise.
    """
    require(others)
    chosen = setting or Setting()
    bystanders = Bystanders()
    paths = {engine: str(model_for_others or model) for engine in others} | {OURS: str(model)}
    engines = (Measured(OURS, chosen.fast_math), *map(Measured, dict.fromkeys(others)))
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(measured.engine, chosen.threads)) for measured in engines]
        pickled = pickle.dumps({name: _plain(value) for name, value in feeds.items()})
        session = _Session(list(zip(engines, workers, strict=True)), chosen)
        session.start(paths, pickled)
        session.take_turns()
        profile = workers[0].call("profile", chosen.seconds / 2) if chosen.profile else None
    for measured in engines[1:]:
        if engines[0].start is not None and measured.start is not None:
            measured.differences = differences(engines[0].start.outputs, measured.start.outputs)
    if chosen.cold and (feeds_path is not None or not feeds):
        _time_cold(engines, paths, feeds_path, pickled, chosen)
    return Report(chosen, bystanders.processors(), engines, profile)


class _Session:
    """Engines that still stand, each with its worker."""

    def __init__(self, standing: list[tuple[Measured, Worker]], setting: Setting) -> None:
        self._standing = standing
        self._setting = setting

    def _call(self, method: str, *arguments: Any) -> list[tuple[Measured, Any]]:
        """Call all, one after the other; who fails is out."""
        answers = []
        for measured, worker in list(self._standing):
            if len(self._standing) > 1:
                sleep(_PAUSE)
            with _Failing(measured) as failing:
                answers.append((measured, worker.call(method, *arguments)))
            if failing.failed:
                self._standing.remove((measured, worker))
        return answers

    def start(self, paths: Mapping[str, str], feeds: bytes) -> None:
        for measured, worker in list(self._standing):
            with _Failing(measured) as failing:
                chosen = self._setting
                path = paths[measured.engine]
                measured.start = worker.call("start", path, feeds, chosen.threads, chosen.kernels, measured.fast_math)
            if failing.failed:
                self._standing.remove((measured, worker))

    def take_turns(self) -> None:
        budget = self._setting.seconds
        slowest = max((m.start.first_run for m, _ in self._standing if m.start is not None), default=0.0)
        if slowest < budget * _WARM_UP:
            self._call("turn", budget * _WARM_UP, False)
        lead_in = slowest < budget / _TURNS
        longest = 0.0
        for turn in range(_TURNS):
            if turn >= _LEAST_TURNS and longest >= budget:
                break
            took = self._call("turn", budget / _TURNS, lead_in)
            longest += max(sum(runs) for _, runs in took)
            for measured, runs in took:
                measured.turns.append(runs)
        for measured, peak in self._call("peak_memory"):
            measured.peak_memory = peak


class _Failing:
    """Turns what another engine raises into its ``failure``; what this package raises stays what it is."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self.failed = False

    def __enter__(self) -> _Failing:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if not isinstance(error, (EngineFailed, OnnxEvalError)):
            return False
        if self._measured.engine == OURS:
            if isinstance(error, EngineFailed):
                raise RuntimeError(f"{error}\n{error.details}".rstrip()) from None
            return False
        self._measured.failure = str(error)
        self.failed = True
        return True


def _time_cold(
    engines: Sequence[Measured], paths: Mapping[str, str], feeds_path: str | None, feeds: bytes, setting: Setting
) -> None:
    """Whole processes in turns, those of engines that could run the model."""
    with tempfile.TemporaryDirectory(prefix="onnxeval-") as folder, Stopwatch(setting.threads) as stopwatch:
        pickled = Path(folder) / "feeds.pickle"
        pickled.write_bytes(feeds)
        standing = [measured for measured in engines if not measured.failure]
        begin = perf_counter()
        for turn in range(setting.cold):
            if turn and perf_counter() - begin > setting.seconds * len(engines):
                break
            for measured in list(standing):
                path = paths[measured.engine]
                command = (
                    own_command(path, feeds_path, setting.kernels, fast_math=measured.fast_math)
                    if measured.engine == OURS
                    else others_command(measured.engine, path, str(pickled), setting.threads)
                )
                with _Failing(measured) as failing:
                    stopwatch.time(command, measured.cold)
                if failing.failed:
                    standing.remove(measured)


def _plain(value: Value) -> Value:
    """The value without classes of this package, which other engines' processes do not load."""
    if isinstance(value, EmptyOptional):
        return None
    return [_plain(item) for item in value] if isinstance(value, list) else value


def engine_names() -> list[str]:
    """The engines that can be measured beside this package."""
    return [name for name in ENGINES if name != OURS]

"""Turns, ratios, failures: with engines in this process, but for a test of the processes themselves."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from onnxeval.benchmark import measuring
from onnxeval.benchmark.cold import Cold, Stopwatch
from onnxeval.benchmark.engines import ENGINES
from onnxeval.benchmark.measuring import Measured, Ratio, Setting, measure
from onnxeval.benchmark.workers import EngineFailed, Worker
from onnxeval.errors import InputError, MissingExtra

SAMPLES = Path(__file__).parents[2] / "sample_models"
DIGITS = SAMPLES / "digits" / "model.onnx"
FEEDS = {"picture": np.load(SAMPLES / "digits" / "digit_7.npy")}
QUICK = Setting(threads=1, seconds=0.02, cold=0)


class Here:
    """A worker that is no process."""

    calls: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, engine: str, threads: int) -> None:
        self.name, self.engine = engine, ENGINES[engine]()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def call(self, method: str, *arguments):
        self.calls.append((self.name, method))
        return 1 if method == "peak_memory" else getattr(self.engine, method)(*arguments)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(measuring, "Worker", Here)
    monkeypatch.setattr(measuring, "_PAUSE", 0)
    monkeypatch.setattr(Here, "calls", [])
    return Here


def test_engines_take_turns(here):
    report = measure(DIGITS, FEEDS, ["reference"], QUICK)
    ours, theirs = report.engines
    assert (ours.engine, theirs.engine) == ("onnxeval", "reference")
    assert 3 <= len(ours.turns) == len(theirs.turns) <= 10
    turns = [name for name, method in here.calls if method == "turn"]
    assert turns[:4] == ["onnxeval", "reference", "onnxeval", "reference"]
    assert {d.name: d.largest for d in theirs.differences}.keys() == {"class", "probabilities"}
    assert all(d.relative < 1e-5 for d in theirs.differences)
    assert ours.runs == sorted(ours.runs)
    assert ours.percentile(0) == ours.runs[0] <= ours.percentile(50) <= ours.percentile(100) == ours.runs[-1]
    assert report.profile is None


def test_a_profile_only_where_it_is_asked_for(here):
    report = measure(DIGITS, FEEDS, [], Setting(threads=1, seconds=0.01, cold=0, profile=True))
    assert report.profile is not None
    assert report.profile.runs >= 1


def test_another_engine_that_fails_is_out_and_says_why(here, monkeypatch):
    def broken(self):
        raise EngineFailed("it broke")

    monkeypatch.setattr(ENGINES["reference"], "run", broken)
    ours, theirs = measure(DIGITS, FEEDS, ["reference"], QUICK).engines
    assert ours.turns
    assert theirs.failure == "it broke"
    assert (theirs.turns, theirs.differences) == ([], [])
    assert Ratio.warm(ours, theirs) is None


def test_our_own_errors_are_raised(here, monkeypatch):
    with pytest.raises(InputError):
        measure(DIGITS, {"picture": FEEDS["picture"][0]}, ["reference"], QUICK)

    def broken(self):
        raise EngineFailed("KeyError: 'a bug'", "Traceback: somewhere")

    monkeypatch.setattr(ENGINES["onnxeval"], "run", broken)
    with pytest.raises(RuntimeError, match="a bug'\nTraceback: somewhere"):
        measure(DIGITS, FEEDS, [], QUICK)


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(measuring, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="the engine onnxruntime needs the extra `compare`"):
        measure(DIGITS, FEEDS, ["onnxruntime"], QUICK)


def test_ratios_are_those_of_turns():
    ours = Measured("onnxeval", turns=[[2, 2, 9], [4], [3, 3]], cold=Cold([3.0, 1.0]))
    theirs = Measured("reference", turns=[[1], [1], [2]], cold=Cold([1.0]))
    assert Ratio.warm(ours, theirs) == Ratio(2, 1.5, 4)
    assert Ratio.cold(ours, theirs) == Ratio(3, 3, 3)
    assert Ratio.cold(Measured("onnxeval"), theirs) is None


class TestProcesses:
    def test_a_worker_answers_and_ends(self):
        with Worker("onnxeval", 1) as worker:
            assert worker.call("peak_memory") is None or worker.call("peak_memory") > 1_000_000
            with pytest.raises(EngineFailed, match="AttributeError"):
                worker.call("turn", 0.0, False)
        assert worker._process.returncode is not None

    def test_a_worker_that_dies_says_how(self):
        with Worker("onnxeval", 1) as worker:
            worker._process.kill()
            with pytest.raises(EngineFailed, match="the process of onnxeval was ended by signal 9"):
                worker.call("peak_memory")
        with Worker("onnxeval", 1) as worker:
            worker._process.kill()
            worker._process.wait()  # the request finds a closed pipe
            with pytest.raises(EngineFailed, match="the process of onnxeval was ended by signal 9"):
                worker.call("peak_memory")
        assert worker._process.stdout.closed
        with Worker("no such engine", 1) as worker, pytest.raises(EngineFailed, match="ended with exit code 1"):
            worker.call("peak_memory")

    def test_whole_processes(self):
        import sys

        cold = Cold()
        with Stopwatch(1) as stopwatch:
            code = "import os, sys, time; time.sleep(0.01); sys.exit(os.environ['OPENBLAS_NUM_THREADS'] != '1')"
            stopwatch.time([sys.executable, "-c", code], cold)
            assert cold.seconds[0] >= 0.01
            with pytest.raises(EngineFailed, match="as a process: ValueError: no"):
                stopwatch.time([sys.executable, "-c", "raise ValueError('no')"], cold)
        assert len(cold.seconds) == 1
        assert cold.peak_memory is None or cold.peak_memory > 1_000_000

    @pytest.mark.slow
    def test_onnxruntime_beside(self, tmp_path):
        pytest.importorskip("onnxruntime")
        np.save(tmp_path / "picture.npy", FEEDS["picture"])
        setting = Setting(threads=2, seconds=0.2, cold=1)
        report = measure(DIGITS, FEEDS, ["onnxruntime", "reference"], setting, feeds_path=str(tmp_path))
        for measured in report.engines:
            assert not measured.failure
            assert measured.turns
            assert len(measured.cold.seconds) == 1
        assert all(d.relative < 1e-5 for measured in report.engines for d in measured.differences)

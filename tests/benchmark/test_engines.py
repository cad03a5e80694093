"""Engines in this process, and the protocol by which a process of its own is asked."""

import io
import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest

from onnxeval.benchmark import serve
from onnxeval.benchmark.engines import ENGINES, OnnxEval
from onnxeval.benchmark.workers import Worker
from onnxeval.errors import InputError, ModelError

DIGITS = Path(__file__).parents[2] / "sample_models" / "digits"
PICTURE = np.load(DIGITS / "digit_7.npy")
FEEDS = pickle.dumps({"picture": PICTURE})


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_reads_a_seven(name):
    if name == "onnxruntime":
        pytest.importorskip(name)
    engine = ENGINES[name]()
    start = engine.start(str(DIGITS / "model.onnx"), FEEDS, 1)
    assert start.version
    assert start.outputs["class"].tolist() == [7]
    assert start.imports >= 0
    assert start.load >= (start.compile or 0) >= 0
    assert start.first_run > 0
    assert len(engine.turn(0, lead_in=True)) == 1
    assert len(engine.turn(0.01, lead_in=False)) >= 1


def test_a_profile_holds_every_step():
    engine = OnnxEval()
    engine.start(str(DIGITS / "model.onnx"), FEEDS, 1)
    profile = engine.profile(0)
    assert profile.runs == 1
    assert "conv1 (Conv-11)" in {label for step in profile.steps for label in step.path[-1].split(" + ")}
    assert 0 < sum(step.seconds for step in profile.steps) <= profile.seconds


def answers_to(*requests):
    answers = io.BytesIO()
    serve.serve(OnnxEval(), io.BytesIO(b"".join(map(pickle.dumps, requests))), answers)
    answers.seek(0)
    return [pickle.load(answers) for _ in requests]


def test_answers():
    started, turn, peak = answers_to(
        ("start", (str(DIGITS / "model.onnx"), FEEDS, 1)), ("turn", (0, False)), ("peak_memory", ())
    )
    assert started[0] == turn[0] == peak[0] == "done"
    assert started[1].outputs["class"].tolist() == [7]
    assert len(turn[1]) == 1
    assert peak[1] is None or peak[1] > 10_000_000


def test_errors_are_answers(tmp_path):
    missing = ("start", (str(tmp_path / "none.onnx"), FEEDS, 1))
    wrong = ("start", (str(DIGITS / "model.onnx"), pickle.dumps({"picture": PICTURE[0]}), 1))
    (one, error), (other, refusal), (last, details) = answers_to(missing, wrong, ("turn", ("x", False)))
    assert (one, other, last) == ("refused", "refused", "failed")
    assert isinstance(error, ModelError)
    assert isinstance(refusal, InputError)
    assert details[0].startswith("TypeError: ")
    assert "Traceback" in details[1]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_while_a_process_starts_is_left_to_who_started_it():
    with Worker("onnxeval", 1) as worker:
        os.kill(worker._process.pid, signal.SIGINT)
        assert worker.call("peak_memory") > 0

"""Jobs in processes of their own."""

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from onnxeval.comparing import Tolerance
from onnxeval.testing.jobs import Data, Job
from onnxeval.testing.pool import run_jobs
from onnxeval.testing.stored import data_sets_beside, models_in
from onnxeval.testing.suite_jobs import data_at_fault, suite_jobs

_HEAD = '<ir_version: 10, opset_import: ["": 21, "test": 1]>\n'


def model_of(graph: str) -> bytes:
    return onnx.parser.parse_model(_HEAD + graph).SerializeToString()


def job(name: str, graph: str, inputs, expected, **more) -> Job:
    return Job(name, "g", model_of(graph), (Data(inputs, expected),), **more)


ONE = np.ones(1, np.float32)
NEG = "g (float[N] x) => (float[N] y) { y = Neg(x) }"


def test_outcomes():
    crash = "g (float[N] x) => (float[N] y) { y = test.Crash(x) }"
    slow = "g (float[N] x) => (float[N] y) { y = test.Sleep(x) }"
    product = "g (float[N] x, float[M] z) => (float[N] y) { y = MatMul(x, z) }"
    jobs = [
        job("right", NEG, [ONE], [-ONE]),
        job("wrong", NEG, [ONE], [ONE]),
        job("near", NEG, [ONE], [-ONE * np.float32(1.01)], tolerance=Tolerance(rtol=0.1)),
        job("another type", NEG, [ONE], [-ONE.astype(np.float64)]),
        job("too many", NEG, [ONE], [-ONE, ONE]),
        job("impossible", product, [ONE, np.ones(2, np.float32)], [ONE]),
        job("no model", NEG, [ONE], [-ONE]),
        job("crash", crash, [ONE], [ONE]),
        job("form alone", NEG, [ONE], [ONE], only_form=True),
        job("known", NEG, [ONE], [ONE], known="the data is wrong"),
        job("known, but passes", NEG, [ONE], [-ONE], known="the data is wrong"),
        job("slow", slow, [ONE], [ONE]),
        job("the last", NEG, [ONE], [-ONE]),
    ]
    jobs[6] = Job("no model", "g", b"nonsense", jobs[6].data)
    kernels = Path("kernels.py")
    kernels.write_text(
        "import os, time, onnxeval\n"
        '@onnxeval.op("Crash", domain="test", versions=(1,))\n'
        "def crash(x): os.abort()\n"
        '@onnxeval.op("Sleep", domain="test", versions=(1,))\n'
        "def sleep(x): time.sleep(60)\n"
    )
    found = {o.job.name: o for o in run_jobs(jobs, "onnxeval", 2, timeout=20, kernels=[str(kernels.absolute())])}
    assert {name: outcome.status for name, outcome in found.items()} == {
        "right": "passed",
        "wrong": "failed",
        "near": "passed",
        "another type": "failed",
        "too many": "failed",
        "impossible": "error",
        "no model": "error",
        "crash": "crashed",
        "form alone": "passed",
        "known": "known",
        "known, but passes": "failed",
        "slow": "crashed",
        "the last": "passed",
    }
    assert "y differs in 1 of 1 elements, by 2 at most" in found["wrong"].message
    assert "signal 6" in found["crash"].message
    assert "took longer than 20 seconds" in found["slow"].message
    assert "float64" in found["another type"].message


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_models_and_their_data_are_found(with_data, tmp_path):
    first = with_data("zoo/a/model.onnx", [([[1]], [[2]]), ([[3]], [[6]])])
    second = with_data("zoo/b/deep/model.onnx", [([[1]], [[2]])])
    with_data("zoo/.hidden/model.onnx", [])
    np.savez(second.parent / "test_data_10.npz", inputs=np.ones((1, 3)), outputs=np.ones((1, 3)))
    assert list(models_in(tmp_path / "zoo")) == [first, second]
    assert [Path(p).name for p in data_sets_beside(first)] == ["test_data_set_0", "test_data_set_1"]
    assert [Path(p).name for p in data_sets_beside(second)] == ["test_data_set_0", "test_data_10.npz"]


def test_the_cases_of_the_suite_are_those_that_pytest_runs():
    from onnxeval.suite import load_cases

    jobs = suite_jobs("onnxeval")
    assert [job.name for job in jobs] == [case.name for case in load_cases()]
    assert {job.name for job in jobs if job.known} == set(data_at_fault())
    assert not any(job.known for job in suite_jobs("reference", ["test_roi*"]))
    groups = {job.name: job.group for job in jobs}
    assert groups["test_clip_example_expanded"] == groups["test_clip_example"] == "Clip"
    assert groups["test_squeezenet"] == "real"


@pytest.mark.slow
def test_the_whole_suite():
    from collections import Counter

    found = Counter(outcome.status for outcome in run_jobs(suite_jobs("onnxeval"), "onnxeval", 2))
    assert found == {"passed": found.total() - len(data_at_fault()), "known": len(data_at_fault())}


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "least"), [("reference", 2000), ("onnxruntime", 1680)])
def test_other_engines_run_it(engine, least):
    pytest.importorskip(engine if engine != "reference" else "onnx")
    light = [job for job in suite_jobs(engine) if job.group != "real"]
    outcomes = list(run_jobs(light, engine, 2))
    assert len(outcomes) == len(light)
    assert least <= sum(outcome.status == "passed" for outcome in outcomes) < len(light)

"""Runs that take too long: what gives them up, and where they were."""

import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import onnx.parser
import pytest

import onnxeval
from onnxeval.errors import ResourceLimitError

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers of POSIX")

LOOP = """<ir_version: 10, opset_import: ["": 21]>
g (int64 x) => (int64 y) <int64 trips = {%s}, bool yes = {1}, int64 one = {1}> {
    [around] y = Loop (trips, yes, x) <body = b (int64 i, bool go, int64 before) => (bool go_on, int64 after) {
        [grow] after = Add(before, one)
        go_on = Identity(go)
    }>
}"""


@pytest.fixture
def endless(tmp_path):
    path = tmp_path / "endless.onnx"
    onnx.save(onnx.parser.parse_model(LOOP % 2**62), path)
    return path


@pytest.mark.parametrize("more", [(), ("--reference",), ("--carry", "y=x", "--steps", "3")])
def test_a_loop_without_end_is_given_up(shell, endless, more):
    start = time.monotonic()
    result = shell("run", endless, "-i", "1", "--timeout", "0.2", *more)
    assert result.exit_code == 7
    assert result.stdout == ""
    assert "error: gave up after 0.2 s" in result.stderr
    assert time.monotonic() - start < 30
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_is_in_time_is_as_ever(shell, model):
    before = signal.getsignal(signal.SIGALRM)
    result = shell("run", model("scalar"), "-i", "1", "--timeout", "100")
    assert (result.exit_code, result.stdout) == (0, shell("run", model("scalar"), "-i", "1").stdout)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == before


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_the_seconds_are_those_of_the_whole_batch(shell, endless, tmp_path, jobs):
    onnx.save(onnx.parser.parse_model(LOOP % 2000), tmp_path / "slow.onnx")
    np.save("many.npy", np.zeros(20_000, np.int64))
    batch = ("run", "slow.onnx", "-i", "many.npy", "--each", "--save", "out.npy", *jobs)
    result = shell(*batch, "--timeout", "0.5")
    assert result.exit_code == 7
    assert "error: gave up after 0.5 s" in result.stderr
    assert not (tmp_path / "out.npy").exists()


def test_a_time_takes_the_place_of_the_bound_of_nodes(monkeypatch, shell, tmp_path):
    onnx.save(onnx.parser.parse_model(LOOP % 2000), tmp_path / "slow.onnx")
    monkeypatch.setattr(onnxeval.Limits, "__init__", _few_steps(onnxeval.Limits.__init__))
    refused = shell("run", "slow.onnx", "-i", "1")
    assert refused.exit_code == 7
    assert "more than 100 nodes: does a loop never end?" in refused.stderr
    assert "--timeout" in refused.stderr
    assert shell("run", "slow.onnx", "-i", "1", "--timeout", "100").exit_code == 0


def _few_steps(init):
    return lambda self, memory=None, steps=100, seconds=None: init(self, memory, steps, seconds)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon", "inf"])
def test_what_is_no_time(shell, model, seconds):
    assert shell("run", model("scalar"), "-i", "1", "--timeout", seconds).exit_code == 2
    assert shell("test", model("scalar"), "--timeout", seconds).exit_code == 2
    assert shell("bench", model("scalar"), "--seconds", seconds).exit_code == 2


STOPPING = """
import signal
import onnxeval

@onnxeval.op("Stop", domain="com.acme", versions=(1,))
def stop(x):
    signal.raise_signal(signal.%s)
    return x
"""
INNER = LOOP.replace('"": 21', '"": 21, "com.acme": 1').replace("Identity(go)", "com.acme.Stop(go)") % 10


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        ("SIGINT", 130, "error: interrupted in "),
        ("SIGTERM", 130, "error: interrupted in "),
        ("SIGHUP", 130, "error: interrupted in "),
        ("SIGALRM", 7, "error: gave up after 100 s in "),
    ],
)
def test_where_it_was_is_told(tmp_path, number, code, words):
    (tmp_path / "stop.py").write_text(STOPPING % number)
    onnx.save(onnx.parser.parse_model(INNER), tmp_path / "stop.onnx")
    command = [sys.executable, "-m", "onnxeval", "run", "stop.onnx", "-i", "1", "--ops", "stop.py", "--timeout", "100"]
    heeding = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    for more in ([], ["--reference"]):
        done = subprocess.run(
            [*command, *more], preexec_fn=heeding, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == code, done.stderr
        assert done.stderr.strip() == f"{words}around (Loop-21) > node 1 (Stop-1)"


LOSING = """
import time
import onnxeval

class Finalised:
    def __del__(self):
        time.sleep(60)

held = [Finalised()]

@onnxeval.op("Stop", domain="com.acme", versions=(1,))
def stop(x):
    held.clear()
    return x
"""


def test_what_is_lost_in_a_finaliser_is_said_again(tmp_path):
    (tmp_path / "lose.py").write_text(LOSING)
    endless = INNER.replace("trips = {10}", f"trips = {{{2**62}}}")
    onnx.save(onnx.parser.parse_model(endless), tmp_path / "lose.onnx")
    command = [sys.executable, "-m", "onnxeval", "run", "lose.onnx", "-i", "1", "--ops", "lose.py", "--timeout", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 7, done.stderr
    assert "Exception ignored in" in done.stderr
    assert "error: gave up after 1 s in around (Loop-21)" in done.stderr


def test_limits_in_python(endless):
    with pytest.raises(ResourceLimitError, match="takes more than"):
        onnxeval.load(endless).run({"x": np.array(1)}, limits=onnxeval.Limits(steps=None, seconds=0.2))

"""Inputs larger than memory, and a cluster that loses a worker: ``pytest -m slow tests/batches``."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

_ITEM = (512, 512)  # a megabyte of float32
_COUNT = 20 * 1024
_MEAN = """g (float[512, 512] x) => (float m, float[512] r) <int64[1] one = {1}>
    { m = ReduceMean<keepdims = 0>(x)  r = ReduceMax<keepdims = 0>(x, one) }"""


@pytest.fixture
def sparse(tmp_path):
    """A file of 20 GB, of which a few rows hold something."""
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        header = {"shape": (_COUNT, *_ITEM), "fortran_order": False, "descr": "<f4"}
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        file.truncate(start + _COUNT * 4 * 512 * 512)
        for place in range(0, _COUNT, 1000):
            file.seek(start + place * 4 * 512 * 512)
            file.write(np.full(_ITEM, place + 1, np.float32).tobytes())
    assert path.stat().st_size > 20 * 2**30
    yield path
    path.unlink()


def test_20_gigabytes_in_half_a_gigabyte_of_memory_and_killed_half_way(sparse, model, kill_half_way, tmp_path):
    path = model(_MEAN)
    command = [sys.executable, "-m", "onnxeval", "run", str(path), "-i", "x.npy", "--each", "--save", "whole"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert before * 1024 < 500e6, "another child took more before: run this test alone"
    assert most < 500e6
    means = np.load(tmp_path / "whole" / "m.npy")
    wanted = np.zeros(_COUNT, np.float32)
    wanted[::1000] = np.arange(0, _COUNT, 1000) + 1
    np.testing.assert_array_equal(means, wanted)
    again = ["run", path, "-i", "x.npy", "--each", "--save", "again"]
    kill_half_way(*again, done=tmp_path / "again" / ".onnxeval-each.done")
    resumed = subprocess.run(
        [sys.executable, "-m", "onnxeval", *map(str, again), "--resume"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stderr
    for name in ("m.npy", "r.npy"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_cluster_of_two_workers_of_which_one_is_killed(model, outside, tmp_path):
    distributed = pytest.importorskip("distributed")
    count = 600
    path = model("g (float[3] x) => (float[3] y) { y = test.Slow(x) }")
    (tmp_path / "slow.py").write_text(
        "import time, onnxeval\n"
        '@onnxeval.op("Slow", domain="test", versions=(1,))\n'
        "def slow(x):\n"
        "    time.sleep(0.02)\n"
        "    return -x\n"
    )
    x = np.random.default_rng(0).random((count, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        command = ["run", path, "--ops", tmp_path / "slow.py", "-i", "x.npy", "--each", "--save", "y.npy"]
        process = subprocess.Popen(
            [sys.executable, "-m", "onnxeval", *map(str, command), "--dask", cluster.scheduler_address],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        done = tmp_path / ".y.npy.onnxeval-each.done"
        end = time.monotonic() + 120
        while time.monotonic() < end and not (done.exists() and done.read_bytes().count(1) > 2):
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()
        victim = next(iter(cluster.workers.values()))
        os.kill(victim.pid, 9)
        _, told = process.communicate(timeout=240)
        assert process.returncode == 0, told
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), -x)
    assert Path(done).exists() is False


def test_a_cluster_that_is_not_there(model, outside, tmp_path):
    pytest.importorskip("distributed")
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    path = model("g (float[3] x) => (float[3] y) { y = Neg(x) }")
    result = outside("run", path, "-i", "x.npy", "--each", "--save", "y.npy", "--dask", "tcp://127.0.0.1:9")
    assert result.returncode == 5
    assert "tcp://127.0.0.1:9" in result.stderr

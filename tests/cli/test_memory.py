"""A process that takes more memory than there is gets an error, not the system's axe."""

import functools
import importlib
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

from onnxeval_cli.memory import kept_to_memory, memory_left

MIB = 2**20


def system(folder: Path, *, meminfo: str = "MemAvailable: 4096 kB\nSwapFree: 1024 kB\n", **group: str) -> Path:
    """A folder that looks like the root of a system."""
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/status").write_text("Name:\nVmData:\t   2048 kB\n")
    (folder / "proc/meminfo").write_text(f"MemTotal: 9999 kB\n\n{meminfo}")
    (folder / "sys/fs/cgroup").mkdir(parents=True)
    for name, text in group.items():
        (folder / "sys/fs/cgroup" / name.replace("_", ".")).write_text(text)
    return folder


STAT = "anon 5\nactive_file 100\ninactive_file 20\n"


@pytest.mark.parametrize(
    ("group", "left"),
    [
        ({}, 5 * MIB),
        ({"memory_max": "max\n", "memory_current": "7\n", "memory_stat": STAT}, 5 * MIB),
        ({"memory_max": "1000\n", "memory_current": "700\n", "memory_stat": STAT}, 420),
        ({"memory_max": "1000\n", "memory_current": "1700\n", "memory_stat": STAT}, 0),
        ({"memory_max": "1000\n", "memory_current": "1700\n", "memory_stat": "anon 3"}, 5 * MIB),
    ],
)
def test_what_is_left(tmp_path, group, left):
    assert memory_left(system(tmp_path, **group)) == left


def test_nothing_tells(tmp_path):
    assert memory_left(tmp_path) is None
    assert memory_left(system(tmp_path, meminfo="")) is None
    with kept_to_memory(tmp_path):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_the_limit_is_put_back(tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    with kept_to_memory(system(tmp_path, meminfo=f"MemAvailable: {2**40} kB\nSwapFree: 0 kB")):
        assert resource.getrlimit(resource.RLIMIT_DATA) == (2**50 + 2 * MIB, before[1])
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_loop_that_doubles_what_it_carries(shell, tmp_path, monkeypatch):
    """With 256 MiB, the least that a process gets, for all that is left."""
    text = """<ir_version: 10, opset_import: ["": 21]> g (int64 n, float[K] x) => (float[M] y) {
        one = Constant<value_int = 1>() t = Cast<to = 9>(one)
        y = Loop(n, t, x) <body = b (int64 i, bool k, float[J] s) => (bool k2, float[L] s2) {
            k2 = Identity(k) s2 = Concat<axis = 0>(s, s)}>}"""
    onnx.save(onnx.parser.parse_model(text), "double.onnx")
    little = system(tmp_path, meminfo="MemAvailable: 1 kB\nSwapFree: 0 kB")
    (little / "proc/self/status").write_text(Path("/proc/self/status").read_text())
    module = importlib.import_module("onnxeval_cli.run")
    monkeypatch.setattr(module, "kept_to_memory", functools.partial(kept_to_memory, little))
    result = shell("run", "double.onnx", "-i", "n=64", "-i", "x=[1]")
    assert result.exit_code == 7
    assert "not enough memory" in result.stderr

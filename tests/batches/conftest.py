"""Models to run on many items."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest
from click.testing import CliRunner

from onnxeval_cli.main import main

_HEAD = '<ir_version: 10, opset_import: ["": 21, "test": 1]>\n'


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def model(tmp_path) -> Callable[[str], Path]:
    def write(graph: str) -> Path:
        path = tmp_path / "model.onnx"
        onnx.save(onnx.parser.parse_model(_HEAD + graph), path)
        return path

    return write


@pytest.fixture
def outside(tmp_path):
    """The command line in a process of its own."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "onnxeval", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def kill_half_way(tmp_path):
    """Run a command, end it without a warning when half of its blocks are done; how many were done then."""

    def run(*arguments: object, done: Path) -> int:
        command = [sys.executable, "-m", "onnxeval", *map(str, arguments)]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 300
        try:
            while time.monotonic() < end and process.poll() is None:
                marks = done.read_bytes() if done.exists() else b""
                if marks and marks.count(1) * 2 >= len(marks):
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    return done.read_bytes().count(1)
                time.sleep(0.01)
            raise AssertionError(f"it was not there to be killed: {process.communicate()[1]}")
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    return run

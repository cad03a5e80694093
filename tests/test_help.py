"""Every example in the help of every command runs, in a folder with the files that it names."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from click.testing import CliRunner

from onnxeval.files import write
from onnxeval_cli.main import COMMANDS, main

#: What an example needs that a test cannot count on, or too much time.
_LEFT_OUT = {
    "--suite": "minutes",
    "onnxruntime": "an extra",
    "--vs": "another process for many seconds",
}
_HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
#: The models of `run`, `inspect` and `bench` have an open size, that of the others has none.
_OPEN = "g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }"
_MODELS = {
    "run": """g (float[N, 3] x, bool mask) => (float[N, 3] y) <bool mask = {1}, float[1, 3] w = {1, 1, 1}>
        { my_conv = Mul(x, w)  zero = Sub(x, x)  y = Where(mask, my_conv, zero) }""",
    "extract": """g (float[N, 3] x, bool mask) => (float[N, 3] y) <bool mask = {1}, float[1, 3] w = {1, 1, 1}>
        { my_conv = Mul(x, w)  zero = Sub(x, x)  y = Where(mask, my_conv, zero) }""",
    "inspect": _OPEN,
    "bench": _OPEN,
    "": "g (float[1, 3] x) => (float[1, 3] y) { y = Relu(x) }",
}


def examples(command):
    """The lines of the examples; two blanks end an example, a comment follows."""
    arguments = [command, "--help"] if command else ["--help"]
    text = CliRunner().invoke(main, arguments, terminal_width=200).stdout
    block = re.search(r"^  Examples:\n((?:    .*\n)+)", text, re.MULTILINE)
    assert block, f"the help of {command} has no examples"
    return [re.split(r"  +", line.strip())[0] for line in block[1].splitlines()]


CASES = [(command, line) for command in ("", *COMMANDS) for line in examples(command)]


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """A folder with all files that examples name."""
    monkeypatch.chdir(tmp_path)

    def fill(command):
        proto = onnx.parser.parse_model(_HEAD + _MODELS.get(command, _MODELS[""]))
        for folder in ("", "models", "zoo"):
            Path(folder).mkdir(exist_ok=True)
            onnx.save(proto, Path(folder) / "model.onnx")
            write(str(Path(folder) / "test_data_set_0") + "/*.pb", {"input_0": ROW, "output_0": ROW})
        onnx.save(proto, "a.onnx")
        onnx.save(proto, "b.onnx")
        np.save("x.npy", ROW if command != "apply" else np.arange(32, dtype=np.float32).reshape(1, 4, 2, 4))
        np.save("y.npy", ROW)
        np.save("many.npy", np.stack([ROW] * 4))
        Path("many").mkdir()
        for number in range(3):
            np.save(f"many/{number}.npy", ROW)
        np.savetxt("y.csv", ROW, delimiter=",")
        np.savez("feeds.npz", x=ROW)
        np.savez("inputs.npz", x=ROW)
        np.savez("in.npz", x=ROW)
        np.savez("out.npz", y=ROW)
        write("out.json", {"y": ROW})
        Path("mine.py").write_text("")
        if importlib.util.find_spec("PIL"):
            write("photo.png", {"photo": np.zeros((4, 4, 3), np.uint8)})
            from PIL import Image

            Image.open("photo.png").save("photo.jpg")

    return fill


ROW = np.array([[1, 2, 3]], np.float32)


@pytest.mark.parametrize(("command", "line"), CASES, ids=lambda value: value or "onnxeval")
def test_example(command, line, workshop):
    reason = next((reason for word, reason in _LEFT_OUT.items() if word in line), "")
    if reason:
        pytest.skip(reason)
    if "photo" in line:
        pytest.importorskip("PIL")
    workshop(command)
    plain = line.partition(" | jq ")[0]
    if re.search(r"[|>]", plain):
        scripts = Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", plain], env=environment, capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return
    result = CliRunner().invoke(main, shlex.split(plain)[1:])
    assert result.exit_code == 0, result.output

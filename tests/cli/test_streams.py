"""Standard streams that are closed, full or read by nobody, and text that would move a terminal's cursor."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from onnxeval_cli.screen import visible

pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams of POSIX")

ONNXEVAL = f"{shlex.quote(sys.executable)} -m onnxeval"


def bash(line: str) -> subprocess.CompletedProcess[str]:
    """What a line of bash does; ``onnxeval`` in it is ours."""
    line = f'set -o pipefail; onnxeval() {{ {ONNXEVAL} "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "what", ["run {relu} -i '[[1, 2, 3]]'", "ops", "check {relu}", "--help", "run --help", "--version"]
)
def test_standard_output_is_full_or_closed_or_not_read(model, what):
    command = what.format(relu=model("relu"))
    for line in (f"onnxeval {command} > /dev/full", f"onnxeval {command} >&-"):
        result = bash(line)
        assert result.returncode == 8, result.stderr
        assert result.stderr.startswith("error: cannot write to standard output")
        assert "Traceback" not in result.stderr
    result = bash(f"onnxeval {command} | true; exit ${{PIPESTATUS[0]}}")
    assert result.returncode in (0, 8)
    assert result.stderr == ""


@pytest.mark.parametrize("stderr", ["2> /dev/full", "2>&-", "> /dev/full 2> /dev/full", ">&- 2>&- <&-"])
def test_an_error_that_nobody_can_be_told_keeps_its_exit_code(stderr):
    assert bash(f"onnxeval run nothing.onnx {stderr}").returncode == 3


def test_standard_input_is_closed(model):
    result = bash(f"onnxeval run {model('relu')} -i - <&-")
    assert (result.returncode, result.stderr) == (5, "error: standard input holds nothing\n")


def test_the_current_folder_is_gone(model):
    for path in (model("relu"), "relu.onnx"):
        result = bash(f"mkdir gone; cd gone; rmdir ../gone; onnxeval check {path}")
        assert result.returncode in (0, 3)
        assert "Traceback" not in result.stderr


NAME = "\x1b[31mred\x1b[0m\u202e\n\x9b"


def test_names_do_not_reach_the_terminal_as_commands(shell, tmp_path):
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Neg", ["x"], [NAME])]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, [1])], [info(NAME, TensorProto.FLOAT, [1])])
    path = tmp_path / "red.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    shown = r"\x1b[31mred\x1b[0m\u202e\n\x9b"
    assert shell("run", path, "-i", "[1]").stdout.startswith(f"{shown}  float32[1]")
    assert r"saved \x1b[31mred\x1b[0m\u202e" in shell("run", path, "-i", "[1]", "--save", "y.npz").stderr
    result = shell("run", Path(f"{NAME}.onnx"))
    assert (
        result.stderr == r"error: cannot read the model \x1b[31mred\x1b[0m\u202e"
        "\n"
        r"\x9b.onnx: No such file or directory"
        "\n"
    )


def test_what_is_visible_stays_as_it_is():
    assert visible("naïve 日本 \\x1b 👩‍🚀") == "naïve 日本 \\x1b 👩‍🚀"
    assert visible("a\tb\r\0\x7f\u2066") == r"a\tb\r\x00\x7f\u2066"

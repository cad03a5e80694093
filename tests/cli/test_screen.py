"""A terminal gets colours and its own width, everything else plain text."""

import os
import subprocess
import sys

import onnx
import pytest

from onnxeval_cli.screen import Screen, screen

pytestmark = pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")


def on_a_terminal(*arguments, code=0, **environment) -> str:
    """What the command line writes to a terminal of 80 columns."""
    import pty

    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "onnxeval", *map(str, arguments)],
        stdout=theirs,
        stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "", **environment},
    )
    os.close(theirs)
    written = b""
    try:
        while data := os.read(ours, 4096):
            written += data
    except OSError:
        pass  # how Linux reports that the other side was closed
    os.close(ours)
    assert child.wait(timeout=60) == code, written
    return written.decode().replace("\r\n", "\n")


def test_colours_on_a_terminal(model):
    text = on_a_terminal("run", model("relu"), "-i", "[[1, NaN, 3]]")
    assert "\x1b[1my\x1b[0m" in text
    assert "\x1b[1;31mNaN" in text


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(model, environment):
    text = on_a_terminal("run", model("relu"), "-i", "[[1, NaN, 3]]", **environment)
    assert text == "y  float32[1, 3]  1 to 3, 1 NaN\n  1  NaN  3\n"
    assert "\x1b" not in on_a_terminal("run", "nothing.onnx", code=3, **environment)


def test_the_width_of_the_terminal(model):
    text = on_a_terminal("run", model("int64"), "-i", str([10**9] * 30), NO_COLOR="1")
    assert max(map(len, text.splitlines())) in range(70, 81)


def test_statistics_on_a_narrow_terminal(model):
    arguments = ("run", model("two"), "-i", "x=[[0.123456789, 2e-20, -3.3e20]]", "-i", "b=[0, 0, NaN]", "--stats")
    text = on_a_terminal(*arguments, "-o", "*", NO_COLOR="1")
    assert max(map(len, text.splitlines())) <= 80
    assert "  histogram\n" in text
    assert "\nweights   float32[3]\n" in text


def test_costs_on_a_narrow_terminal(model, tmp_path):
    proto = onnx.load(model("two"))
    for node in proto.graph.node:
        node.name = f"/encoder/layers.0/attention/projection/{node.op_type}"
    onnx.save(proto, tmp_path / "named.onnx")
    text = on_a_terminal("inspect", tmp_path / "named.onnx", "--cost", NO_COLOR="1")
    assert max(map(len, text.splitlines())) in range(70, 81)
    assert "/projection/Mul  Mul-14" in text


def test_without_a_terminal():
    assert screen() == Screen(width=100, terminal=False, styled=False)

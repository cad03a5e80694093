"""A terminal gets colours and its own width, everything else plain text."""

import os
import subprocess
import sys
from itertools import pairwise

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxeval_cli.screen import Screen, screen, show

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


def shown(line, width, capsys):
    capsys.readouterr()
    show([line], Screen(width, terminal=True))
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("  error  one two three four five six", ["  error  one two", "         three four", "         five six"]),
        ("0 a (Relu-14)  x -> y float32[N, 3]", ["0 a (Relu-14)  x ->", "    y float32[N, 3]"]),
        ("    one two three four five", ["    one two three", "        four five"]),
        ("name  a/very/long/name/without/blanks", ["name", "      a/very/long/name/without/blanks"]),
        ("just as long as it is", ["just as long as it", "    is"]),
    ],
)
def test_a_long_line_goes_on_below_its_last_column(text, lines, capsys):
    assert shown([(text, "")], 20, capsys).splitlines() == lines


@given(spans=st.lists(st.text("ab  ,", max_size=12), max_size=12), width=st.integers(20, 40))
def test_a_long_line_loses_no_word_and_no_style(spans, width):
    from onnxeval_cli.screen import _fitted

    line = [(text, str(place)) for place, text in enumerate(spans)]
    parts = list(_fitted(line, width))
    before = [(letter, style) for text, style in line for letter in text if letter != " "]
    assert [(letter, style) for part in parts for text, style in part for letter in text if letter != " "] == before
    texts = ["".join(text for text, _ in part) for part in parts]
    assert " ".join(texts).split() == "".join(spans).split()
    assert all(len(text.rstrip()) <= width or len(text.split()) == 1 for text in texts)


def test_a_tree_and_findings_on_a_narrow_terminal(tmp_path):
    names = [f"encoder/layers/{number}/attention/output/projection" for number in range(4)]
    nodes = [onnx.helper.make_node("Neg", [a], [b], name=f"/{b}/Neg") for a, b in pairwise(names)]
    info = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in (names[0], names[-1])]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", info[:1], info[1:])), "long.onnx")
    for arguments in (("inspect", "long.onnx", "--tree"), ("check", "long.onnx")):
        text = on_a_terminal(*arguments, NO_COLOR="1")
        assert max(map(len, text.splitlines())) <= 80, text


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

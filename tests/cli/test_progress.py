"""A progress bar: on a terminal alone, and only after a while."""

import io
import sys
import time

import pytest

from onnxeval_cli import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    def put(stream):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        return stream

    return put


def worked_through(items, pause):
    for item in progress.tracked(items, len(items)):
        time.sleep(pause)
        yield item


def test_no_terminal_no_bar(stderr, monkeypatch):
    stream = stderr(io.StringIO())
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    assert list(worked_through(["a", "b"], 0.1)) == ["a", "b"]
    assert stream.getvalue() == ""


def test_no_bar_where_it_is_quick(stderr):
    stream = stderr(Terminal())
    assert list(worked_through(["a", "b"], 0)) == ["a", "b"]
    assert stream.getvalue() == ""


@pytest.mark.parametrize("items", [["a.onnx", "b[1].onnx"], ["alone.onnx"]])
def test_a_bar_where_it_takes_long(stderr, monkeypatch, items):
    stream = stderr(Terminal())
    monkeypatch.setattr(progress, "_DELAY", 0.01)
    assert list(worked_through(items, 0.3)) == items
    for item in items:
        assert item in stream.getvalue()


def test_one_thing_that_takes_long(stderr, monkeypatch):
    stream = stderr(Terminal())
    monkeypatch.setattr(progress, "_DELAY", 0.01)
    with progress.waiting("loading alone.onnx"):
        time.sleep(0.3)
    assert "loading alone.onnx" in stream.getvalue()


def test_the_bar_goes_when_the_work_fails(stderr, monkeypatch):
    stderr(Terminal())
    monkeypatch.setattr(progress, "_DELAY", 0.01)
    with pytest.raises(ZeroDivisionError):
        [1 / len(item) for item in worked_through(["a", ""], 0.1)]

"""Who else is busy."""

import time

import pytest

from onnxeval.benchmark import machine


def test_facts():
    facts = machine.facts()
    assert facts["processors"] >= 1
    assert facts["processor"]


def test_own_work_and_that_of_children_is_not_others(monkeypatch):
    busy, own = iter([100.0, 107.0]), iter([10.0, 14.0])
    monkeypatch.setattr(machine, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(machine, "_own_seconds", lambda: next(own))
    clock = iter([0.0, 2.0])
    monkeypatch.setattr(machine, "perf_counter", lambda: next(clock))
    assert machine.Bystanders().processors() == pytest.approx(1.5)


def test_what_the_system_says_is_plausible():
    bystanders = machine.Bystanders()
    time.sleep(0.01)
    others = bystanders.processors()
    assert others is None or others >= 0


def test_a_system_that_does_not_tell(monkeypatch):
    monkeypatch.setattr(machine, "_busy_seconds", lambda: None)
    assert machine.Bystanders().processors() is None

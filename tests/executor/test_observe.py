"""What observers see: every step, where it stands, with the time that is its own."""

import time

import numpy as np
import onnx.parser
import pytest

import onnxeval
from onnxeval.errors import NodeError
from onnxeval.observe import Profile, Timing

HEADER = '<ir_version: 10, opset_import: ["": 21, "own": 1]>'
LOOP = (
    HEADER
    + """
g (float[2] x, int64 trips) => (float[2] y) <bool yes = {1}> {
    a = Neg (x)
    [count] y = Loop (trips, yes, a) <body = body (int64 i, bool go, float[2] v) => (bool go_on, float[2] w) {
        go_on = Identity (go)
        [grow] w = Add (v, x)
    }>
}"""
)
FEEDS = {"x": np.array([1, 2], np.float32), "trips": np.array(3)}


def load(text: str) -> onnxeval.Model:
    return onnxeval.load(onnx.parser.parse_model(text))


def test_steps_of_sub_graphs_are_seen_under_the_step_around_them() -> None:
    model, profile = load(LOOP), Profile()
    for _ in range(2):
        assert model.run(FEEDS, reference=True, observer=profile)["y"].tolist() == [2, 4]
    calls = {path: timing.calls for path, timing in profile}
    assert calls == {
        ("node 0 (Neg-13)",): 2,
        ("count (Loop-21)",): 2,
        ("count (Loop-21)", "node 0 (Identity-21)"): 6,
        ("count (Loop-21)", "grow (Add-14)"): 6,
    }


def test_steps_of_functions_are_seen() -> None:
    model = load(
        HEADER
        + """g (float[2] x) => (float[2] y) { [call] y = own.Twice (x) }
        <domain: "own", opset_import: ["": 21]> Twice (a) => (b) { [sum] b = Add (a, a) }"""
    )
    profile = Profile()
    model.run({"x": FEEDS["x"]}, reference=True, observer=profile)
    assert [path for path, _ in profile] == [("call (Twice)",), ("call (Twice)", "sum (Add-14)")]


def test_own_time_leaves_out_what_is_inside() -> None:
    profile = Profile()
    outer = load(LOOP).plan(reference=True).steps[1]
    inner = load(LOOP).plan(reference=True).steps[0]

    def run_step(step, values, run):
        if step is outer:
            timed(inner, values, run)
        else:
            time.sleep(0.02)
        return ()

    timed = profile(run_step)
    timed(outer, {}, None)
    (_, whole), (_, part) = profile
    assert whole.seconds == profile.seconds >= part.seconds >= 0.02
    assert whole.own_seconds == pytest.approx(whole.seconds - part.seconds)
    assert part.own_seconds == part.seconds


def test_a_step_that_fails_is_left_again() -> None:
    profile = Profile()
    model = load(HEADER + "g (float[2] x, int64[1] i) => (float[N] y) { a = Neg (x) y = Gather (a, i) }")
    with pytest.raises(NodeError):
        model.run({"x": FEEDS["x"], "i": np.array([5])}, reference=True, observer=profile)
    good = load(LOOP)
    good.run(FEEDS, reference=True, observer=profile)
    assert ("count (Loop-21)",) in dict(profile)


@pytest.mark.parametrize(
    ("label", "operator"),
    [
        ("conv1 (Conv-11)", "Conv-11"),
        ("conv1 (Conv-11) + relu (Relu-6)", "Conv-11 + Relu-6"),
        ("layer(1) + (2) x (Add-14)", "Add-14"),
        ("call (Twice)", "Twice"),
        ("bare", "bare"),
    ],
)
def test_the_operator_of_a_label(label: str, operator: str) -> None:
    assert Timing(label).operator == operator

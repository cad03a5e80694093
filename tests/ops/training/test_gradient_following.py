"""Gradients through functions, function bodies and control flow, and Gradient nodes inside these."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from ops.training.differences import DOMAIN, Case, check, differences, gradient, model_of

import onnxeval
from onnxeval.limits import Limits

RNG = np.random.default_rng(6)
node = helper.make_node


def normal(*shape):
    return RNG.normal(size=shape)


def graph(text: str) -> onnx.GraphProto:
    return onnx.parser.parse_graph(text)


def function(name, inputs, outputs, nodes) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_function("local", name, inputs, outputs, nodes, imports)


SQUARE = function("Square", ["a"], ["b"], [node("Mul", ["a", "a"], ["b"])])
FOURTH = function(
    "Fourth",
    ["a"],
    ["b", "unused"],
    [
        node("Square", ["a"], ["s"], domain="local"),
        node("Square", ["s"], ["b"], domain="local"),
        node("Neg", ["s"], ["unused"]),
    ],
)


def test_functions_are_followed() -> None:
    nodes = [
        node("Fourth", ["x"], ["y"], domain="local"),
        gradient("x", "y", ["g"]),
        gradient("x", "g", ["h"]),
    ]
    got = model_of(nodes, ["x"], ["g", "h"], functions=[SQUARE, FOURTH], opset=20).run({"x": np.array(2.0)})
    assert (got["g"], got["h"]) == (32, 48)


def test_a_failure_inside_a_function_is_located() -> None:
    fails = function("Fails", ["a"], ["b"], [node("Det", ["a"], ["b"])])
    nodes = [node("Fails", ["x"], ["y"], domain="local", name="call"), gradient("x", "y", ["g"])]
    model = model_of(nodes, ["x"], ["g"], functions=[fails], opset=20)
    with pytest.raises(onnxeval.NodeError, match=r"gradient \(Gradient-1\) > call \(Fails\) > node 0 \(Det-11\)"):
        model.run({"x": np.ones(2)})


def test_a_function_may_hold_a_gradient() -> None:
    slope = function("Slope", ["a"], ["g"], [node("Exp", ["a"], ["e"]), gradient("a", "e", ["g"])])
    nodes = [node("Slope", ["x"], ["s"], domain="local"), gradient("x", "s", ["h"])]
    got = model_of(nodes, ["x"], ["s", "h"], functions=[slope], opset=20).run({"x": np.array(1.0)})
    np.testing.assert_allclose([got["s"], got["h"]], np.e)


@pytest.mark.parametrize(
    "case",
    [
        Case("Attention", [normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)], rtol=1e-5),
        Case("Attention", [normal(1, 3, 4)] * 3, {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1}, rtol=1e-5),
        Case("AffineGrid", [normal(2, 2, 3), np.array([2, 1, 3, 4])]),
        Case("Range", [np.array(0.3), np.array(3.3), np.array(0.7)], fixed=(1,)),
    ],
    ids=str,
)
def test_operators_without_a_rule_are_followed_into_their_function_body(case: Case) -> None:
    check(case)


BRANCHES = {
    "then_branch": graph("t () => (double[2] r) { r = Mul (x, x) }"),
    "else_branch": graph("e () => (double[2] r) { r = Sin (x) }"),
}


@pytest.mark.parametrize(("condition", "slope"), [(True, lambda x: 2 * x), (False, np.cos)])
def test_the_branch_that_was_taken(condition, slope) -> None:
    nodes = [node("If", ["c"], ["y"], **BRANCHES), gradient("x", "y", ["g"], zs="c")]
    x = normal(2)
    got = model_of(nodes, ["x", "c"], ["g"]).run({"x": x, "c": np.array(condition)})
    np.testing.assert_allclose(got["g"], slope(x))


def test_a_branch_may_hold_a_gradient() -> None:
    """It captures what its part of the graph needs, though nothing else in the branch reads it."""
    then = graph("t () => (double[2] r) { a = Exp (x) y = Mul (a, k) }")
    then.node.append(gradient(["a"], "y", ["r"], inputs=["x"]))
    branches = {"then_branch": then, "else_branch": graph("e () => (double[2] r) { r = Neg (x) }")}
    model = model_of([node("If", ["c"], ["y"], **branches)], ["x", "k", "c"], ["y"])
    feeds = {"x": normal(2), "k": np.array([3.0, 4.0]), "c": np.array(True)}
    assert model.run(feeds)["y"].tolist() == [3, 4]


LOOP = graph(
    """body (int64 i, bool c, double[2] a, double[2] b) => (bool d, double[2] s, double[2] p, double[2] row) {
        d = Identity (c)
        s = Add (b, x)
        p = Mul (a, x)
        row = Sin (p)
    }"""
)
SCAN = graph(
    """body (double[2] s, double[2] e, double f) => (double[2] t, double[2] row) {
        m = Mul (s, e)
        t = Add (m, f)
        row = Mul (t, k)
    }"""
)


@pytest.mark.parametrize("outputs", [["a", "b", "rows"], ["a", "", ""], ["", "", "rows"]])
def test_loops(outputs) -> None:
    names = [name for name in outputs if name]
    weights = {"wa": normal(2), "wb": normal(2), "wrows": normal(3, 2)}
    nodes = [
        node("Loop", ["n", "", "u", "x"], outputs, body=LOOP),
        *(node("Mul", [name, f"w{name}"], [f"y{name}"]) for name in names),
        *(node("ReduceSum", [f"y{name}"], [f"s{name}"], keepdims=0) for name in names),
        node("Sum", [f"s{name}" for name in names], ["y"]),
        gradient("ux", "y", ["du", "dx"], zs="n"),
        node("ReduceSumSquare", ["dx"], ["z"], keepdims=0),
        gradient("ux", "z", ["", "ddx"], zs="n"),
    ]
    feeds = {"n": np.array(3), "u": normal(2), "x": normal(2)}
    model = model_of(nodes, [*feeds], ["du", "dx", "ddx"], weights)
    _assert_slopes(model, feeds, {"du": ("y", "u"), "dx": ("y", "x"), "ddx": ("z", "x")})


def test_a_loop_of_no_iterations() -> None:
    nodes = [node("Loop", ["n", "", "x", "x"], ["a", "b", "rows"], body=LOOP), gradient("x", "a", ["g"], zs="n")]
    assert model_of(nodes, ["n", "x"], ["g"]).run({"n": np.array(0), "x": normal(2)})["g"].tolist() == [1, 1]


def test_a_loop_that_never_ends_is_stopped() -> None:
    nodes = [node("Loop", ["", "c", "x", "x"], ["a", "b", "rows"], body=LOOP), gradient("x", "a", ["g"], zs="c")]
    model = model_of(nodes, ["c", "x"], ["g"])
    with pytest.raises(onnxeval.ResourceLimitError, match="more than 500 nodes"):
        model.run({"c": np.array(True), "x": np.ones(2)}, limits=Limits(steps=500))


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scan_input_directions": [1, 0], "scan_output_directions": [1]},
        {"scan_input_axes": [1, -1], "scan_output_axes": [1]},
    ],
)
def test_scans(attributes) -> None:
    nodes = [
        node("Scan", ["s", "e", "f"], ["last", "rows"], body=SCAN, num_scan_inputs=2, **attributes),
        node("Mul", ["rows", "w"], ["weighted"]),
        node("ReduceSum", ["weighted"], ["total"], keepdims=0),
        node("ReduceSum", ["last"], ["sum"], keepdims=0),
        node("Mul", ["total", "sum"], ["y"]),
        gradient("sefk", "y", ["ds", "de", "df", "dk"]),
        node("ReduceSumSquare", ["de"], ["z"], keepdims=0),
        gradient("sefk", "z", ["", "dde", "ddf"]),
    ]
    feeds = {"s": normal(2), "e": normal(3, 2), "f": normal(3), "k": normal(2)}
    weights = {"w": normal(3, 2)}
    if "scan_input_axes" in attributes:
        feeds["e"], weights["w"] = normal(2, 3), normal(2, 3)
    outputs = {"ds": ("y", "s"), "de": ("y", "e"), "df": ("y", "f"), "dk": ("y", "k")}
    outputs |= {"dde": ("z", "e"), "ddf": ("z", "f")}
    _assert_slopes(model_of(nodes, [*feeds], [*outputs], weights), feeds, outputs)


def test_version_8_of_scan_has_no_derivative() -> None:
    body = graph("body (double s, double e) => (double t, double r) { t = Add (s, e) r = Neg (t) }")
    nodes = [node("Scan", ["", "s", "e"], ["t", "r"], body=body, num_scan_inputs=1), gradient("se", "r", ["g"])]
    with pytest.raises(onnxeval.NodeError, match=r"\(Scan-8\) has no derivative here"):
        model_of(nodes, ["s", "e"], ["g"], opset=8).run({"s": normal(2), "e": normal(2, 3)})


def test_a_loop_may_hold_a_gradient() -> None:
    """Newton's method for the root of x² - k."""
    body = graph("body (int64 i, bool c, double x) => (bool d, double v) { d = Identity (c) }")
    body.node.extend(
        [
            node("Mul", ["x", "x"], ["s"]),
            node("Sub", ["s", "k"], ["f"]),
            gradient(["x"], "f", ["g"], zs=["k"]),
            node("Div", ["f", "g"], ["q"]),
            node("Sub", ["x", "q"], ["v"]),
        ]
    )
    nodes = [node("Loop", ["n", "", "k"], ["root"], body=body), gradient("k", "root", ["h"], zs="n")]
    got = model_of(nodes, ["n", "k"], ["root", "h"]).run({"n": np.array(8), "k": np.array(2.0)})
    np.testing.assert_allclose(got["root"], np.sqrt(2))
    np.testing.assert_allclose(got["h"], 1 / np.sqrt(8))


def _assert_slopes(model, feeds, outputs) -> None:
    got = model.run(feeds)
    for output, (target, name) in outputs.items():
        if output in got:
            slopes = differences(model, feeds, name, target)
            np.testing.assert_allclose(got[output], slopes, rtol=1e-6, atol=1e-7, err_msg=output)

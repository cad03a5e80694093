"""What loops carry unchanged is read from around them, and everything else stays."""

import numpy as np
import pytest
from onnx import numpy_helper, parser

import onnxeval
from onnxeval.errors import ResourceLimitError
from onnxeval.limits import Limits

W = np.float32([[1, 2], [3, 4]])


def model(body: str, inputs: str = "int64 n, float[2,2] w, float[2] x", outputs: str = "float y", **constants):
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => ({outputs}) {{ {body} }}')
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnxeval.load(proto)


def loops(plan):
    for step in plan.steps:
        if step.schema is not None and step.schema.key.op_type == "Loop":
            yield step
        for body in step.subgraphs.values():
            yield from loops(body)


def check(loaded, carried: list[int], **feeds):
    """How many values each loop carries, outer ones first; and that results are those of the model as it is."""
    assert [len(step.inputs) - 2 for step in loops(loaded.plan())] == carried
    for n in (0, 1, 3):
        given = {"n": np.array(n), "w": W, "x": np.float32([1, -1]), **feeds}
        given = {entry.name: given[entry.name] for entry in loaded.inputs}
        wanted = loaded.run(given, reference=True)
        for _ in range(5):
            for name, value in loaded.run(given).items():
                np.testing.assert_array_equal(value, wanted[name])


LOOP = """y, v = Loop (n, , x, w) <body = b (int64 i, bool c, float[2] a, float[2,2] {name}) =>
    (bool d, float[2] e, float[2,2] {result}) {{ d = Identity (c) e = MatMul ({name}, a) {more} }}>"""


@pytest.mark.parametrize(
    ("name", "result", "more"),
    [
        ("u", "u", ""),  # handed back under the name that it came in
        ("w", "w", ""),  # which hides the same value around the loop
        ("u", "r", "r = Identity (u)"),
        ("u", "r", "s = Identity (u) r = Identity (s)"),
    ],
)
def test_weights_that_are_carried(name, result, more):
    text = LOOP.format(name=name, result=result, more=more)
    check(model(text, outputs="float y, float v"), [1])
    held = model(text, "int64 n, float[2] x", "float y, float v", w=W)
    check(held, [1])
    (loop,) = loops(held.plan())
    assert not loop.subgraphs["body"].captures, "a weight is a constant of the body"


def test_what_changes_is_carried():
    check(model(LOOP.format(name="u", result="r", more="r = Neg (u)")), [2])
    swapped = """y, v = Loop (n, , x, z) <body = b (int64 i, bool c, float[2] p, float[2] q) =>
        (bool d, float[2] q, float[2] p) { d = Identity (c) }> """
    check(model("z = Neg (x)" + swapped, "int64 n, float[2] x", "float y, float v"), [2])


def test_names_of_the_body_that_hide_others():
    text = LOOP.format(name="u", result="u", more="").replace("e = MatMul (u, a)", "w = MatMul (u, a) e = Neg (w)")
    check(model(text, outputs="float y, float v"), [2])


def test_scans_of_what_is_carried():
    text = """y, v, s = Loop (n, , x, w) <body = b (int64 i, bool c, float[2] a, float[2,2] u) =>
        (bool d, float[2] e, float[2,2] u, float[2,2] t) { d = Identity (c) e = MatMul (u, a) t = Identity (u) }>"""
    check(model(text, outputs="float y, float v, float s"), [1])


def test_loops_inside_loops():
    text = """y, v = Loop (n, , x, w) <body = b (int64 i, bool c, float[2] a, float[2,2] u) =>
        (bool d, float[2] e, float[2,2] r) {
            d = Identity (c)
            e, r = Loop (n, , a, u) <body = k (int64 j, bool f, float[2] p, float[2,2] q) =>
                (bool g, float[2] h, float[2,2] q) { g = Identity (f) h = MatMul (q, p) }>
        }>"""
    check(model(text, outputs="float y, float v"), [1, 1])


def test_bodies_inside_may_read_it_by_both_names():
    text = """y, v = Loop (n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] e, float[2] o) {
        d = Identity (c) e = Identity (a)
        r = Loop (n, , a) <body = k (int64 j, bool f, float[2] p) => (bool g, float[2] h) {
            g = Identity (f) s = Mul (p, x) t = Mul (s, a) h = Add (t, x) }>
        l = Cast <to = 9> (i)
        q = If (l) <then_branch = t () => (float[2] t1) { t0 = Add (x, a) t1 = Mul (t0, a) },
                    else_branch = o () => (float[2] t2) { t2 = Sub (a, x) }>
        o = Add (r, q) }>"""
    check(model(text, outputs="float y, float v"), [0, 1])


def test_branches_inside_read_the_same():
    text = """y, v = Loop (n, , x, w) <body = b (int64 i, bool c, float[2] a, float[2,2] u) =>
        (bool d, float[2] e, float[2,2] u) {
            d = Identity (c) l = Cast <to = 9> (i)
            e = If (l) <then_branch = t () => (float[2] p) { p = MatMul (u, a) },
                        else_branch = o () => (float[2] q) { q = Neg (a) }>
        }>"""
    check(model(text, outputs="float y, float v"), [1])


def test_a_loop_that_computes_nothing_runs():
    text = "y = Loop ( , k, x) <body = b (int64 i, bool c, float[2] a) => (bool c, float[2] a) {}>"
    endless = model(text, "float[2] x", k=True)
    for _ in range(5):
        with pytest.raises(ResourceLimitError, match="does a loop never end"):
            endless.run({"x": np.float32([1, 2])}, limits=Limits(steps=1000))


def test_what_does_not_fit_is_for_the_kernel():
    text = "y = Loop (n, , x, w) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] a) { d = Identity (c) }>"
    loaded = model(text)
    texts = []
    for reference in (True, False):
        with pytest.raises(onnxeval.NodeError) as caught:
            loaded.run({"n": np.array(1), "w": W, "x": np.float32([1, 2])}, reference=reference)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]

"""Plans for inputs that come again: what shapes decide is constant, what numbers decide is not."""

import numpy as np
import pytest
from conformance.test_conformance import CASES, KNOWN_FAILURES, RANDOM
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper, parser
from passes.plans import operators

import onnxeval
from onnxeval import adaptive
from onnxeval.passes._shapes import DECIDED_BY_VALUES, LIKE_AN_INPUT


def model(body: str, inputs: str, outputs: str = "float y", constants: dict | None = None) -> onnxeval.Model:
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => ({outputs}) {{ {body} }}')
    for name, value in (constants or {}).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnxeval.load(proto)


def plan_for(loaded: onnxeval.Model, feeds: dict):
    (found,) = loaded._adaptives.values()
    return found._kinds[adaptive.kind_of(feeds)[0]].plan


def same(loaded: onnxeval.Model, feeds: dict, times: int = 4) -> None:
    wanted = loaded.run(feeds, reference=True)
    for _ in range(times):
        for name, value in loaded.run(feeds).items():
            np.testing.assert_allclose(value, wanted[name], rtol=1e-5)


def test_shape_arithmetic_is_done_once():
    body = "s = Shape (x) n = Gather (s, zero) m = Mul (n, two) l = Unsqueeze (m, zeros) y = Reshape (x, l)"
    constants = {"zero": np.array(0), "two": np.array(2), "zeros": np.array([0])}
    loaded = model(body, "float[N,2] x", constants=constants)
    for size in (3, 5, 3, 1):
        same(loaded, {"x": np.arange(2 * size, dtype=np.float32).reshape(size, 2)})
    assert operators(plan_for(loaded, {"x": np.zeros((5, 2), np.float32)})) == ["Reshape"]
    assert len(operators(loaded.plan())) == 5


def test_numbers_decide_what_they_decide():
    body = "i = NonZero (x) s = Shape (i) y = Expand (one, s) z = ReduceSum (x)"
    loaded = model(body, "float[N] x", "float y, float z", {"one": np.float32(1)})
    for x in ([1, 0, 2], [1, 0, 0], [0, 0, 0], [1, 2, 3], [1, 2, 3]):
        same(loaded, {"x": np.float32(x)})


def test_a_shape_that_is_fed():
    loaded = model("y = Reshape (x, s) t = Shape (y)", "float[N] x, int64[R] s", "float y, int64 t")
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, 2], [6, 1], [-1, 2], [3, 2]):
        same(loaded, {"x": x, "s": np.array(shape)})


BRANCH = """y = If (c) <
    then_branch = t () => (float a) {{ a = {one} }},
    else_branch = e () => (float b) {{ b = {other} }}
>"""


def test_a_flag_that_decides_a_branch():
    body = "c = Equal (rate, high) " + BRANCH.format(one="Exp (x)", other="Neg (x)")
    loaded = model(body, "float[N] x, int64 rate", constants={"high": np.array(16000)})
    for rate in (8000, 16000, 8000, 16000):
        feeds = {"x": np.float32([1, 2]), "rate": np.array(rate)}
        same(loaded, feeds)
        assert operators(plan_for(loaded, feeds)) == ["Exp" if rate == 16000 else "Neg"]


def test_branches_inside_branches():
    inner = BRANCH.format(one="Mul (k, x)", other="Sub (k, x)").replace("y = ", "").replace("(c)", "(d)")
    inner = inner.replace("t ()", "t2 ()").replace("e ()", "e2 ()").replace("a)", "a2)").replace("a =", "a2 =")
    inner = inner.replace("b)", "b2)").replace("b =", "b2 =")
    body = "c = Equal (rate, high) y = If (c) < then_branch = t () => (float a) { k = Exp (x) a = " + inner
    body += "}, else_branch = e () => (float b) { b = Neg (x) } >"
    loaded = model(body, "float[N] x, int64 rate, bool[M] d", constants={"high": np.array(16000)})
    for d in (True, False):
        feeds = {"x": np.float32([1, 2]), "rate": np.array(16000), "d": np.array([d])}
        same(loaded, feeds)
    assert operators(plan_for(loaded, feeds)) == ["Exp", "If"]


def test_random_numbers_stay_random():
    loaded = model("s = Shape (x) z = ConstantOfShape (s) r = RandomNormalLike (z) y = Add (r, x)", "float[N] x")
    drawn = [loaded.run({"x": np.zeros(4, np.float32)})["y"].tobytes() for _ in range(5)]
    assert len({*drawn}) == 5


def test_results_that_shapes_decide_are_the_users_own():
    loaded = model("y = Shape (x)", "float[N] x", "int64[R] y")
    for _ in range(4):
        assert loaded.run({"x": np.zeros(4, np.float32)})["y"].tolist() == [4]


def test_only_so_many_are_kept():
    loaded = model("s = Shape (x) y = Reshape (x, s)", "float[N] x")
    for size in (*range(1, 20), 19, 19):
        same(loaded, {"x": np.ones(size, np.float32)}, 1)
    (found,) = loaded._adaptives.values()
    assert len(found._kinds) == 8


def test_inputs_that_never_come_again_are_not_watched():
    loaded = model("s = Shape (x) e = Exp (x) y = Reshape (e, s)", "float[N] x")
    for size in range(1, 30):
        same(loaded, {"x": np.ones(size, np.float32)}, 1)
    (found,) = loaded._adaptives.values()
    assert not next(reversed(found._kinds.values())).types
    same(loaded, {"x": np.ones(29, np.float32)})
    assert operators(plan_for(loaded, {"x": np.ones(29, np.float32)})) == ["Exp", "Reshape"]


def test_values_asked_for_and_sequences():
    loaded = model("s = Shape (x) q = SequenceConstruct (x, x) n = SequenceLength (q) y = Reshape (x, s)", "float[N] x")
    for _ in range(3):
        results = loaded.run({"x": np.ones(3, np.float32)}, ["s", "n", "y", "q"])
        assert results["s"].tolist() == [3]
        assert results["n"] == 2
        assert len(results["q"]) == 2


def test_what_nobody_wants_is_no_absent_input():
    body = "a, , c = LSTM <hidden_size = 2> (x, w, r) b, , d = LSTM <hidden_size = 2> (x, w, r, , , c) y = Add (a, b)"
    constants = {"w": np.ones((1, 8, 3), np.float32), "r": np.ones((1, 8, 2), np.float32)}
    loaded = model(body, "float[S,B,3] x", "float y, float c, float d", constants)
    same(loaded, {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 2, 3)}, 5)


def test_an_error_in_a_plan_for_known_shapes_says_where():
    body = "a = Exp (x) [pick] b = Gather (a, i) y = Neg (b)"
    loaded = model(body, "float[N] x, int64[M] i")
    feeds = {"x": np.ones(3, np.float32), "i": np.array([0, 2])}
    same(loaded, feeds, 5)
    texts = []
    for reference in (True, False):
        with pytest.raises(onnxeval.NodeError) as caught:
            loaded.run({**feeds, "i": np.array([0, 3])}, reference=reference)
        assert isinstance(caught.value.__cause__, ValueError | IndexError)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert texts[0].startswith("pick (Gather-13)\n  inputs: a float32[3], i int64[2]")


@given(st.data())
def test_slices(data):
    axes = data.draw(st.lists(st.sampled_from([0, 1, 2]), unique=True, max_size=3))
    axes = [axis - 3 * data.draw(st.booleans()) for axis in axes]
    bounds = st.one_of(st.integers(-6, 6), st.sampled_from([2**63 - 1, -(2**63), 2**31]))
    starts, ends = ([data.draw(bounds) for _ in axes] for _ in range(2))
    steps = [data.draw(st.sampled_from([1, 2, 5, -1, -2])) for _ in axes]
    constants = {n: np.array(v, np.int64) for n, v in zip("seap", (starts, ends, axes, steps), strict=True)}
    given_axes = data.draw(st.booleans()) or axes != sorted(range(len(axes)))
    loaded = model(f"y = Slice (x, s, e{', a, p' if given_axes else ''})", "float[A,B,C] x", constants=constants)
    same(loaded, {"x": np.arange(60, dtype=np.float32).reshape(3, 4, 5)})


@pytest.mark.parametrize("index", [0, 2, -1, -3])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_element_of_an_axis(index, axis):
    loaded = model(f"y = Gather <axis = {axis}> (x, i)", "float[A,B] x", constants={"i": np.array(index)})
    same(loaded, {"x": np.arange(12, dtype=np.float32).reshape(3, 4)})
    single = model("y = Gather (x, i)", "float[A] x", constants={"i": np.array(index)})
    same(single, {"x": np.arange(3, dtype=np.float32)})


def test_shapes_that_are_mostly_new_are_not_watched():
    """They run from a list of places by element types alone, until one shape comes again and again."""
    loaded = model(
        "z = Shape (x) h = Reshape (x, minus) k = Relu (h) y = Reshape (k, z)",
        "float[A,B] x",
        constants={"minus": np.array([-1])},
    )

    def run(rows):
        x = np.arange(-2.0, 2 * rows - 2, dtype=np.float32).reshape(rows, 2)
        np.testing.assert_array_equal(loaded.run({"x": x})["y"], x.clip(0))

    for place in range(60):
        run(place + 2 if place % 4 else 1)
    (found,) = loaded._adaptives.values()
    assert len(found._tapes) == 1
    assert not any(watched.types for watched in found._kinds.values() if watched.times == 1)
    for _ in range(40):
        run(7)
    assert list(found._kinds.values())[-1].tape is not None
    with pytest.raises(onnxeval.OnnxEvalError):
        loaded.run({"x": np.zeros(3, np.float32)})


def test_element_types_are_checked_where_they_come_first():
    """Of an input whose element type is not declared, while no shape comes again."""
    loaded = model("y = Det (x)", "float[A,A] x", "float y")
    loaded.proto.graph.input[0].type.tensor_type.ClearField("elem_type")
    loaded = onnxeval.load(loaded.proto)
    for size in range(1, 40):
        loaded.run({"x": np.eye(size, dtype=np.float32)})
    for size in (50, 51):
        for reference in (True, False):
            with pytest.raises(onnxeval.OnnxEvalError):
                loaded.run({"x": np.eye(size, dtype=np.int64)}, reference=reference)
        loaded.run({"x": np.eye(size, dtype=np.float32)})


LOOP = """y, s = Loop (n, , x) <body = b (int64 i, bool c, float[N] a) => (bool d, float[N] e, float[M] r) {{
    d = Identity (c) z = Shape (a) t = Gather (z, zero) u = Unsqueeze (t, zeros) f = Cast <to = 1> (i)
    g = Mul (a, f) h = Reshape (g, u) k = Sin (h) {more} }}>"""


def bodies(loaded: onnxeval.Model) -> list[adaptive.AdaptiveBody]:
    (found,) = loaded._adaptives.values()
    tapes = [watched.tape for watched in found._kinds.values() if watched.tape is not None]
    return [body for tape in tapes for step in tape.plan.steps for body in step.subgraphs.values()]


def test_the_body_of_a_loop_adapts():
    constants = {"zero": np.array(0), "zeros": np.array([0])}
    loaded = model(LOOP.format(more="e = Add (k, x) r = Neg (e)"), "int64 n, float[N] x", "float y, float s", constants)
    for size in (3, 5, 3):
        same(loaded, {"n": np.array(6), "x": np.linspace(-1, 1, size, dtype=np.float32)}, 5)
    for body in bodies(loaded):
        (watched,) = body._adaptive._kinds.values()
        assert "Shape" not in operators(watched.plan)
        assert watched.is_replayed


def test_a_body_whose_shapes_change_all_the_time_does_not_adapt():
    loaded = model(
        "y, s = Loop (n, , x) <body = b (int64 i, bool c, float[N] a) => (bool d, float[M] e, float r) {"
        "d = Identity (c) e = Concat <axis = 0> (a, x) r = ReduceSum <keepdims = 0> (e) }>",
        "int64 n, float[N] x",
        "float y, float s",
    )
    same(loaded, {"n": np.array(40), "x": np.ones(2, np.float32)}, 6)
    (body,) = bodies(loaded)
    assert body._changes > 16
    assert not body._adaptive._kinds


def test_what_a_body_gives_is_not_written_over():
    """The rows of a scan, and what one run gave when the next one runs."""
    constants = {"zero": np.array(0), "zeros": np.array([0])}
    loaded = model(LOOP.format(more="e = Add (k, a) r = Exp (e)"), "int64 n, float[N] x", "float y, float s", constants)
    feeds = [{"n": np.array(5), "x": np.float32([1, place])} for place in range(6)]
    results = [loaded.run(each) for each in feeds]
    for each, kept in zip(feeds, results, strict=True):
        for name, value in loaded.run(each, reference=True).items():
            np.testing.assert_allclose(kept[name], value, rtol=1e-5)


def test_an_error_in_a_body_says_where():
    body = "y = Loop (n, , x) <body = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {"
    body += "d = Identity (c) k = Sin (a) [pick] g = Gather (x, i) e = Add (k, g) }>"
    loaded = model(body, "int64 n, float[N] x")
    same(loaded, {"n": np.array(3), "x": np.ones(3, np.float32)}, 5)
    texts = []
    for reference in (True, False):
        with pytest.raises(onnxeval.NodeError) as caught:
            loaded.run({"n": np.array(4), "x": np.ones(3, np.float32)}, reference=reference)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert " > pick (Gather-13)\n  inputs: x float32[3], i int64[] 3" in texts[0]


def test_random_numbers_of_a_body_stay_random():
    body = "y, s = Loop (n, , x) <body = b (int64 i, bool c, float[N] a) => (bool d, float[N] e, float[N] r) {"
    body += "d = Identity (c) r = RandomUniformLike (a) e = Add (a, r) }>"
    loaded = model(body, "int64 n, float[N] x", "float y, float s")
    feeds = {"n": np.array(4), "x": np.zeros(3, np.float32)}
    drawn = {row.tobytes() for _ in range(6) for row in loaded.run(feeds)["s"]}
    assert len(drawn) == 24
    seeded = {loaded.run(feeds, seed=7)["s"].tobytes() for _ in range(3)}
    assert len(seeded) == 1


def shuffled(value, rng):
    return rng.permuted(value.ravel()).reshape(value.shape)


@pytest.mark.parametrize(
    "name", sorted(n for n, c in CASES.items() if c.kind == "node" and n not in RANDOM | KNOWN_FAILURES.keys())
)
def test_shapes_follow_from_shapes_alone(name):
    """Other numbers in every input that is not listed as deciding shapes give results of the same types and shapes."""
    case = CASES[name]
    loaded = onnxeval.load(case.model)
    steps = loaded.plan(reference=True).steps
    inputs, _ = next(case.data_sets)
    if len(steps) != 1 or steps[0].subgraphs or steps[0].schema is None or steps[0].schema.key.domain:
        return
    places = DECIDED_BY_VALUES.get(steps[0].schema.key.op_type, ())
    if places is None or not all(isinstance(value, np.ndarray) for value in inputs):
        return
    rng = np.random.default_rng(0)
    feeds, others = {}, {}
    for entry, value in zip(loaded.inputs, inputs, strict=False):
        feeds[entry.name] = value
        decides = [place for place, read in enumerate(steps[0].inputs) if read == entry.name and place in places]
        others[entry.name] = value if decides else shuffled(value, rng)
    wanted = loaded.run(feeds, reference=True)
    try:
        results = loaded.run(others, reference=True)
    except onnxeval.OnnxEvalError:
        return  # the numbers do not go together
    for one, other in zip(results.values(), wanted.values(), strict=True):
        assert isinstance(one, np.ndarray) == isinstance(other, np.ndarray)
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
    if (place := LIKE_AN_INPUT.get(steps[0].schema.key.op_type)) is not None:
        (one,), like = results.values(), feeds[steps[0].inputs[place]]
        assert (one.dtype, one.shape) == (like.dtype, like.shape)

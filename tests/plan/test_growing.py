"""Plans for inputs of which some grow: the same results as step by step, and as much as can be in one call."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper, parser

import onnxeval
from onnxeval.fast.engine import native
from onnxeval.growing import Fed, common_pattern, fits

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


def model(body: str, inputs: str, outputs: str, constants: dict | None = None) -> onnxeval.Model:
    imports = '"" : 24, "com.microsoft" : 1'
    proto = parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]> g ({inputs}) => ({outputs}) {{ {body} }}")
    for name, value in (constants or {}).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnxeval.load(proto)


def decoder(attention: str) -> onnxeval.Model:
    """Two layers over caches of two heads of 8."""
    rng = np.random.default_rng(0)
    body, constants = "one = Constant <value_int = 1> () last = Constant <value_ints = [1]> ()", {}
    h = "x"
    for layer in range(2):
        for name in "qkvo":
            constants[f"{name}w{layer}"] = (rng.standard_normal((16, 16)) / 4).astype(np.float32)
        made = (
            f"q{layer} = MatMul ({h}, qw{layer}) k{layer} = MatMul ({h}, kw{layer}) v{layer} = MatMul ({h}, vw{layer})"
        )
        body += made + attention.format(n=layer)
        body += f" o{layer} = MatMul (a{layer}, ow{layer}) g{layer} = Sigmoid (o{layer}) h{layer} = Add ({h}, g{layer})"
        h = f"h{layer}"
    body += f" y = Exp ({h})"
    inputs, outputs = "float[B,S,16] x, int64[B,T] mask, float[R] gain", "float y"
    for n in range(2):
        inputs += f", float[B,2,P,8] pk{n}, float[B,2,P,8] pv{n}"
        outputs += f", float nk{n}, float nv{n}"
    return model(body, inputs, outputs, constants)


STANDARD = " a{n}, nk{n}, nv{n} = Attention <q_num_heads = 2, kv_num_heads = 2> (q{n}, k{n}, v{n}, , pk{n}, pv{n})"
GROUPED = (
    " s{n} = Shape (mask) i{n} = Gather (s{n}, one) t{n} = Cast <to = 6> (i{n})"
    " f{n} = ReduceSum <keepdims = 0> (mask, last) d{n} = Sub (f{n}, one) l{n} = Cast <to = 6> (d{n})"
    " a{n}, nk{n}, nv{n} = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 2>"
    " (q{n}, k{n}, v{n}, pk{n}, pv{n}, l{n}, t{n})"
)
SPELLED_OUT = (
    " qs{n} = Reshape (q{n}, whole{n}) qh{n} = Transpose <perm = [0, 2, 1, 3]> (qs{n})"
    " whole{n} = Constant <value_ints = [0, 0, 2, 8]> () flat{n} = Constant <value_ints = [0, 0, 16]> ()"
    " ks{n} = Reshape (k{n}, whole{n}) kh{n} = Transpose <perm = [0, 2, 1, 3]> (ks{n})"
    " vs{n} = Reshape (v{n}, whole{n}) vh{n} = Transpose <perm = [0, 2, 1, 3]> (vs{n})"
    " nk{n} = Concat <axis = 2> (pk{n}, kh{n}) nv{n} = Concat <axis = 2> (pv{n}, vh{n})"
    " kt{n} = Transpose <perm = [0, 1, 3, 2]> (nk{n}) sc{n} = MatMul (qh{n}, kt{n}) w{n} = Softmax (sc{n})"
    " ah{n} = MatMul (w{n}, nv{n}) at{n} = Transpose <perm = [0, 2, 1, 3]> (ah{n}) a{n} = Reshape (at{n}, flat{n})"
)


def tokens(loaded: onnxeval.Model, rows: int, count: int, *, first: int = 3, seed: int = 0) -> None:
    """Run a prompt and tokens, beside the readable path. Results are written over as soon as they were fed."""
    rng = np.random.default_rng(seed)
    past = {name: np.zeros((rows, 2, 0, 8), np.float32) for n in range(2) for name in (f"pk{n}", f"pv{n}")}
    length, new = 0, first
    for _ in range(count):
        length += new
        feeds = {"x": rng.standard_normal((rows, new, 16)).astype(np.float32), "gain": np.ones(3, np.float32), **past}
        feeds["mask"] = np.ones((rows, length), np.int64)
        wanted, got = loaded.run(feeds, reference=True), loaded.run(feeds)
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5)
        for name in past:
            feeds[name][...] = np.nan
            past[name] = got[name.replace("p", "n")]
        got["y"][...] = np.nan
        new = 1


def ready(loaded: onnxeval.Model) -> list:
    (found,) = loaded._adaptives.values()
    return [growing for growing in found._growing.values() if growing.is_ready]


@pytest.mark.parametrize("attention", [STANDARD, GROUPED, SPELLED_OUT])
def test_a_decoder_token_by_token(attention):
    loaded = decoder(attention)
    tokens(loaded, 1, 14)
    tokens(loaded, 1, 9, first=5, seed=1)
    if native() is not None:
        (growing,) = ready(loaded)
        assert growing._replay.misses == 0
        each = 4 if attention == SPELLED_OUT else 1  # Concats of the caches, a Transpose, and attention itself
        of_mask = 2 if attention == GROUPED else 0
        assert sum(entry.row is not None for entry in growing._replay._entries) == 2 * each + of_mask
    tokens(loaded, 2, 12)


COUNTED = "k = Greater (x, zero) c = Compress (x, k) e = Exp (c) f = Neg (e) s = ReduceSum (f) z = Add (past, s)"


def counted() -> onnxeval.Model:
    return model(COUNTED + " y = Exp (f)", "float[N] x, float[P] past", "float y, float z", {"zero": np.float32(0)})


def counted_feeds(positive: int, length: int) -> dict:
    x = np.where(np.arange(6) < positive, 1.5, -1).astype(np.float32)
    return {"x": x, "past": np.linspace(0, 1, length, dtype=np.float32)}


def test_what_is_assumed_is_looked_at(monkeypatch):
    """How many elements are positive is no matter of shapes, though it was the same for long."""
    loaded = counted()
    for length, positive in enumerate([3] * 12 + [4, 3, 2, 3, 0, 6, 6, 3, 3, 5, 3], 2):
        feeds = counted_feeds(positive, length)
        wanted, got = loaded.run(feeds, reference=True), loaded.run(feeds)
        assert got["y"].shape == (positive,)
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5)
        if length == 13 and native() is not None:
            assert len(ready(loaded)) == 1
    assert not ready(loaded)  # it was wrong too often


def test_shapes_that_numbers_decide_become_no_constants():
    body = "k = Greater (x, zero) c = Compress (x, k) s = Shape (c) t = Cast <to = 1> (s) e = Exp (t) f = Neg (e)"
    loaded = model(body + " y = Add (f, past)", "float[N] x, float[P] past", "float y", {"zero": np.float32(0)})
    for length, positive in enumerate([3] * 12 + [4, 3, 2], 2):
        feeds = counted_feeds(positive, length)
        np.testing.assert_allclose(loaded.run(feeds)["y"], feeds["past"] - np.exp(np.float32(positive)), rtol=1e-5)


def test_a_counter_that_is_fed():
    """A single integer is part of a kind: where it is another one each time, it is only a number."""
    loaded = model(
        "c = Cast <to = 1> (step) e = Exp (x) f = Mul (e, c) y = Neg (f)", "float[N] x, int64 step", "float y"
    )
    for step in range(20):
        x = np.linspace(-1, 1, 5, dtype=np.float32)
        np.testing.assert_allclose(loaded.run({"x": x, "step": np.array(step)})["y"], -np.exp(x) * step, rtol=1e-5)
    if native() is not None:
        assert ready(loaded)


def test_results_are_the_users_own():
    body = "e = Exp (x) y = Neg (e) z = Add (past, past) p = Identity (past) c = Shape (x) r = Reshape (e, c)"
    loaded = model(body, "float[N] x, float[P] past", "float y, float z, float p, float r")
    kept = []
    for length in range(2, 24):
        x, past = np.full(4, length, np.float32) / 10, np.arange(length, dtype=np.float32)
        got = loaded.run({"x": x, "past": past.copy()})
        kept.append((got, {"y": -np.exp(x), "z": past + past, "p": past, "r": np.exp(x)}))
    for got, wanted in kept:
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5)


def test_random_numbers_stay_those_of_the_seed():
    body = "r = RandomNormalLike (x) e = Exp (r) y = Neg (e) z = Add (past, past)"
    loaded = model(body, "float[N] x, float[P] past", "float y, float z")
    drawn = set()
    for length in range(2, 20):
        feeds = {"x": np.zeros(4, np.float32), "past": np.ones(length, np.float32)}
        seeded = loaded.run(feeds, seed=7)["y"]
        np.testing.assert_allclose(seeded, loaded.run(feeds, seed=7, reference=True)["y"], rtol=1e-6)
        drawn.add(loaded.run(feeds)["y"].tobytes())
    assert len(drawn) == 18


def test_an_error_says_where():
    body = "e = Exp (x) f = Neg (e) [pick] g = Gather (f, i) y = Exp (g) z = Add (past, past)"
    loaded = model(body, "float[N] x, int64[M] i, float[P] past", "float y, float z")

    def run(index, length):
        feeds = {"x": np.ones(4, np.float32), "i": np.array([index]), "past": np.ones(length, np.float32)}
        return loaded.run(feeds)["y"]

    for length in range(2, 14):
        run(1, length)
    with pytest.raises(onnxeval.NodeError, match="pick"):
        run(4, 14)
    np.testing.assert_allclose(run(3, 15), np.exp(-np.exp(np.float32([1]))), rtol=1e-5)


def test_a_kind_that_comes_again_and_again_has_a_plan_of_its_own():
    loaded = model("e = Exp (x) y = Neg (e) z = Add (past, past)", "float[N] x, float[P] past", "float y, float z")
    for length in (*range(2, 14), *[20] * 8):
        loaded.run({"x": np.ones(4, np.float32), "past": np.ones(length, np.float32)})
    (found,) = loaded._adaptives.values()
    assert next(reversed(found._kinds.values())).tape is not None


def test_several_threads_run_one_model():
    loaded = decoder(STANDARD)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(tokens, loaded, 1, 12, seed=seed) for seed in range(8)]:
            done.result()


def test_bounds_of_a_run_hold():
    loaded = model("e = Exp (x) y = Neg (e) z = Add (past, past)", "float[N] x, float[P] past", "float y, float z")
    for length in range(2, 14):
        loaded.run({"x": np.ones(4, np.float32), "past": np.ones(length, np.float32)})
    feeds = {"x": np.ones(4, np.float32), "past": np.ones(14, np.float32)}
    with pytest.raises(onnxeval.ResourceLimitError):
        loaded.run(feeds, limits=onnxeval.Limits(steps=1))


COUNTING = """
    y, total = Loop (trips, , zeros, none) <body = b (int64 i, bool c, float[60,4] table, float[1] sum) =>
        (bool d, float[60,4] next, float[1] added) {
        at = Reshape (i, one) after = Add (at, one) row = Slice (table, at, after, axis) s = Shape (row)
        v = Expand (half, s) w = Add (row, v) u = Exp (w) r = Range (i, last, step) q = ReduceSum (r)
        f = Cast <to = 1> (q) g = Reshape (f, one) m = ReduceMax <keepdims = 0> (u) n = Reshape (m, one)
        k = Mul (g, n) added = Add (sum, k) next = ScatterElements <axis = 0> (table, index, u)
        d = Identity (c) }>
"""


def counting(rows: int) -> onnxeval.Model:
    constants = {"one": np.array([1]), "axis": np.array([0]), "half": np.float32([[0.5]]), "step": np.array(1)}
    constants |= {"zeros": np.zeros((60, 4), np.float32), "none": np.zeros(1, np.float32), "last": np.array(rows)}
    constants["index"] = np.full((1, 4), 2)
    return model(COUNTING, "int64 trips", "float y, float total", constants)


def test_the_body_of_a_loop_with_a_counter():
    """What is sliced is a row, and what is counted is shorter each time."""
    loaded = counting(61)
    for trips in (5, 60, 60, 20, 60):
        feeds = {"trips": np.array(trips)}
        wanted, got = loaded.run(feeds, reference=True), loaded.run(feeds)
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5)


ROWS = """
    y = Loop (trips, , start) <body = b (int64 i, bool c, float[1,4] x) => (bool d, float[1,4] z) {
        k = Mod (i, many) at = Reshape (k, one) after = Add (at, one) row = Slice (table, at, after, axis)
        s = Shape (row) n = Gather (s, first) m = Cast <to = 1> (n) w = Add (row, x) u = Sigmoid (w) v = Mul (u, m)
        e = Expand (u, s) f = Neg (e) g = Add (f, v) t = Tile (g, ones) p = Exp (t) z = Sin (p) d = Identity (c) }>
"""


@pytest.mark.parametrize("many", [5, 6])
def test_what_numbers_decide_in_a_body_is_assumed_and_looked_at(many):
    """With six places the last one lies outside the table of five rows: nothing is sliced, and nothing broadcasts."""
    constants = {"one": np.array([1]), "axis": np.array([0]), "table": np.linspace(-1, 1, 20, dtype=np.float32)}
    constants["table"] = constants["table"].reshape(5, 4)
    constants |= {"many": np.array(many), "first": np.array(0), "start": np.ones((1, 4), np.float32)}
    constants |= {"ones": np.array([1, 1])}
    loaded = model(ROWS, "int64 trips", "float y", constants)
    for trips in (5, 40, 40, 40, 7):
        feeds = {"trips": np.array(trips)}
        wanted, got = loaded.run(feeds, reference=True)["y"], loaded.run(feeds)["y"]
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)
    if native() is None:
        return
    bodies = [
        body
        for adaptive in loaded._adaptives.values()
        for kind in adaptive._kinds.values()
        for step in (kind.tape.plan.steps if kind.tape else ())
        for body in step.subgraphs.values()
    ]
    kinds = [kind for body in bodies for kind in body._adaptive._kinds.values()]
    if many == 5:
        assert any(kind.assuming is not None and kind.assuming.is_ready for kind in kinds)


def fed(name="x", dtype=F32, shape=(2, 3), value=None):
    return Fed(name, dtype, shape, value)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4),
)
@settings(max_examples=200, deadline=None)
def test_both_fit_what_they_have_in_common(one, other):
    a, b = (tuple(fed(f"x{i}", shape=shape) for i, shape in enumerate(shapes)) for shapes in (one, other))
    common = common_pattern(a, b)
    if common is None:
        assert len(a) != len(b) or a == b or all(x != y for x, y in zip(one, other, strict=True))
    else:
        assert fits(common, a)
        assert fits(common, b)
        assert not fits(common, a[:-1])


def test_what_does_not_fit():
    pattern = common_pattern((fed(), fed("n", I64, (), 3)), (fed(), fed("n", I64, (), 4)))
    assert pattern == (fed(), fed("n", I64, (), None))
    assert fits(pattern, (fed(), fed("n", I64, (), 7)))
    assert not fits(pattern, (fed(shape=(2, 4)), fed("n", I64, (), 7)))
    assert not fits(pattern, (fed(dtype=I64), fed("n", I64, (), 7)))
    assert common_pattern((fed(),), (fed(shape=(2, 3, 4)),)) is None
    assert common_pattern((fed(),), (fed("z"),)) is None
    assert common_pattern((fed(),), (fed(shape=(2, 4)),)) is None  # nothing is known of anything
    grown = common_pattern((fed(), fed("p")), (fed(), fed("p", shape=(2, 4))))
    assert grown == (fed(), fed("p", shape=2))
    assert not fits(grown, (fed(), fed("p", shape=(2, 4, 1))))

"""Runs that are replayed give what the same runs give step by step, whatever numbers come."""

import pickle
import threading

import numpy as np
import pytest
from conformance.test_conformance import CASES, KNOWN_FAILURES, RANDOM, assert_same
from onnx import numpy_helper, parser

import onnxeval
from onnxeval import adaptive
from onnxeval.dtypes import BFLOAT16, is_float
from onnxeval.fast import replayable
from onnxeval.fast.engine import native
from onnxeval.limits import Run
from onnxeval.replay import replay_of
from onnxeval.tape import Tape
from onnxeval.values import TensorType

pytestmark = pytest.mark.skipif(native() is None, reason="the compiled kernels are not built, or turned off")

#: Runs until a plan is specialised and taped; the next ones are replays.
SETTLED = 5


def model(body: str, inputs: str, outputs: str = "float[M,N] y", constants: dict | None = None) -> onnxeval.Model:
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => ({outputs}) {{ {body} }}')
    for name, value in (constants or {}).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnxeval.load(proto)


def replays(loaded: onnxeval.Model) -> list:
    return [kept.replay for each in loaded._adaptives.values() for kept in each._kinds.values() if kept.replay]


def others(value, rng):
    """Other numbers of the same type and shape."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject or not value.size:
        return value
    if value.dtype.kind == "b":
        return rng.integers(0, 2, value.shape).astype(bool)
    if value.dtype.kind in "iu":
        least, most = np.iinfo(value.dtype).min, np.iinfo(value.dtype).max
        drawn = rng.integers(
            max(int(value.min()) - 1, least), min(int(value.max()) + 1, most), value.shape, endpoint=True
        )
        return drawn.astype(value.dtype) if rng.integers(2) else rng.permuted(value.ravel()).reshape(value.shape)
    if is_float(value.dtype) and value.size == 1:
        return (value * rng.choice([0.5, 1.5])).astype(value.dtype)
    return rng.permuted(value.ravel()).reshape(value.shape)


@pytest.mark.parametrize(
    "name", sorted(n for n, c in CASES.items() if c.kind == "node" and n not in RANDOM | KNOWN_FAILURES.keys())
)
def test_other_numbers_replayed(name, monkeypatch):
    """Single integers that decide nothing are numbers like others: their values are no part of the kind."""
    monkeypatch.setattr(adaptive, "_is_decisive", lambda _: False)
    case = CASES[name]
    loaded = onnxeval.load(case.model)
    inputs, wanted = next(case.data_sets)
    feeds = dict(zip([entry.name for entry in loaded.inputs], inputs, strict=False))
    rng = np.random.default_rng(0)
    for _ in range(SETTLED):
        loaded.run(feeds)
    if not replays(loaded):
        return
    for turn in range(6):
        changed = [*feeds] if turn < 3 else [[*feeds][turn % len(feeds)]]
        given = {key: others(value, rng) if key in changed else value for key, value in feeds.items()}
        try:
            expected = loaded.run(given, reference=True)
        except onnxeval.OnnxEvalError:
            with pytest.raises(onnxeval.OnnxEvalError):
                loaded.run(given)
            continue
        for got, other in zip(loaded.run(given).values(), expected.values(), strict=True):
            assert_same(got, other, case)
    for got, other in zip(loaded.run(feeds).values(), wanted, strict=True):
        assert_same(got, other, case)


@pytest.mark.parametrize("width", [3, 30_000], ids=["copied", "a view"])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_a_single_index_that_numbers_decide(axis, width):
    """What it picks lies elsewhere each time."""
    body = f"i = ArgMax <axis = 0, keepdims = 0> (which) g = Gather <axis = {axis}> (x, i) y = Relu (g)"
    loaded = model(body, "float[4] which, float[4,4,W] x", "float[A,B] y")
    x = np.random.default_rng(0).standard_normal((4, 4, width)).astype(np.float32)
    for turn in range(12):
        which = np.zeros(4, np.float32)
        which[turn * 3 % 4] = 1
        got = loaded.run({"which": which, "x": x})["y"]
        np.testing.assert_array_equal(got, x.take(turn * 3 % 4, axis).clip(0))


def test_a_single_index_in_a_loop():
    body = """y, s = Loop (n, , z) <body = b (int64 i, bool c, float[W] a) => (bool d, float[W] e, float[W] r) {
        d = Identity (c) g = Gather (x, i) e = Add (a, g) r = Neg (g) }>"""
    loaded = model(body, "int64 n, float[N,W] x, float[W] z", "float[W] y, float[N,W] s")
    for turn in range(6):
        x = np.random.default_rng(turn).standard_normal((9, 5)).astype(np.float32)
        results = loaded.run({"n": np.array(9), "x": x, "z": np.zeros(5, np.float32)})
        np.testing.assert_allclose(results["y"], x.sum(0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(results["s"], -x)


CHAIN = (
    "p = MatMul (x, w) q = Add (p, c) r = Relu (q) s = Transpose (r) t = Transpose (s) u = Sub (t, x) y = Mul (u, r)"
)


def chain() -> onnxeval.Model:
    rng = np.random.default_rng(1)
    constants = {"w": rng.standard_normal((6, 6)).astype(np.float32), "c": np.float32(range(6))}
    return model(CHAIN, "float[M,N] x", constants=constants)


def test_all_compiled_steps_are_one_call():
    loaded = chain()
    rng = np.random.default_rng(2)
    for _ in range(SETTLED + 3):
        x = rng.standard_normal((4, 6)).astype(np.float32)
        wanted = loaded.run({"x": x}, reference=True)["y"]
        np.testing.assert_allclose(loaded.run({"x": x})["y"], wanted, rtol=1e-5, atol=1e-6)
    (replay,) = replays(loaded)
    assert replay.is_compiled


def test_results_belong_to_the_caller():
    loaded = chain()
    x = np.ones((4, 6), np.float32)
    kept = [loaded.run({"x": x + turn})["y"] for turn in range(SETTLED + 3)]
    for turn, result in enumerate(kept):
        np.testing.assert_allclose(result, loaded.run({"x": x + turn}, reference=True)["y"], rtol=1e-5)
        result[:] = np.nan
    assert np.isfinite(loaded.run({"x": x})["y"]).all()


def test_a_branch_may_hand_on_another_value():
    """What it gives when the replay is made is that value itself, and another branch is taken later.

    Something grows, so that the type of what a branch gives is relied on.
    """
    body = """a = Tan (x) n = Neg (x) m = Exp (n) y = If (c)
        <then_branch = t () => (float[N] p) { p = Identity (x) },
         else_branch = e () => (float[N] q) { q = Identity (a) }>
        u = Add (y, m) v = Add (a, m) s = ReduceSum <keepdims = 0> (z)"""
    loaded = model(body, "float[N] x, bool[1] c, float[K] z", "float[N] u, float[N] v, float s")
    for turn in range(16):
        x = np.linspace(0, 1 + turn % 3, 4, dtype=np.float32)
        feeds = {"x": x, "c": np.array([turn >= 10]), "z": np.ones(turn + 1, np.float32)}
        wanted = loaded.run(feeds, reference=True)
        for name, value in loaded.run(feeds).items():
            np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=1e-5)


def test_sizes_belong_to_the_caller():
    loaded = model("s = Shape (x) y = Neg (x)", "float[3,4] x", "int64[2] s, float[3,4] y")
    for _ in range(SETTLED + 3):
        sizes = loaded.run({"x": np.ones((3, 4), np.float32)})["s"]
        assert sizes.tolist() == [3, 4]
        if sizes.flags.writeable:
            sizes[:] = 9


def test_sequences_belong_to_the_caller():
    proto = """<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (seq(float[N]) y)
               { a = Exp (x) b = Tanh (a) c = Neg (b) d = Relu (a) y = SequenceConstruct (a, c, d) }"""
    loaded = onnxeval.load(parser.parse_model(proto))
    feeds = [{"x": np.full(4, turn, np.float32)} for turn in range(SETTLED + 3)]
    kept = [loaded.run(fed)["y"] for fed in feeds]
    assert replays(loaded)
    for fed, items in zip(feeds, kept, strict=True):
        for item, wanted in zip(items, loaded.run(fed, reference=True)["y"], strict=True):
            np.testing.assert_allclose(item, wanted, rtol=1e-5)


@pytest.mark.parametrize("layout", ["reversed", "transposed", "read-only"])
def test_feeds_lie_in_memory_as_they_like(layout):
    loaded = chain()
    x = np.random.default_rng(3).standard_normal((6, 6)).astype(np.float32)
    for _ in range(SETTLED):
        loaded.run({"x": x})
    other = x[::-1, ::-1] if layout == "reversed" else x.T
    if layout == "read-only":
        other = x.copy()
        other.flags.writeable = False
    wanted = loaded.run({"x": other}, reference=True)["y"]
    np.testing.assert_allclose(loaded.run({"x": other})["y"], wanted, rtol=1e-5, atol=1e-6)


def test_weights_that_are_fed():
    loaded = model("y = Conv (x, w)", "float[A,B,C] x, float[D,B,E] w", "float[A,D,F] y")
    rng = np.random.default_rng(5)
    for _ in range(SETTLED + 3):
        feeds = {name: rng.standard_normal((2, 2, 3)).astype(np.float32) for name in "xw"}
        wanted = loaded.run(feeds, reference=True)["y"]
        np.testing.assert_allclose(loaded.run(feeds)["y"], wanted, rtol=1e-4, atol=1e-5)


def test_feeds_that_were_unpickled_are_usual():
    loaded = chain()
    feeds = {"x": pickle.loads(pickle.dumps(np.ones((4, 6), np.float32)))}
    for _ in range(SETTLED + 1):
        loaded.run(feeds)
    (kind,) = loaded._usual
    assert loaded._usual[kind].replayed(kind, feeds) is not None


def test_an_output_that_is_an_input():
    loaded = model("y = Identity (x) z = Exp (x)", "float[N] x", "float[N] y, float[N] z")
    for turn in range(SETTLED + 2):
        x = np.float32([turn, 1])
        y = loaded.run({"x": x})["y"]
        assert y.tolist() == [turn, 1]


def test_several_threads():
    loaded = chain()
    rng = np.random.default_rng(4)
    feeds = [{"x": rng.standard_normal((4, 6)).astype(np.float32)} for _ in range(4)]
    wanted = [loaded.run(each, reference=True)["y"] for each in feeds]
    wrong = []

    def runs(which: int) -> None:
        results = [loaded.run(feeds[which])["y"] for _ in range(200)]
        wrong.extend(which for result in results if not np.allclose(result, wanted[which], rtol=1e-4, atol=1e-5))

    threads = [threading.Thread(target=runs, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_indices_that_are_outside_while_replaying():
    loaded = model("y = Gather (x, i)  z = Neg (y)", "float[4] x, int64[2] i", "float[2] z")
    x = np.arange(4, dtype=np.float32)
    for _ in range(SETTLED):
        loaded.run({"x": x, "i": np.array([0, 1])})
    assert replays(loaded)
    np.testing.assert_array_equal(loaded.run({"x": x, "i": np.array([-1, 2])})["z"], [-3, -2])
    with pytest.raises(onnxeval.NodeError, match=r"Gather-13[\s\S]*index 4 is outside"):
        loaded.run({"x": x, "i": np.array([0, 4])})
    np.testing.assert_array_equal(loaded.run({"x": x, "i": np.array([3, 2])})["z"], [-3, -2])


def test_elements_that_are_brought_into_order_are_replayed():
    body = "t = Transpose <perm = [1, 0]> (x)  r = Reshape (t, s)  y = Neg (r)"
    loaded = model(body, "float[3,4] x", "float[12] y", {"s": np.array([12])})
    for seed in range(SETTLED + 2):
        x = np.random.default_rng(seed).standard_normal((3, 4)).astype(np.float32)
        np.testing.assert_array_equal(loaded.run({"x": x})["y"], -x.T.reshape(12))
    (replay,) = replays(loaded)
    assert replay.is_compiled


def test_errors_while_replaying_have_their_place():
    loaded = model("e = Exp (x) y = Gather (e, i)", "float[N] x, int64[M] i", "float[M] y")
    x = np.float32([0, 1, 2])
    for index in (0, 1, 2, 0, 1, 2):
        loaded.run({"x": x, "i": np.array([index])})
    with pytest.raises(onnxeval.NodeError, match="Gather"):
        loaded.run({"x": x, "i": np.array([3])})
    assert loaded.run({"x": x, "i": np.array([0])})["y"].tolist() == [1]


def made_of(kernel) -> object:
    """The replay of a plan of one step, which runs this kernel."""
    plan = model("y = Exp (x)", "float[N] x", "float[N] y").plan()
    step = plan.steps[0].running(kernel)
    x = np.float32([1, 2, 3])
    types = {name: TensorType(x.dtype, x.shape) for name in (*step.inputs, *step.outputs)}
    tape = Tape(plan._replace(steps=(step,)), types, types.keys())
    return replay_of(tape, types, {"x": x}, Run())


KERNELS = native()


@replayable
def plain(x, **_):
    result = np.empty(x.shape, np.float32)
    KERNELS.activate(x, result, 10, 0.0, 0.0)
    return result


@replayable
def of_a_copy(x, **_):
    result = np.empty(x.shape, np.float32)
    KERNELS.activate(x + 1, result, 10, 0.0, 0.0)
    return result


@replayable
def changed_afterwards(x, **_):
    return plain(x) + 1


@replayable
def interrupted(x, **_):
    result = plain(x)
    result += 1
    KERNELS.interrupt()
    return result


@replayable
def through_its_own_memory(x, **_):
    between, result = np.empty((2, *x.shape), np.float32)
    KERNELS.activate(x, between, 10, 0.0, 0.0)
    KERNELS.activate(between, result, 15, 0.0, 0.0)
    return result


@replayable
def packed_anew(x, **_):
    result = np.empty((1, *x.shape), np.float32)
    KERNELS.multiply(result * 0 + 1, KERNELS.Matrix(np.diag(x)), result, None, None, None, 0, -np.inf, np.inf)
    return result[0]


@pytest.mark.parametrize("kernel", [plain, through_its_own_memory])
def test_what_is_replayed(kernel):
    replay = made_of(kernel)
    assert replay.is_compiled
    x = np.float32([3, 0, 1])
    (result,) = replay.execute({"x": x}, Run()).values()
    np.testing.assert_array_equal(result, kernel(x))


@pytest.mark.parametrize("kernel", [of_a_copy, changed_afterwards, interrupted, packed_anew])
def test_what_is_not_replayed(kernel):
    assert made_of(kernel) is None


def test_one_run_at_a_time():
    replay = made_of(plain)
    with replay._lock:
        assert replay.execute({"x": np.zeros(3, np.float32)}, Run()) is None


def test_recordings_do_not_nest():
    with KERNELS.Recording(), pytest.raises(RuntimeError, match="records already"), KERNELS.Recording():
        pass


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_chains_of_16_bit_floats_are_replayed(half):
    rng = np.random.default_rng(3)
    dtype = np.dtype(half) if half == "float16" else BFLOAT16
    body = "p = MatMul (x, w) q = Add (p, c) r = Relu (q) s = Mul (r, x) t = Clip (s, low, high) y = Sub (t, x)"
    shapes = {"w": (6, 6), "c": (6,), "low": (), "high": ()}
    constants = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    constants |= {"low": np.array(0.25, dtype), "high": np.array(3, dtype)}
    loaded = model(body, f"{half}[M,N] x", f"{half}[M,N] y", constants)
    for _ in range(SETTLED + 5):
        x = (rng.standard_normal((6, 6)) * 2).astype(dtype)
        got, wanted = (loaded.run({"x": x}, reference=reference)["y"] for reference in (False, True))
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=0.03, atol=0.03)
    (replay,) = replays(loaded)
    assert replay.is_compiled


def test_what_writes_into_the_result_so_far_is_done_again():
    """NumPy's part of a chain: bounds that are fed are no part of what is compiled."""
    loaded = model("a = Mul (x, x) b = Relu (a) y = Clip (b, low, high)", "float[M,N] x, float low, float high")
    rng = np.random.default_rng(4)
    for _ in range(SETTLED + 5):
        x = rng.standard_normal((90, 100)).astype(np.float32)  # as large as those that are written into
        low, high = np.sort(rng.random(2)).astype(np.float32)
        feeds = {"x": x, "low": np.asarray(low), "high": np.asarray(high)}
        np.testing.assert_array_equal(loaded.run(feeds)["y"], loaded.run(feeds, reference=True)["y"])

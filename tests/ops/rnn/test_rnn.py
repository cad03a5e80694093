"""RNN, GRU and LSTM against loops written from the equations of the text, in double precision."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.rnn import gru, lstm, simple  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

RNG = np.random.default_rng(11)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
VERSIONS = {"RNN": (1, 7, 14, 22), "GRU": (1, 3, 7, 14, 22), "LSTM": (1, 7, 14, 22)}
DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
DIRECTIONS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}

FUNCTIONS = {
    "Relu": lambda x, a, b: max(0.0, x),
    "Tanh": lambda x, a, b: (1 - math.exp(-2 * x)) / (1 + math.exp(-2 * x)),
    "Sigmoid": lambda x, a, b: 1 / (1 + math.exp(-x)),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: x if x >= 0 else a * x,
    "ThresholdedRelu": lambda x, a, b: x if x >= a else 0.0,
    "ScaledTanh": lambda x, a, b: a * math.tanh(b * x),
    "HardSigmoid": lambda x, a, b: min(max(a * x + b, 0.0), 1.0),
    "Elu": lambda x, a, b: x if x >= 0 else a * (math.exp(x) - 1),
    "Softsign": lambda x, a, b: x / (1 + abs(x)),
    "Softplus": lambda x, a, b: math.log(1 + math.exp(x)),
}


def apply(function, vector, clip):
    name, alpha, beta = function if isinstance(function, tuple) else (function, None, None)
    bounded = vector if clip is None else np.clip(vector, -clip, clip)
    return np.array([FUNCTIONS[name](float(v), alpha, beta) for v in bounded])


def rnn_step(f, clip, W, R, Wb, Rb, P, x, h):
    return (apply(f[0], W @ x + R @ h + Wb + Rb, clip),)


def gru_step(f, clip, W, R, Wb, Rb, P, x, h, linear_before_reset):
    (Wz, Wr, Wh), (Rz, Rr, Rh) = np.split(W, 3), np.split(R, 3)
    (Wbz, Wbr, Wbh), (Rbz, Rbr, Rbh) = np.split(Wb, 3), np.split(Rb, 3)
    z = apply(f[0], Wz @ x + Rz @ h + Wbz + Rbz, clip)
    r = apply(f[0], Wr @ x + Rr @ h + Wbr + Rbr, clip)
    inner = r * (Rh @ h + Rbh) if linear_before_reset else Rh @ (r * h) + Rbh
    new = apply(f[1], Wh @ x + inner + Wbh, clip)
    return ((1 - z) * new + z * h,)


def lstm_step(f, clip, W, R, Wb, Rb, P, x, h, c, input_forget):
    (Wi, Wo, Wf, Wc), (Ri, Ro, Rf, Rc) = np.split(W, 4), np.split(R, 4)
    (Wbi, Wbo, Wbf, Wbc), (Rbi, Rbo, Rbf, Rbc) = np.split(Wb, 4), np.split(Rb, 4)
    Pi, Po, Pf = np.split(P, 3)
    i = apply(f[0], Wi @ x + Ri @ h + Pi * c + Wbi + Rbi, clip)
    forget = 1 - i if input_forget else apply(f[0], Wf @ x + Rf @ h + Pf * c + Wbf + Rbf, clip)
    new = apply(f[1], Wc @ x + Rc @ h + Wbc + Rbc, clip)
    c = forget * c + i * new
    o = apply(f[0], Wo @ x + Ro @ h + Po * c + Wbo + Rbo, clip)
    return o * apply(f[2], c, clip), c


STEPS = {"RNN": rnn_step, "GRU": gru_step, "LSTM": lstm_step}


def by_hand(name, t, direction, functions, clip=None, **how):
    """(Y, final states...) in layout 0."""
    x = t["X"].astype(np.float64)
    steps, batch, _ = x.shape
    hidden = t["R"].shape[2]
    backwards = DIRECTIONS[direction]
    y = np.zeros((steps, len(backwards), batch, hidden))
    states = [t[n].astype(np.float64).copy() for n in ("initial_h", "initial_c")[: 2 if name == "LSTM" else 1]]
    per = len(functions) // len(backwards)
    for (d, backward), b in itertools.product(enumerate(backwards), range(batch)):
        length = int(t["sequence_lens"][b])
        state = tuple(s[d, b] for s in states)
        W, R, B, P = (t[n][d].astype(np.float64) for n in ("W", "R", "B", "P"))
        Wb, Rb = np.split(B, 2)
        for time in reversed(range(length)) if backward else range(length):
            state = STEPS[name](functions[d * per : (d + 1) * per], clip, W, R, Wb, Rb, P, x[time, b], *state, **how)
            y[time, d, b] = state[0]
        for s, final in zip(states, state, strict=True):
            s[d, b] = final
    return y, *states


def tensors(name, direction, *, steps=4, batch=3, features=2, hidden=5, dtype=np.float32):
    """Every input, filled; the brute force reads those that a test leaves out as zeros or full lengths."""
    d, g = len(DIRECTIONS[direction]), GATES[name]

    def random(*shape):
        return RNG.normal(size=shape).astype(dtype)

    return {
        "X": random(steps, batch, features),
        "W": random(d, g * hidden, features),
        "R": random(d, g * hidden, hidden) * dtype(0.5),
        "B": random(d, 2 * g * hidden),
        "sequence_lens": RNG.integers(0, steps + 1, batch).astype(np.int32),
        "initial_h": random(d, batch, hidden),
        "initial_c": random(d, batch, hidden),
        "P": random(d, 3 * hidden),
    }


def run(name, version, t, absent=(), **attributes):
    """The kernel with every attribute of its version."""
    kernel = STANDARD["", name, version]
    given = {
        "activations": ("Tanh", "Tanh") if name == "RNN" else None,
        "activation_alpha": None,
        "activation_beta": None,
        "clip": None,
        "direction": "forward",
        "hidden_size": t["R"].shape[2],
    }
    if name == "LSTM":
        given["input_forget"] = 0
    if name == "GRU" and version > 1:
        given["linear_before_reset"] = 0
    if version < 7:
        given["output_sequence"] = 0
    inputs = ["X", "W", "R", "B", "sequence_lens", "initial_h"] + (["initial_c", "P"] if name == "LSTM" else [])
    return kernel(*(None if n in absent else t[n] for n in inputs), **(given | attributes))


def assert_close(got, wanted, rtol=1e-5, atol=1e-5):
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g.astype(np.float64), w, rtol=rtol, atol=atol)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", GATES)
def test_everything_given(name, direction):
    t = tensors(name, direction)
    how = {"GRU": {"linear_before_reset": 0}, "LSTM": {"input_forget": 0}}.get(name, {})
    functions = DEFAULTS[name] * len(DIRECTIONS[direction])
    wanted = by_hand(name, t, direction, functions, **how)
    for version in VERSIONS[name]:
        assert_close(run(name, version, t, direction=direction), wanted)


@pytest.mark.parametrize("name", GATES)
def test_the_batch_may_come_first(name):
    t = tensors(name, "bidirectional")
    wanted = run(name, 22, t, direction="bidirectional")
    first = t | {n: t[n].swapaxes(0, 1) for n in ("X", "initial_h", "initial_c")}
    y, *states = run(name, 22, first, direction="bidirectional", layout=1)
    np.testing.assert_array_equal(y, wanted[0].transpose(2, 0, 1, 3))
    for got, state in zip(states, wanted[1:], strict=True):
        np.testing.assert_array_equal(got, state.swapaxes(0, 1))


@pytest.mark.parametrize("absent", ["B", "sequence_lens", "initial_h", "initial_c", "P"])
@pytest.mark.parametrize("name", GATES)
def test_absent_inputs_are_zero_and_full_length(name, absent):
    t = tensors(name, "reverse")
    neutral = t | {absent: np.full_like(t[absent], len(t["X"]) if absent == "sequence_lens" else 0)}
    wanted = run(name, 22, neutral, direction="reverse")
    assert_close(run(name, 22, t, absent=(absent,), direction="reverse"), wanted, rtol=0, atol=1e-6)


def test_linear_before_reset():
    t = tensors("GRU", "bidirectional")
    wanted = by_hand("GRU", t, "bidirectional", DEFAULTS["GRU"] * 2, linear_before_reset=1)
    for version in (3, 7, 14, 22):
        assert_close(run("GRU", version, t, direction="bidirectional", linear_before_reset=1), wanted)


def test_coupled_input_and_forget_gates():
    t = tensors("LSTM", "forward")
    assert_close(run("LSTM", 22, t, input_forget=1), by_hand("LSTM", t, "forward", DEFAULTS["LSTM"], input_forget=1))


@pytest.mark.parametrize("name", GATES)
def test_clip_bounds_what_activations_are_given(name):
    t = tensors(name, "forward")
    how = {"GRU": {"linear_before_reset": 0}, "LSTM": {"input_forget": 0}}.get(name, {})
    wanted = by_hand(name, t, "forward", DEFAULTS[name], clip=0.25, **how)
    assert_close(run(name, 22, t, clip=0.25), wanted)


ACTIVATIONS = [
    # names, alpha, beta -> function, alpha, beta
    ("relu", (), (), ("Relu", None, None)),
    ("TANH", (), (), ("Tanh", None, None)),
    ("Affine", (0.5,), (0.25,), ("Affine", 0.5, 0.25)),
    ("Affine", (), (), ("Affine", 1.0, 0.0)),
    ("LeakyRelu", (0.3,), (), ("LeakyRelu", 0.3, None)),
    ("leakyrelu", (), (), ("LeakyRelu", 0.01, None)),
    ("ThresholdedRelu", (0.1,), (), ("ThresholdedRelu", 0.1, None)),
    ("ThresholdedRelu", (), (), ("ThresholdedRelu", 1.0, None)),
    ("ScaledTanh", (0.7,), (1.5,), ("ScaledTanh", 0.7, 1.5)),
    ("HardSigmoid", (0.3,), (0.4,), ("HardSigmoid", 0.3, 0.4)),
    ("HardSigmoid", (), (), ("HardSigmoid", 0.2, 0.5)),
    ("Elu", (0.5,), (), ("Elu", 0.5, None)),
    ("Elu", (), (), ("Elu", 1.0, None)),
    ("Softsign", (), (), ("Softsign", None, None)),
    ("Softplus", (), (), ("Softplus", None, None)),
    ("Sigmoid", (), (), ("Sigmoid", None, None)),
]


@pytest.mark.parametrize(("name", "alpha", "beta", "function"), ACTIVATIONS)
def test_activations(name, alpha, beta, function):
    t = tensors("RNN", "forward")
    got = run("RNN", 22, t, activations=(name,), activation_alpha=alpha, activation_beta=beta)
    assert_close(got, by_hand("RNN", t, "forward", [function]))


def test_alphas_are_consumed_by_those_that_take_them():
    t = tensors("LSTM", "bidirectional")
    got = run(
        "LSTM",
        22,
        t,
        direction="bidirectional",
        activations=("HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "Affine", "Elu"),
        activation_alpha=(0.25, 0.1, 0.8),
        activation_beta=(0.4,),
    )
    functions = [
        ("HardSigmoid", 0.25, 0.4),
        "Tanh",
        ("LeakyRelu", 0.1, None),
        "Sigmoid",
        ("Affine", 0.8, 0.0),
        ("Elu", 1.0, None),
    ]
    assert_close(got, by_hand("LSTM", t, "bidirectional", functions, input_forget=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", GATES)
def test_half_precision_rounds_once(name, dtype):
    t = tensors(name, "bidirectional")
    narrow = {n: v if v.dtype == np.int32 else v.astype(dtype) for n, v in t.items()}
    wide = {n: v if v.dtype == np.int32 else v.astype(np.float32) for n, v in narrow.items()}
    got = run(name, 22, narrow, direction="bidirectional")
    for g, w in zip(got, run(name, 22, wide, direction="bidirectional"), strict=True):
        assert g.dtype == dtype
        np.testing.assert_array_equal(g, w.astype(dtype))


@pytest.mark.parametrize("name", GATES)
def test_double(name):
    t = tensors(name, "forward", dtype=np.float64)
    how = {"GRU": {"linear_before_reset": 0}, "LSTM": {"input_forget": 0}}.get(name, {})
    assert_close(run(name, 22, t), by_hand(name, t, "forward", DEFAULTS[name], **how), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", GATES)
def test_no_steps_and_no_batch(name):
    t = tensors(name, "bidirectional", steps=0)
    y, *states = run(name, 22, t, direction="bidirectional", absent=("initial_c",))
    assert y.shape == (0, 2, 3, 5)
    np.testing.assert_array_equal(states[0], t["initial_h"])
    for state in states[1:]:
        np.testing.assert_array_equal(state, np.zeros((2, 3, 5)))
    y, *_ = run(name, 22, tensors(name, "forward", batch=0))
    assert y.shape == (4, 1, 0, 5)


def test_old_spellings_and_defaults():
    t = tensors("GRU", "forward")
    assert_close(run("GRU", 1, t, direction="foward"), run("GRU", 22, t), rtol=0, atol=0)
    assert_close(run("GRU", 22, t, hidden_size=None), run("GRU", 22, t), rtol=0, atol=0)


def test_inputs_stay_as_they_are():
    for name in GATES:
        t = tensors(name, "bidirectional")
        before = {n: v.copy() for n, v in t.items()}
        run(name, 22, t, direction="bidirectional")
        for n, v in t.items():
            np.testing.assert_array_equal(v, before[n])


@pytest.mark.parametrize(
    ("change", "attributes", "message"),
    [
        ({}, {"direction": "sideways"}, "direction 'sideways'"),
        ({}, {"layout": 2}, "layout 2"),
        ({}, {"hidden_size": 4}, "hidden_size is 4"),
        ({}, {"clip": -1.0}, r"clip -1\.0"),
        ({}, {"activations": ("Tanh",)}, r"activations are \['Tanh'\], expected 2 for each of 1"),
        ({}, {"activations": ("Tanh", "Sin")}, "activation 'Sin' is none of"),
        ({}, {"activations": ("Tanh", "ScaledTanh")}, "needs activation_alpha"),
        ({}, {"activation_alpha": (1.0,)}, r"activation_alpha ends in \[1\.0\]"),
        ({"sequence_lens": np.array([1, 2, 5], np.int32)}, {}, r"sequence_lens \[1, 2, 5\] leave \[0, 4\]"),
        ({"sequence_lens": np.array([1, 2], np.int32)}, {}, r"sequence_lens has shape \[2\], expected \[3\]"),
        ({"W": np.zeros((1, 15, 3), np.float32)}, {}, r"W has shape \[1, 15, 3\], expected \[1, 15, 2\]"),
        ({"R": np.zeros((2, 15, 5), np.float32)}, {}, r"R has shape \[2, 15, 5\], expected \[1, 15, 5\]"),
        ({"B": np.zeros((1, 15), np.float32)}, {}, r"B has shape \[1, 15\], expected \[1, 30\]"),
        ({"X": np.zeros((4, 2), np.float32)}, {}, "X has rank 2"),
        ({"initial_h": np.zeros((3, 1, 5), np.float32)}, {}, r"state has shape \[3, 1, 5\], expected \[1, 3, 5\]"),
    ],
)
def test_refusals(change, attributes, message):
    with pytest.raises(ValueError, match=message):
        run("GRU", 22, tensors("GRU", "forward") | change, **attributes)

"""LSTM, GRU and RNN in one call: at one with the readable kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxeval.fast import replacement
from onnxeval.fast.engine import native
from onnxeval.ops.rnn.gru import gru
from onnxeval.ops.rnn.lstm import lstm
from onnxeval.ops.rnn.simple import rnn
from tests.fast.guarded import guarded

PLAIN = {"activations": None, "activation_alpha": None, "activation_beta": None, "clip": None, "layout": 0}
#: Kernel, gates and what else a node says
LAYERS = [
    pytest.param(lstm, 4, {"input_forget": 0}, id="lstm"),
    pytest.param(gru, 3, {"linear_before_reset": 0}, id="gru-reset-before"),
    pytest.param(gru, 3, {"linear_before_reset": 1}, id="gru-reset-after"),
    pytest.param(rnn, 1, {"activations": ("Tanh", "Tanh")}, id="rnn"),
]


def random(rng, *shape):
    return guarded(rng.standard_normal(shape).astype(np.float32))


def laid_out(data, x):
    """The same numbers, however they lie in memory."""
    order = data.draw(st.permutations(range(x.ndim)))
    other = guarded(np.ascontiguousarray(x.transpose(order))).transpose(np.argsort(order))
    return other[::-1][::-1] if data.draw(st.booleans()) else np.flip(np.flip(other).copy())


def drawn(data, rng, kernel, gates, directions):
    """Every input of a layer."""
    steps, batch = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    features, hidden = data.draw(st.integers(1, 20)), data.draw(st.sampled_from([1, 3, 8, 17, 33]))
    # not so large that the layer would be chaotic
    weights = (random(rng, directions, gates * hidden, size) / np.float32(size**0.5) for size in (features, hidden))
    bias = random(rng, directions, 2 * gates * hidden) if data.draw(st.booleans()) else None
    states = [random(rng, directions, batch, hidden) if data.draw(st.booleans()) else None for _ in range(2)]
    rest = (*states, None) if kernel is lstm else states[:1]
    lengths = rng.integers(0, steps + 1, batch).astype(np.int32) if data.draw(st.booleans()) else None
    return laid_out(data, random(rng, steps, batch, features)), *weights, bias, lengths, *rest


@settings(max_examples=15, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("kernel", "gates", "more"), LAYERS)
def test_layers_are_the_readable_ones(tier, kernel, gates, more, direction, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    inputs = drawn(data, rng, kernel, gates, 2 if direction == "bidirectional" else 1)
    attributes = {**PLAIN, **more, "direction": direction, "hidden_size": inputs[2].shape[2]}
    kept = [None if each is None else each.copy() for each in inputs]
    quick = replacement(kernel, [None, *inputs[1:3], *[None] * (len(inputs) - 3)], attributes)
    for got, wanted in zip(quick(*inputs, **attributes), kernel(*inputs, **attributes), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    for before, after in zip(kept, inputs, strict=True):
        assert before is after is None or np.array_equal(before, after)


@pytest.mark.parametrize(("kernel", "gates", "more"), LAYERS)
def test_long_sequences_are_computed_in_parts(tier, kernel, gates, more, rng):
    steps, batch, hidden = 70, 5, 130
    weights = [guarded((rng.standard_normal((2, gates * hidden, k)) / 9).astype(np.float32)) for k in (40, hidden)]
    x = random(rng, batch, steps, 40).swapaxes(0, 1)
    attributes = {**PLAIN, **more, "direction": "bidirectional", "hidden_size": hidden}
    rest = (None,) * (5 if kernel is lstm else 3)
    quick = replacement(kernel, [None, *weights, *rest], attributes)
    results = zip(quick(x, *weights, *rest, **attributes), kernel(x, *weights, *rest, **attributes), strict=True)
    for got, wanted in results:
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["Tanh", "relu", "Sigmoid"])
def test_rnn_squashes_by_what_it_is_told(tier, name, rng):
    x, w, r = random(rng, 3, 2, 4), random(rng, 1, 5, 4), random(rng, 1, 5, 5)
    attributes = {**PLAIN, "activations": (name,), "direction": "forward", "hidden_size": 5}
    rest = (None,) * 3
    quick = replacement(rnn, [None, w, r, *rest], attributes)
    for got, wanted in zip(quick(x, w, r, *rest, **attributes), rnn(x, w, r, *rest, **attributes), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kernel", "gates", "more"), LAYERS)
def test_what_is_not_finite_is_seen(tier, kernel, gates, more, rng):
    x, w, r = random(rng, 3, 1, 4), random(rng, 1, gates * 5, 4), random(rng, 1, gates * 5, 5)
    x[1, 0, 2] = np.nan
    attributes = {**PLAIN, **more, "direction": "forward", "hidden_size": 5}
    rest = (None,) * (5 if kernel is lstm else 3)
    outputs, *_ = replacement(kernel, [None, w, r, *rest], attributes)(x, w, r, *rest, **attributes)
    assert np.isfinite(outputs[0]).all()
    assert np.isnan(outputs[1:]).all()


@pytest.mark.parametrize(("kernel", "gates", "more"), LAYERS)
def test_other_options_are_left_to_the_readable_kernel(kernels, kernel, gates, more, rng):
    w, r = random(rng, 1, gates * 5, 4), random(rng, 1, gates * 5, 5)
    usual = {**PLAIN, **more, "direction": "forward", "hidden_size": 5}
    rest = [None] * (5 if kernel is lstm else 3)
    assert replacement(kernel, [None, w, r, *rest], usual) is not None
    changes = [{"clip": 0.0}, {"layout": 1}, {"activations": ("Softsign",) * 3}, {"hidden_size": 4}]
    for change in changes + [{"input_forget": 1}] * (kernel is lstm):
        assert replacement(kernel, [None, w, r, *rest], {**usual, **change}) is None


@pytest.mark.parametrize(("kernel", "gates", "more"), LAYERS)
def test_wrong_inputs_are_left_to_the_readable_kernel(kernels, kernel, gates, more, rng):
    x, w, r = random(rng, 3, 1, 4), random(rng, 1, gates * 5, 4), random(rng, 1, gates * 5, 5)
    attributes = {**PLAIN, **more, "direction": "forward", "hidden_size": 5}
    rest = [None] * (5 if kernel is lstm else 3)
    quick = replacement(kernel, [None, w, r, *rest], attributes)
    wrong = [(0, random(rng, 3, 1, 5)), (3, random(rng, 1, 3)), (4, np.array([4], np.int32)), (5, random(rng, 1, 2, 5))]
    for place, value in wrong:
        inputs = [x, w, r, *rest]
        inputs[place] = value
        with pytest.raises(ValueError, match=r"shape|sequence_lens"):
            quick(*inputs, **attributes)
    shorter = [x, w, r, None, np.array([2], np.int32), *rest[2:]]
    for got, wanted in zip(quick(*shorter, **attributes), kernel(*shorter, **attributes), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_sizes_are_held_against_the_buffers(kernels, rng):
    run, matrix = native().run_layer, native().Matrix
    x, outputs, state = random(rng, 3, 2, 4), random(rng, 3, 1, 2, 5), random(rng, 1, 2, 5)
    into, across = (matrix(random(rng, size, 5)) for size in (4, 5))
    right = [1, x, (into,), (across,), None, None, None, None, outputs, state, None, b"\0", 0, 0.0, 1.0, None]
    run(*right)
    wrong = [(0, 4), (0, 0), (1, x[:2]), (1, x[..., :3]), (2, ()), (2, (across,)), (2, (None,)), (3, (into,))]
    wrong += [(5, x), (6, outputs), (8, outputs[:, 0]), (9, None), (9, outputs), (11, b"\0\0"), (11, None), (12, -2)]
    wrong += [(15, np.zeros(3, np.int32)), (15, np.zeros(2, np.int64))]
    for place, value in wrong:
        arguments = right.copy()
        arguments[place] = value
        with pytest.raises((TypeError, ValueError)):
            run(*arguments)

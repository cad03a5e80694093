"""LSTM in one call: at one with the readable kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxeval.fast import replacement
from onnxeval.ops.rnn.lstm import lstm

PLAIN = {"activations": None, "activation_alpha": None, "activation_beta": None, "clip": None, "input_forget": 0}


def drawn(data, rng, directions):
    steps, batch = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    features, hidden = data.draw(st.integers(1, 20)), data.draw(st.sampled_from([1, 3, 8, 17, 33]))
    x = rng.standard_normal((steps, batch, features)).astype(np.float32)
    bias = rng.standard_normal((directions, 8 * hidden)).astype(np.float32) if data.draw(st.booleans()) else None
    shape = (directions, batch, hidden)
    states = [rng.standard_normal(shape).astype(np.float32) if data.draw(st.booleans()) else None for _ in range(2)]
    return x, bias, states, features, hidden


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm_is_the_readable_one(tier, direction, data):
    directions = 2 if direction == "bidirectional" else 1
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, bias, states, features, hidden = drawn(data, rng, directions)
    w = rng.standard_normal((directions, 4 * hidden, features)).astype(np.float32)
    r = rng.standard_normal((directions, 4 * hidden, hidden)).astype(np.float32)
    attributes = {**PLAIN, "direction": direction, "hidden_size": hidden, "layout": 0}
    lengths = np.full(x.shape[1], x.shape[0], np.int32) if data.draw(st.integers(0, 4)) == 0 else None
    inputs = (x, w, r, bias, lengths, *states, None)
    kept = [None if state is None else state.copy() for state in states]
    kernel = replacement(lstm, [None, w, r, bias, None, None, None, None], attributes)
    for got, wanted in zip(kernel(*inputs, **attributes), lstm(*inputs, **attributes), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    for before, after in zip(kept, states, strict=True):
        assert before is after is None or np.array_equal(before, after)


def test_what_is_not_finite_is_seen(tier, rng):
    x = rng.standard_normal((3, 1, 4)).astype(np.float32)
    w, r = (rng.standard_normal((1, 20, size)).astype(np.float32) for size in (4, 5))
    x[1, 0, 2] = np.nan
    attributes = {**PLAIN, "direction": "forward", "hidden_size": 5, "layout": 0}
    outputs, *_ = replacement(lstm, [None, w, r, *[None] * 5], attributes)(x, w, r, *[None] * 5, **attributes)
    assert np.isfinite(outputs[0]).all()
    assert np.isnan(outputs[1:]).all()


def test_other_options_are_left_to_the_readable_kernel(kernels, rng):
    w, r = (rng.standard_normal((1, 20, size)).astype(np.float32) for size in (4, 5))
    usual = {**PLAIN, "direction": "forward", "hidden_size": 5, "layout": 0}
    assert replacement(lstm, [None, w, r, *[None] * 5], usual) is not None
    for change in ({"clip": 1.0}, {"layout": 1}, {"input_forget": 1}, {"activations": ("Tanh",) * 3}):
        assert replacement(lstm, [None, w, r, *[None] * 5], {**usual, **change}) is None

"""DynamicQuantizeLSTM in one call: to the last bit what the readable kernel gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib.dynamic_quantize_lstm import dynamic_quantize_lstm


def node(rng, *, steps, batch, features, hidden, directions, dtype=np.int8, columns=False, zeros=True):
    """The inputs of a node with biases and initial states."""
    info = np.iinfo(dtype)
    shape = (directions, 4 * hidden) if columns else (directions,)

    def parameters():
        zero = rng.integers(0, 10, shape) if zeros else np.zeros(shape)
        return (rng.random(shape) / 100 + 0.001).astype(np.float32), zero.astype(dtype)

    return [
        rng.standard_normal((steps, batch, features)).astype(np.float32),
        rng.integers(info.min, info.max + 1, (directions, features, 4 * hidden)).astype(dtype),
        rng.integers(info.min, info.max + 1, (directions, hidden, 4 * hidden)).astype(dtype),
        rng.standard_normal((directions, 8 * hidden)).astype(np.float32),
        None,
        rng.standard_normal((directions, batch, hidden)).astype(np.float32),
        rng.standard_normal((directions, batch, hidden)).astype(np.float32),
        None,
        *parameters(),
        *parameters(),
    ]


def bound(inputs, **attributes):
    """The compiled kernel, its weights constant; its inputs lie at the ends of their pages."""
    constant = (1, 2, 8, 9, 10, 11)
    return replacement(dynamic_quantize_lstm, [x if i in constant else None for i, x in enumerate(inputs)], attributes)


def assert_same(given, wanted):
    for got, want in zip(given, wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_it_is_the_readable_one(tier, direction, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    inputs = node(
        rng,
        steps=data.draw(st.integers(1, 21)),
        batch=data.draw(st.integers(1, 6)),
        features=data.draw(st.sampled_from([1, 2, 3, 8, 13, 20, 64])),
        hidden=data.draw(st.sampled_from([1, 3, 4, 8, 17, 33, 48])),
        directions=2 if direction == "bidirectional" else 1,
        dtype=data.draw(st.sampled_from([np.int8, np.uint8])),
        columns=data.draw(st.booleans()),
        zeros=data.draw(st.booleans()),
    )
    for place in (3, 5, 6):
        if data.draw(st.booleans()):
            inputs[place] = None
    attributes = {"direction": direction}
    with np.errstate(all="ignore"):
        inputs[0] *= data.draw(st.sampled_from([1, 1, 1, 0, 1e-40, 1e6, 3e38]))
        wanted = dynamic_quantize_lstm(*inputs, **attributes)
    watched = [guarded(x) if i in (0, 3, 5, 6) and x is not None else x for i, x in enumerate(inputs)]
    assert_same(bound(inputs, **attributes)(*watched, **attributes), wanted)


@pytest.mark.parametrize("view", [lambda x: x.transpose(1, 0, 2), lambda x: x[::-1], lambda x: x[:, :, ::2]])
def test_inputs_lie_as_they_like(tier, rng, view):
    inputs = node(rng, steps=6, batch=6, features=8, hidden=5, directions=1)
    x = np.asarray(view(inputs[0]))
    inputs[0], inputs[1] = x, inputs[1][:, : x.shape[2]]
    inputs[1] = np.ascontiguousarray(inputs[1])
    assert not x.flags.c_contiguous
    inputs[5] = np.asfortranarray(inputs[5])
    assert_same(bound(inputs)(*inputs), dynamic_quantize_lstm(*inputs))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 5])
def test_what_is_not_finite_is_seen(tier, rng, odd, place):
    inputs = node(rng, steps=3, batch=1, features=4, hidden=5, directions=1)
    inputs[place][0, 0, 1] = odd
    outputs, *last = bound(inputs)(*inputs)
    assert np.isnan(outputs).all()
    assert np.isnan(last).all()


@pytest.mark.parametrize(
    "change", [{"clip": 1.0}, {"input_forget": 1}, {"activations": ("Tanh",) * 3}, {"hidden_size": 7}]
)
def test_other_options_are_left_to_the_readable_kernel(kernels, rng, change):
    inputs = node(rng, steps=2, batch=1, features=4, hidden=5, directions=1)
    assert bound(inputs) is not None
    assert bound(inputs, **change) is None


def test_lengths_and_peepholes_are_left_to_the_readable_kernel(kernels, rng):
    inputs = node(rng, steps=3, batch=2, features=4, hidden=5, directions=1)
    for place, value in ((4, np.array([3, 1], np.int32)), (7, rng.standard_normal((1, 15)).astype(np.float32))):
        other = [*inputs]
        other[place] = value
        assert_same(bound(inputs)(*other), dynamic_quantize_lstm(*other))
    inputs[5] = inputs[5][:, :1]
    with pytest.raises(ValueError, match="initial_h has shape"):
        bound(inputs)(*inputs)

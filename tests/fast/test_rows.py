"""Curves, Softmax and normalisations: near the exact result everywhere, and at one with the readable kernels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.fast.activations import Kind
from onnxeval.ops.math import rectifiers, sigmoids, softmax
from onnxeval.ops.math.erf import error_function
from onnxeval.ops.math.power import power
from onnxeval.ops.nn.batch_norm import batch_normalization
from onnxeval.ops.nn.layer_norm import layer_normalization, rms_normalization
from onnxeval.ops.nn.lrn import lrn
from onnxeval.registry import STANDARD, OpKey

#: Kind -> the function in float64, and how many units in the last place the compiled one may be off.
CURVES = {
    Kind.SIGMOID: (lambda x: 1 / (1 + np.exp(-x)), 4),
    Kind.TANH: (np.tanh, 4),
    Kind.ERF: (np.vectorize(math.erf), 2),
    Kind.EXP: (np.exp, 3),
    Kind.SOFTPLUS: (lambda x: np.logaddexp(0, x), 4),
    Kind.MISH: (lambda x: x * np.tanh(np.logaddexp(0, x)), 6),
    Kind.GELU: (lambda x: 0.5 * x * np.vectorize(math.erfc)(-x / math.sqrt(2)), 8),
}


@pytest.mark.parametrize("kind", CURVES, ids=lambda kind: kind.name)
def test_curves_are_exact_in_their_tails(tier, kind):
    exact, places = CURVES[kind]
    x = np.concatenate([np.linspace(-13, 13, 20_001), np.geomspace(1e-30, 1, 500), -np.geomspace(1e-30, 1, 500)])
    x = x.astype(np.float32)
    out = np.empty_like(x)
    tier.activate(x, out, kind, 0.0, 0.0)
    wanted = exact(x.astype(float))
    unit = np.spacing(np.abs(wanted).astype(np.float32)).astype(float)
    assert (np.abs(out - wanted) / unit).max() <= places


@pytest.mark.parametrize("kind", [Kind.TANH, Kind.ERF], ids=lambda kind: kind.name)
def test_odd_curves_keep_the_sign_of_zero(tier, kind):
    x = np.array([-0.0, 0.0] * 20, np.float32)
    out = np.empty_like(x)
    tier.activate(x, out, kind, 0.0, 0.0)
    assert (np.signbit(out) == np.signbit(x)).all()


@pytest.mark.parametrize("size", [1, 3, 4, 7, 8, 15, 16, 17, 31, 100, 40_000])
def test_curves_of_any_length(tier, rng, size):
    x = guarded(np.abs(rng.standard_normal(size)).astype(np.float32))
    for kind in Kind:
        out = guarded(np.full(size, np.nan, np.float32))
        tier.activate(x, out, kind, 0.25, 0.5)
        assert np.isfinite(out).all()


FUNCTIONS = [
    (rectifiers.relu, {}),
    (rectifiers.leaky_relu, {"alpha": 0.1}),
    (rectifiers.hard_sigmoid, {"alpha": 0.3, "beta": 0.4}),
    (rectifiers.hard_swish, {}),
    (rectifiers.elu, {"alpha": 1.5}),
    (sigmoids.sigmoid, {}),
    (sigmoids.swish, {"alpha": 1.7}),
    (sigmoids.softplus, {}),
    (sigmoids.mish, {}),
    (sigmoids.gelu, {"approximate": "none"}),
    (sigmoids.gelu, {"approximate": "tanh"}),
    (error_function, {}),
]


@pytest.mark.parametrize(("function", "attributes"), FUNCTIONS, ids=lambda value: getattr(value, "__name__", ""))
def test_functions_are_the_readable_ones(tier, rng, function, attributes):
    kernel = replacement(function, [None], attributes)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 100, -100], np.float32)
    with np.errstate(all="ignore"):
        for x in (special, rng.standard_normal((3, 5, 7)).astype(np.float32)[:, ::2], np.zeros((0, 3), np.float32)):
            got, wanted = kernel(x, **attributes), function(x, **attributes)
            assert got.shape == wanted.shape
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=1e-37)
        half = rng.standard_normal(5).astype(np.float16)
        np.testing.assert_array_equal(kernel(half, **attributes), function(half, **attributes))


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_softmax_is_the_readable_one(tier, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=4)))
    if math.prod(shape) > 50_000:
        return
    x = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape).astype(np.float32) * 5
    x[..., 0] = data.draw(st.sampled_from([0, 1e30, -np.inf]))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for name in ("Softmax", "LogSoftmax"):
        for readable in (
            getattr(softmax, {"Softmax": "softmax"}.get(name, "log_softmax")),
            STANDARD[OpKey("", name, 1)],
        ):
            with np.errstate(all="ignore"):
                got = replacement(readable, [None], {"axis": axis})(guarded(x), axis=axis)
                wanted = readable(x, axis=axis)
            # A rounding of x - max, 40 or so, is 4e-6 of its exponential
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-37 if name == "Softmax" else 1e-5)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_normalisations_are_the_readable_ones(tier, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    row = shape[axis:] if axis >= 0 else shape[len(shape) + axis :]
    x = (rng.standard_normal(shape) + data.draw(st.sampled_from([0, 100]))).astype(np.float32)
    scale, bias = rng.standard_normal((2, *row)).astype(np.float32)
    options = {"axis": axis, "epsilon": 1e-3, "stash_type": 1}
    shift = bias if data.draw(st.booleans()) else None
    got = replacement(layer_normalization, [None] * 3, options)(guarded(x), guarded(scale), shift, **options)
    for one, other in zip(got, layer_normalization(x, scale, shift, **options), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=2e-3)
    got = replacement(rms_normalization, [None] * 2, options)(guarded(x), guarded(scale), **options)
    np.testing.assert_allclose(got, rms_normalization(x, scale, **options), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 5, 7, 7), (3, 5), (1, 5, 40), (2, 5, 1, 1), (2, 5, 3, 3, 3), (1, 5, 50, 60)])
def test_batches_are_normalised_as_the_readable_kernel_does(tier, rng, shape):
    x = guarded(rng.standard_normal(shape).astype(np.float32))
    scale, bias, mean = rng.standard_normal((3, 5)).astype(np.float32)
    parameters = (scale, bias, mean, rng.random(5).astype(np.float32))
    attributes = {"epsilon": 1e-3, "momentum": 0.9, "training_mode": 0, "n_outputs": 1}
    got = replacement(batch_normalization, [None, *parameters], attributes)(x, *parameters, **attributes)
    (wanted,) = batch_normalization(x, *parameters, **attributes)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_squares_are_those_of_pow(tier, rng):
    x, two = rng.standard_normal((5, 9)).astype(np.float32).T, np.array(2, np.float32)
    np.testing.assert_array_equal(replacement(power, [None, two], {})(x, two), power(x, two))
    assert replacement(power, [None, np.array(3, np.float32)], {}) is None
    assert replacement(power, [None, None], {}) is None


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_channels_are_normalised_by_their_neighbours(tier, data):
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 12)))
    shape += data.draw(st.sampled_from([(), (1,), (7, 9), (8, 8), (13, 5), (2, 3, 25)]))
    size = data.draw(st.integers(1, 15))
    options = {"size": size, "alpha": 0.02, "beta": data.draw(st.sampled_from([0.25, 0.5, 0.75, 1.0])), "bias": 1.5}
    x = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape).astype(np.float32) * 20
    got = replacement(lrn, [None], options)(guarded(x), **options)
    for channel in range(shape[1]):
        # LRN-13: max(0, c - floor((size - 1) / 2)) <= i <= min(C - 1, c + ceil((size - 1) / 2))
        near = x[:, max(0, channel - (size - 1) // 2) : channel + -(-(size - 1) // 2) + 1].astype(float)
        wanted = x[:, channel] / (1.5 + 0.02 / size * np.square(near).sum(1)) ** options["beta"]
        np.testing.assert_allclose(got[:, channel], wanted, rtol=1e-6)


def test_other_exponents_are_for_the_readable_kernel(tier):
    assert replacement(lrn, [None], {"size": 5, "alpha": 1e-4, "beta": 0.6, "bias": 1.0}) is None

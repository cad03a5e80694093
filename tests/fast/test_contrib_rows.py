"""Normalisations and Gelus of sums are those of float64, and wrong inputs are the readable kernels'."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import is_replayable, replacement
from onnxeval.ops.contrib.gelu import bias_gelu, fast_gelu, gelu, quick_gelu
from onnxeval.ops.contrib.layer_norm import (
    layer_normalization,
    simplified_layer_normalization,
    skip_layer_normalization,
    skip_simplified_layer_normalization,
)

WIDTHS = st.sampled_from([1, 2, 7, 8, 15, 16, 17, 33, 100, 257])


@pytest.mark.parametrize("readable", [skip_layer_normalization, skip_simplified_layer_normalization])
@given(data=st.data())
def test_normalisations_of_sums(tier, readable, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    leading = data.draw(st.sampled_from([(1,), (5,), (1, 1), (2, 3), (3, 40)]))
    shape = (*leading, data.draw(WIDTHS))
    skip_shape = data.draw(st.sampled_from([shape, shape[1:], (1, *shape[1:])]))
    x, skip = (guarded(rng.standard_normal(s).astype(np.float32)) for s in (shape, skip_shape))
    gamma, beta, bias = (guarded(rng.standard_normal(shape[-1]).astype(np.float32)) for _ in range(3))
    is_centred = readable is skip_layer_normalization
    rest = [each if data.draw(st.booleans()) else None for each in ((beta, bias) if is_centred else (bias,))]
    kernel = replacement(readable, [None] * (3 + len(rest)), {"epsilon": 1e-3})
    assert is_replayable(kernel)
    y, mean, inverse, total = kernel(x, skip, gamma, *rest, epsilon=1e-3)
    sums = x.astype(float) + skip + (0 if rest[-1] is None else rest[-1])
    centre = sums.mean(-1, keepdims=True) if is_centred else np.zeros((*leading, 1))
    factor = 1 / np.sqrt(((sums - centre) ** 2).mean(-1, keepdims=True) + 1e-3)
    offset = rest[0] if is_centred and rest[0] is not None else 0
    for result, wanted in zip(
        (y, mean, inverse, total), ((sums - centre) * factor * gamma + offset, centre, factor, sums), strict=True
    ):
        assert result.dtype == np.float32
        assert result.shape == wanted.shape
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("readable", [layer_normalization, simplified_layer_normalization])
@given(data=st.data())
def test_normalisations_of_onnxruntime(tier, readable, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    shape = (*data.draw(st.sampled_from([(), (5,), (2, 3)])), data.draw(WIDTHS))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from([np.float32, np.float32, np.float16]))
    parameters = [guarded(rng.standard_normal(shape[axis:]).astype(dtype)) for _ in range(2)]
    if readable is simplified_layer_normalization:
        del parameters[1]
    elif data.draw(st.booleans()):
        parameters[1] = None
    x = guarded(rng.standard_normal(shape).astype(dtype))
    if data.draw(st.integers(0, 9)) == 0:
        x.flat[-1] = np.nan
    attributes = {"axis": axis, "epsilon": 1e-3, "stash_type": 1}
    kernel = replacement(readable, [None] * (1 + len(parameters)), attributes)
    assert is_replayable(kernel)
    got, wanted = (each(x, *parameters, **attributes) for each in (kernel, readable))
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-3 if dtype is np.float16 else 1e-4, atol=1e-4)


def exact_gelu(x):
    return 0.5 * x * np.vectorize(math.erfc)(-x / math.sqrt(2))


def exact_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("readable", "exact", "attributes"),
    [
        (gelu, exact_gelu, {}),
        (bias_gelu, exact_gelu, {}),
        (fast_gelu, exact_tanh, {}),
        (quick_gelu, lambda x: x / (1 + np.exp(-1.702 * x)), {}),
        (quick_gelu, lambda x: x / (1 + np.exp(-0.5 * x)), {"alpha": 0.5}),
    ],
)
@given(data=st.data())
def test_gelus_of_sums(tier, readable, exact, attributes, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    shape = (*data.draw(st.sampled_from([(), (1,), (3, 2)])), data.draw(WIDTHS))
    x, bias = (guarded(rng.standard_normal(s).astype(np.float32) * 3) for s in (shape, shape[-1:]))
    is_biased = readable is bias_gelu or (readable is fast_gelu and data.draw(st.booleans()))
    given_bias = [bias] if is_biased else [None] if readable is fast_gelu else []
    kernel = replacement(readable, [None] * 2, attributes)
    assert is_replayable(kernel)
    got = kernel(x, *given_bias, **attributes)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, exact(x.astype(float) + (bias if is_biased else 0)), rtol=1e-4, atol=1e-5)


def test_what_is_left_to_the_readable_kernels(kernels, rng):
    x = rng.standard_normal((2, 3, 8)).astype(np.float32)
    gamma = np.ones(8, np.float32)
    kernel = replacement(skip_layer_normalization, [None] * 5, {})
    wide, narrow = x.astype(np.float16), gamma.astype(np.float16)
    for inputs in ((wide, wide, narrow, None, narrow), (x[:0], x[:0], gamma, None, None)):
        for one, other in zip(kernel(*inputs), skip_layer_normalization(*inputs), strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="gamma has shape"):
        kernel(x, x, gamma[:7], None, None)
    with pytest.raises(ValueError, match="skip has shape"):
        kernel(x, x[:1, :1], gamma, None, None)
    with pytest.raises(TypeError, match="have one type"):
        kernel(x, x, narrow, None, None)
    with pytest.raises(ValueError, match="as long as the last axis"):
        replacement(bias_gelu, [None] * 2, {})(x, gamma[:1])
    np.testing.assert_array_equal(replacement(gelu, [None], {})(x.astype(float)), gelu(x.astype(float)))

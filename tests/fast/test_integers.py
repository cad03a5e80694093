"""Products of 8-bit integers are exact, and wrap around as int32 does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib.dynamic_quantize import dynamic_quantize_matmul, matmul_integer_to_float
from onnxeval.ops.math.quantized_matmul import matmul_integer

SIZES = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 48, 49, 70, 130])
TYPES = st.sampled_from([np.int8, np.uint8])


def integers(data, shape, dtype):
    """Any of the type, or nothing but its extremes: sums that saturate in between show there."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    if data.draw(st.booleans()):
        return rng.choice([info.min, info.max], shape).astype(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_products_are_exact(tier, data):
    m, k, n = (data.draw(SIZES) for _ in range(3))
    left, right = data.draw(TYPES), data.draw(TYPES)
    a, b = integers(data, (m, k), left), integers(data, (k, n), right)
    a_zero, b_zero = integers(data, m, left).astype(np.int32), integers(data, n, right).astype(np.int32)
    exact = (a.astype(np.int64) - a_zero[:, None]) @ (b.astype(np.int64) - b_zero)
    packed = tier.Integers(guarded(b), guarded(b_zero))
    out = guarded(np.zeros((m, n), np.int32))
    tier.multiply_integers(guarded(a), guarded(a_zero), packed, out, 0.0, None, None)
    np.testing.assert_array_equal(out, exact)
    scale, bias = np.random.default_rng(0).random((2, n)).astype(np.float32)
    scaled = guarded(np.zeros((m, n), np.float32))
    tier.multiply_integers(guarded(a), guarded(a_zero), packed, scaled, 0.5, guarded(scale), guarded(bias))
    np.testing.assert_allclose(scaled, exact * 0.5 * scale + bias, rtol=1e-5, atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_matmul_integer_is_the_readable_one(tier, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    k, n = data.draw(SIZES), data.draw(SIZES)
    left, right = data.draw(TYPES), data.draw(TYPES)
    a, b = integers(data, (*shape, k), left), integers(data, (k, n), right)
    a_zero = data.draw(st.sampled_from([None, np.array(3, left), np.array([100], left)]))
    b_zero = data.draw(st.sampled_from([None, np.array(5, right), np.full(n, 7, right)]))
    kernel = replacement(matmul_integer, [None, b, None, b_zero], {})
    np.testing.assert_array_equal(kernel(a, b, a_zero, b_zero), matmul_integer(a, b, a_zero, b_zero))


def test_a_zero_point_for_each_row_is_left_to_the_readable_kernel(kernels):
    a, b = np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(12, dtype=np.uint8).reshape(3, 4)
    zero = np.array([1, 2], np.uint8)
    kernel = replacement(matmul_integer, [None, b, None, None], {})
    np.testing.assert_array_equal(kernel(a, b, zero, None), matmul_integer(a, b, zero, None))
    with pytest.raises(ValueError, match="do not multiply"):
        kernel(a[:, :2], b, None, None)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_products_as_floats_are_the_readable_ones(tier, data):
    m, k, n = (data.draw(SIZES) for _ in range(3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    right = data.draw(TYPES)
    b, b_scale = integers(data, (k, n), right), np.float32(rng.random(n) + 0.5)
    if data.draw(st.booleans()):
        b_scale = b_scale[:1].reshape(())
    b_zero = data.draw(st.sampled_from([None, np.array(5, right), np.full(n, 7, right)]))
    bias = data.draw(st.sampled_from([None, rng.standard_normal(n).astype(np.float32)]))
    x = rng.standard_normal((2, m, k)).astype(np.float32)
    inputs = (x, b, b_scale, b_zero, bias)
    kernel = replacement(dynamic_quantize_matmul, [None, *inputs[1:]], {})
    wanted = dynamic_quantize_matmul(*inputs)
    np.testing.assert_allclose(kernel(*inputs), wanted, rtol=1e-5, atol=1e-5 * max(1, np.abs(wanted).max()))
    a = integers(data, (m, k), data.draw(TYPES))
    a_scale, a_zero = np.array(0.25, np.float32), data.draw(st.sampled_from([None, np.array(3, a.dtype)]))
    inputs = (a, b, a_scale, b_scale, a_zero, b_zero, bias)
    kernel = replacement(matmul_integer_to_float, [None, b, None, b_scale, None, b_zero, bias], {})
    wanted = matmul_integer_to_float(*inputs)
    np.testing.assert_allclose(kernel(*inputs), wanted, rtol=1e-5, atol=1e-5 * max(1, np.abs(wanted).max()))

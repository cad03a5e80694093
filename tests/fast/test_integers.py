"""Products of 8-bit integers are exact, and wrap around as int32 does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.alike import integers
from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib.dynamic_quantize import (
    dynamic_quantize_matmul,
    dynamic_quantize_matmul_of_tanh,
    matmul_integer_to_float,
)
from onnxeval.ops.math.quantized_matmul import matmul_integer
from onnxeval.ops.quantization.dynamic import dynamic_quantize_linear

SIZES = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 48, 49, 70, 130])
TYPES = st.sampled_from([np.int8, np.uint8])


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_products_are_exact(tier, data):
    m, k, n = (data.draw(SIZES) for _ in range(3))
    left, right = data.draw(TYPES), data.draw(TYPES)
    a, b = integers(data, (m, k), left), integers(data, (k, n), right)
    a_zero, b_zero = integers(data, 1, left), integers(data, n, right).astype(np.int32)
    if data.draw(st.booleans()):
        b_zero[:] = 0
    exact = (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero)
    packed = tier.Integers(guarded(b), guarded(b_zero))
    out = guarded(np.zeros((m, n), np.int32))
    tier.multiply_integers(guarded(a), None, guarded(a_zero), packed, out, None, None)
    np.testing.assert_array_equal(out, exact)
    scale, bias = np.random.default_rng(0).random((2, n)).astype(np.float32)
    half, scaled = np.array([0.3], np.float32), guarded(np.zeros((m, n), np.float32))
    tier.multiply_integers(guarded(a), half, guarded(a_zero), packed, scaled, guarded(scale), guarded(bias))
    np.testing.assert_array_equal(scaled, exact.astype(np.float32) * (half * scale) + bias)


@pytest.mark.parametrize("large", [127, -128])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_large_weights_side_by_side(tier, large, count):
    """Among small ones, of which more products may be added up in 16 bits."""
    a = np.full((5, 70), 255, np.uint8)
    for first in range(9):
        b = np.ones((70, 20), np.int8)
        b[first : first + count, 7] = large
        packed = tier.Integers(b, np.zeros(20, np.int32))
        for rows in (1, 5):
            out = np.zeros((rows, 20), np.int32)
            tier.multiply_integers(a[:rows], None, None, packed, out, None, None)
            np.testing.assert_array_equal(out, a[:rows].astype(np.int64) @ b)


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
    np.testing.assert_array_equal(kernel(*inputs), dynamic_quantize_matmul(*inputs))
    a = integers(data, (m, k), data.draw(TYPES))
    a_scale, a_zero = np.array(0.25, np.float32), data.draw(st.sampled_from([None, np.array(3, a.dtype)]))
    inputs = (a, b, a_scale, b_scale, a_zero, b_zero, bias)
    kernel = replacement(matmul_integer_to_float, [None, b, None, b_scale, None, b_zero, bias], {})
    np.testing.assert_array_equal(kernel(*inputs), matmul_integer_to_float(*inputs))


def test_computed_zero_points_and_biases_are_left_to_the_readable_kernels(kernels, rng):
    x, b = rng.standard_normal((3, 4)).astype(np.float32), rng.integers(-128, 128, (4, 5)).astype(np.int8)
    scale, zero, bias = np.array(0.5, np.float32), np.array(3, np.int8), np.ones(5, np.float32)
    kernel = replacement(dynamic_quantize_matmul, [None, b, scale, None, None], {})
    for rest in ((zero, None), (None, bias), (zero, bias)):
        np.testing.assert_array_equal(kernel(x, b, scale, *rest), dynamic_quantize_matmul(x, b, scale, *rest))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_tangents_are_quantized_on_the_way(tier, data):
    """Of one tensor, or of a sum that broadcasts."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    depth, width = data.draw(SIZES), data.draw(st.sampled_from([1, 5, 17]))
    shapes = [((7, 1), (9,)), ((9,), (1, 9)), ((3, 1, 4), (1, 5, 1)), ((2, 3), (2, 3)), ((6,), None)]
    one, other = data.draw(st.sampled_from(shapes))
    x = rng.standard_normal((*one, depth)).astype(np.float32) * data.draw(st.sampled_from([0, 0.1, 2, 9]))
    added = None if other is None else rng.standard_normal((*other, depth)).astype(np.float32)
    if data.draw(st.booleans()):
        x = np.asfortranarray(x)
    b = rng.integers(-128, 128, (depth, width)).astype(np.int8)
    inputs = (b, np.array(0.01, np.float32), None, rng.standard_normal(width).astype(np.float32))
    kernel = replacement(dynamic_quantize_matmul_of_tanh, [None, None, *inputs], {})
    wanted = dynamic_quantize_matmul_of_tanh(x, added, *inputs)
    given = kernel(guarded(x), None if added is None else guarded(added), *inputs)
    assert given.shape == wanted.shape
    np.testing.assert_array_equal(given, wanted)


def test_sums_that_do_not_broadcast_are_left_to_the_readable_kernel(kernels, rng):
    b, scale = rng.integers(-128, 128, (4, 5)).astype(np.int8), np.array(0.5, np.float32)
    kernel = replacement(dynamic_quantize_matmul_of_tanh, [None, None, b, scale, None, None], {})
    x = rng.standard_normal((3, 4)).astype(np.float32)
    for added in (x[:2], x[:, :1]):
        if added.shape[1] == 1:
            np.testing.assert_array_equal(
                kernel(x, added, b, scale, None, None), dynamic_quantize_matmul_of_tanh(x, added, b, scale, None, None)
            )
        else:
            with pytest.raises(ValueError, match="broadcast"):
                kernel(x, added, b, scale, None, None)


LIMITS = [0.0, -0.0, 1e-45, 3e-43, -3e-43, 1e-38, 1.0, -2.5, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_dynamic_quantize_linear_is_the_readable_one(tier, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shape = (*data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)), data.draw(SIZES))
    if data.draw(st.booleans()):
        x = rng.standard_normal(shape).astype(np.float32) * np.float32(data.draw(st.sampled_from([1, 1e-44, 1e30])))
    else:
        x = rng.choice(np.array(data.draw(st.lists(st.sampled_from(LIMITS), min_size=1)), np.float32), shape)
    with np.errstate(all="ignore"):
        wanted = dynamic_quantize_linear(x)
    given = replacement(dynamic_quantize_linear, [None], {})(guarded(x))
    for got, want in zip(given, wanted, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("rows", [1, 500])
def test_large_tensors_are_shared_among_threads(tier, rng, rows):
    x = rng.standard_normal((rows, 70_000 // rows)).astype(np.float32)
    for got, want in zip(replacement(dynamic_quantize_linear, [None], {})(x), dynamic_quantize_linear(x), strict=True):
        np.testing.assert_array_equal(got, want)
    b = rng.integers(-128, 128, (x.shape[1], 50)).astype(np.int8)
    inputs = (b, np.array(0.01, np.float32), None, None)
    kernel = replacement(dynamic_quantize_matmul, [None, *inputs], {})
    np.testing.assert_array_equal(kernel(x, *inputs), dynamic_quantize_matmul(x, *inputs))

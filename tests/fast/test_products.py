"""Matrix products: every layout and size, against float64, without a step beyond the operands."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.fast._checks import is_float32
from onnxeval.fast.activations import IDENTITY, RELU, Activation, Kind
from onnxeval.ops.math.matmul import gemm, matmul

SIZES = st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 47, 48, 49, 64, 96, 97, 130, 250, 600]))


HARD_SWISH = Activation(Kind.HARD_SWISH, 0.25, 0.5)


def numbers(data, shape):
    seed = data.draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def laid_out(values, transposed, at_end):
    """The same numbers, with the rows or the columns contiguous, at the border of readable memory."""
    if not transposed:
        return guarded(values, at_end=at_end)
    return guarded(np.ascontiguousarray(values.swapaxes(-1, -2)), at_end=at_end).swapaxes(-1, -2)


def assert_close(got, a, b, extras=(), activation=IDENTITY):
    exact = np.matmul(a.astype(float), b.astype(float)) + sum(extra.astype(float) for extra in extras)
    scale = np.matmul(abs(a).astype(float), abs(b).astype(float)) + sum(abs(extra) for extra in extras)
    low, high = activation.alpha, activation.beta
    swish = activation.kind == Kind.HARD_SWISH
    error = np.abs(got - (exact * np.clip(low * exact + high, 0, 1) if swish else np.clip(exact, low, high)))
    assert (error <= 2e-6 * scale + 1e-30).all()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_products_of_every_size(tier, data):
    m, k, n = data.draw(SIZES), data.draw(SIZES), data.draw(SIZES)
    at_end = data.draw(st.booleans())
    a = laid_out(numbers(data, (m, k)), data.draw(st.booleans()), at_end)
    b = laid_out(numbers(data, (k, n)), data.draw(st.booleans()), at_end)
    right = tier.Matrix(b) if data.draw(st.booleans()) else b
    row_bias = guarded(numbers(data, m), at_end=at_end) if data.draw(st.booleans()) else None
    column_bias = guarded(numbers(data, n), at_end=at_end) if data.draw(st.booleans()) else None
    residual = guarded(numbers(data, (m, n)), at_end=at_end) if data.draw(st.booleans()) else None
    activation = data.draw(st.sampled_from([IDENTITY, RELU, Activation(Kind.CLIP, -1.0, 2.0), HARD_SWISH]))
    out = guarded(np.full((m, n), np.nan, np.float32), at_end=at_end)
    tier.multiply(a, right, out, row_bias, column_bias, residual, *activation)
    rows = None if row_bias is None else row_bias[:, None]
    extras = [extra for extra in (rows, column_bias, residual) if extra is not None]
    assert_close(out, a, b, extras, activation)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_stacks_broadcast(tier, data):
    stack = data.draw(st.lists(st.integers(1, 3), max_size=3))
    m, k, n = (data.draw(st.integers(1, 60)) for _ in range(3))
    shapes = []
    for _ in range(2):
        own = [size if data.draw(st.booleans()) else 1 for size in stack[data.draw(st.integers(0, len(stack))) :]]
        shapes.append(tuple(own))
    a, b = numbers(data, (*shapes[0], m, k)), numbers(data, (*shapes[1], k, n))
    if data.draw(st.booleans()):
        a = np.ascontiguousarray(np.moveaxis(a, -2, 0))
        a = np.moveaxis(a, 0, -2)
    got = replacement(matmul, [None, None], {})(a, b)
    assert got.shape == np.matmul(a, b).shape
    assert_close(got, a, b)


def test_unpickled_arrays_are_taken_too():
    x = pickle.loads(pickle.dumps(np.ones((2, 3), np.float32)))
    assert is_float32(x)
    assert not is_float32(x.astype(">f4"))
    assert not is_float32(x.astype(np.float64))


def test_strides_of_axes_of_one_element_mean_nothing(tier):
    rng = np.random.default_rng(0)
    for stack, n in itertools.product(((2, 1), (1, 2), (2, 1, 3), (2,)), (1, 2, 20)):
        a = np.moveaxis(rng.normal(size=(2, *stack, 2)).astype(np.float32), 0, -2)
        b = rng.normal(size=(2, n)).astype(np.float32)
        for weights in (None, b):
            assert_close(replacement(matmul, [None, weights], {})(a, b), a, b)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_gemm_is_the_readable_one(tier, data):
    m, k, n = (data.draw(st.integers(1, 70)) for _ in range(3))
    flags = {name: data.draw(st.integers(0, 1)) for name in ("transA", "transB")}
    a = numbers(data, (k, m) if flags["transA"] else (m, k))
    b = numbers(data, (n, k) if flags["transB"] else (k, n))
    shape = data.draw(st.sampled_from([None, (n,), (1, n), (m, 1), (m, n), (1,), ()]))
    c = None if shape is None else numbers(data, shape)
    factors = {"alpha": data.draw(st.sampled_from([1.0, 0.5])), "beta": data.draw(st.sampled_from([1.0, 2.0]))}
    constant = data.draw(st.booleans())
    kernel = replacement(gemm, [None, b if constant else None, None], {**flags, **factors})
    got, wanted = kernel(a, b, c, **flags, **factors), gemm(a, b, c, **flags, **factors)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32])
def test_other_types_are_left_to_the_readable_kernel(kernels, dtype, constant):
    a, b = np.arange(6).reshape(2, 3).astype(dtype), np.arange(12).reshape(3, 4).astype(dtype)
    got = replacement(matmul, [None, b if constant else None], {})(a, b)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, matmul(a, b))


def test_what_is_wrong_is_told_by_the_readable_kernel(kernels):
    a, b = np.ones((2, 3), np.float32), np.ones((4, 2), np.float32)
    for constant in (None, b):
        with pytest.raises(ValueError, match="3 columns meet 4 rows"):
            replacement(matmul, [None, constant], {})(a, b)


def test_infinities_and_nan_stay_in_their_row(tier, rng):
    a, b = rng.standard_normal((9, 40)).astype(np.float32), rng.standard_normal((40, 50)).astype(np.float32)
    a[3, 5], a[7, 0] = np.nan, np.inf
    out = np.empty((9, 50), np.float32)
    tier.multiply(a, tier.Matrix(b), out, None, None, None, *RELU)
    assert np.isnan(out[3]).all()
    assert np.isfinite(np.delete(out, [3, 7], axis=0)).all()
    np.testing.assert_array_equal(out[7], np.where(b[0] > 0, np.inf, 0))


def test_buffers_that_do_not_fit_are_refused(kernels):
    a, b, out = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), np.ones((2, 4), np.float32)
    rest = (None, None, None, *IDENTITY)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.multiply(a, b, np.ones((2, 5), np.float32), *rest)
    with pytest.raises(TypeError, match="format d"):
        kernels.multiply(a.astype(float), b, out, *rest)
    with pytest.raises(ValueError, match="the column bias has 3 elements"):
        kernels.multiply(a, b, out, None, np.ones(3, np.float32), None, *IDENTITY)
    frozen = out.copy()
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        kernels.multiply(a, b, frozen, *rest)
    with pytest.raises(ValueError, match="no activation 99"):
        kernels.multiply(a, b, out, None, None, None, 99, 0.0, 0.0)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 33])
@pytest.mark.parametrize("columns", [1, 5, 64, 200])
def test_every_run_gives_the_same_bits(tier, rng, rows, columns):
    """Constant factors are packed at the second run only."""
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, 70), (70, columns)))
    multiply = replacement(matmul, [None, b], {})
    first = multiply(a, b)
    flags = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}
    turned = np.ascontiguousarray(b.T)
    gemms = replacement(gemm, [None, turned, None], flags)
    first_of_gemm = gemms(a, turned, None, **flags)
    for _ in range(3):
        np.testing.assert_array_equal(multiply(a, b), first)
        np.testing.assert_array_equal(gemms(a, turned, None, **flags), first_of_gemm)

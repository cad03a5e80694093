"""Products of quantised matrices are those of the readable kernels, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast.guarded import guarded
from onnxeval.fast import replacement
from onnxeval.ops.contrib.quantized_gemm import qgemm
from onnxeval.ops.math.quantized_matmul import qlinear_matmul

SIZES = st.sampled_from([1, 2, 3, 5, 8, 15, 16, 17, 48, 64, 70, 130])
TYPES = st.sampled_from([np.int8, np.uint8])


def drawn_operands(data):
    """A, B and Y with scales and zero points; powers of two make ties."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    m, k, n = (data.draw(SIZES) for _ in range(3))
    by_column = data.draw(st.booleans())

    def integers(shape, dtype):
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max + 1, shape).astype(dtype))

    def scale(shape, size):
        tied = 2.0 ** rng.integers(-3, 2, shape)
        return np.asarray(size * (tied if data.draw(st.booleans()) else rng.random(shape) + 0.1), np.float32)

    left, right, result = (data.draw(TYPES) for _ in range(3))
    columns = (n,) if by_column else ()
    a = (integers((m, k), left), scale((), 0.25), integers((), left))
    b = (integers((k, n), right), scale(columns, 0.25), integers(columns, right))
    y = (scale((), 16 * k**0.5), integers((), result))
    return rng, a, b, y


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_products_of_matrices(tier, data):
    _, a, b, y = drawn_operands(data)
    inputs = (*a, *b, *y)
    kernel = replacement(qlinear_matmul, [None, *inputs[1:]], {})
    got, wanted = kernel(guarded(a[0]), *inputs[1:]), qlinear_matmul(*inputs)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    batch = np.stack([a[0], a[0]])
    np.testing.assert_array_equal(kernel(batch, *inputs[1:]), qlinear_matmul(batch, *inputs[1:]))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_products_with_a_bias(tier, data):
    rng, a, b, y = drawn_operands(data)
    bias = data.draw(st.sampled_from([None, rng.integers(-50000, 50000, b[0].shape[1]).astype(np.int32)]))
    options = {"transB": data.draw(st.integers(0, 1))}
    weights = np.ascontiguousarray(b[0].T) if options["transB"] else b[0]
    inputs = (*a, weights, *b[1:], bias, *y)
    kernel = replacement(qgemm, [None, *inputs[1:]], options)
    np.testing.assert_array_equal(kernel(guarded(a[0]), *inputs[1:], **options), qgemm(*inputs, **options))


def test_what_is_left_to_the_readable_kernels(kernels):
    one, zero = np.array(0.5, np.float32), np.array(1, np.int8)
    weights = np.arange(12, dtype=np.int8).reshape(3, 4)
    constants = [None, one, zero, weights, one, zero, one, zero]
    assert replacement(qlinear_matmul, [None, one, zero, None, *constants[4:]], {}) is None
    assert replacement(qlinear_matmul, [*constants[:6], np.array(0, np.float32), zero], {}) is None
    assert replacement(qgemm, [*constants[:6], np.full(4, 2**31 - 1, np.int32), one, zero], {}) is None
    assert replacement(qgemm, [*constants[:6], None, None, None], {}) is None
    kernel = replacement(qlinear_matmul, constants, {})
    a = np.arange(6, dtype=np.int8).reshape(2, 3)
    for changed in (weights[::-1].copy(), weights):
        inputs = (a, *constants[1:3], changed, *constants[4:])
        np.testing.assert_array_equal(kernel(*inputs), qlinear_matmul(*inputs))
    with pytest.raises(ValueError, match="do not multiply"):
        kernel(a[:, :2], *constants[1:])
    sums, out = np.zeros((2, 3), np.int32), np.zeros((2, 3), np.uint8)
    ones, factors = np.ones(3), np.ones(3, np.float32)
    with pytest.raises(ValueError, match="for each column"):
        kernels.requantize(sums, out, None, ones[:2], factors, 1.0, 0)
    with pytest.raises(ValueError, match="300 is none"):
        kernels.requantize(sums, out, None, ones, factors, 1.0, 300)

"""MatMulInteger and QLinearMatMul against integer and rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import quantized_matmul as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

MATMUL = STANDARD["", "MatMulInteger", 10]
QLINEAR = STANDARD["", "QLinearMatMul", 21]
BYTES = [np.int8, np.uint8]
FLOAT8 = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz]


def numbers(shape, dtype, seed) -> np.ndarray:
    return np.random.default_rng(seed).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("left", BYTES)
@pytest.mark.parametrize("right", BYTES)
@pytest.mark.parametrize("row", [None, (), (1,), (3,), (3, 1)])
@pytest.mark.parametrize("column", [None, (), (1,), (2,), (1, 2)])
def test_matmul_integer(left, right, row, column):
    a, b = numbers((3, 4), left, 0), numbers((4, 2), right, 1)
    za = None if row is None else numbers(row, left, 2)
    zb = None if column is None else numbers(column, right, 3)
    result = MATMUL(a, b, za, zb)
    assert result.dtype == np.int32
    rows = [0] * 3 if za is None else np.resize(za, 3).tolist()
    columns = [0] * 2 if zb is None else np.resize(zb, 2).tolist()
    assert result.tolist() == [
        [sum((int(a[i, k]) - rows[i]) * (int(b[k, j]) - columns[j]) for k in range(4)) for j in range(2)]
        for i in range(3)
    ]


def test_matmul_integer_beyond_32_bits_wraps_around():
    a = np.full((1, 40000), 255, np.uint8)
    assert MATMUL(a, a.T, None, None).tolist() == [[(255 * 255 * 40000 + 2**31) % 2**32 - 2**31]]


def test_matmul_integer_in_batches():
    a, b = numbers((2, 1, 3, 4), np.uint8, 0), numbers((5, 4, 2), np.int8, 1)
    za, zb = numbers((2, 1, 3, 1), np.uint8, 2), numbers((5, 1, 2), np.int8, 3)
    exact = np.matmul(a.astype(int) - za, b.astype(int) - zb)
    np.testing.assert_array_equal(MATMUL(a, b, za, zb), exact)
    assert MATMUL(a[0, 0, 0], b[0, :, 0], None, None).shape == ()


@pytest.mark.parametrize(
    ("za", "zb", "text"),
    [
        ((2,), None, r"a_zero_point of shape \[2, 1\] is neither one number nor one a row of \[3, 4\]"),
        ((3, 4), None, "one a row"),
        (None, (3,), "b_zero_point .* one a column"),
        (None, (4, 2), "one a column"),
    ],
)
def test_zero_points_that_do_not_fit(za, zb, text):
    a, b = np.ones((3, 4), np.uint8), np.ones((4, 2), np.uint8)
    with pytest.raises(ValueError, match=text):
        MATMUL(a, b, None if za is None else np.ones(za, np.uint8), None if zb is None else np.ones(zb, np.uint8))


@pytest.mark.parametrize("output", BYTES)
@pytest.mark.parametrize("scale", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("by_line", [False, True])
def test_qlinear_matmul(output, scale, by_line):
    a, b = numbers((3, 5), np.uint8, 0), numbers((5, 4), np.int8, 1)
    za, zb = numbers(3 if by_line else (), np.uint8, 2), numbers(4 if by_line else (), np.int8, 3)
    rng = np.random.default_rng(4)
    sa = rng.uniform(0.01, 0.02, za.shape).astype(scale)
    sb = rng.uniform(0.01, 0.02, zb.shape).astype(scale)
    sy, zy = np.array(0.0625, scale), np.array(3, output)
    result = QLINEAR(a, sa, za, b, sb, zb, sy, zy)
    assert result.dtype == output
    info = np.iinfo(output)
    for i, j in np.ndindex(3, 4):
        ia, jb = (i, j) if by_line else ((), ())
        total = sum((int(a[i, k]) - int(za[ia])) * (int(b[k, j]) - int(zb[jb])) for k in range(5))
        exact = total * Fraction(float(sa[ia])) * Fraction(float(sb[jb])) / Fraction(float(sy))
        assert result[i, j] == min(max(round(exact) + 3, info.min), info.max)


def test_halves_go_to_the_even_number_before_the_zero_point():
    a, one, zero = np.array([[1], [3], [5]], np.int8), np.array([[1]], np.int8), np.array(0, np.int8)
    scale = np.array(1, np.float32)
    result = QLINEAR(a, scale, zero, one, scale, zero, np.array(2, np.float32), np.array(1, np.uint8))
    assert result.tolist() == [[1], [3], [3]]


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8(dtype):
    a, b = np.array([[1.5, -2.0], [4.0, 0.25]], dtype), np.array([[2.0, 16.0], [0.5, 3.0]], dtype)
    zero, scale = np.array(0, dtype), np.array(0.5, np.float16)
    result = QLINEAR(a, scale, zero, b, scale, zero, np.array(1, np.float16), zero)
    assert result.dtype == dtype
    exact = a.astype(float) @ b.astype(float) * 0.25
    np.testing.assert_array_equal(result.astype(float), exact.astype(np.float32).astype(dtype).astype(float))
    huge = QLINEAR(a, np.array(60000, np.float16), zero, b, scale, zero, np.array(1, np.float16), zero)
    assert huge[1, 1].astype(float) == float(ml_dtypes.finfo(dtype).max)  # saturates
    to_bytes = QLINEAR(a, scale, zero, b, scale, zero, np.array(1, np.float16), np.array(2, np.int8))
    np.testing.assert_array_equal(to_bytes, np.rint(exact).astype(int) + 2)


def test_a_vector_on_the_left_stays_a_vector_where_columns_have_scales():
    a, b = np.array([1, 2], np.uint8), np.array([[1, 2, 0], [3, 1, 4]], np.uint8)
    one, zero = np.array(1, np.float32), np.array(0, np.uint8)
    y = QLINEAR(a, one, zero, b, np.array([1, 2, 3], np.float32), np.zeros(3, np.uint8), one, zero)
    np.testing.assert_array_equal(y, np.array([7, 8, 24], np.uint8))


def test_the_output_has_one_scale():
    a, one = np.ones((2, 2), np.uint8), np.array(1, np.uint8)
    scale = np.array(1, np.float32)
    with pytest.raises(ValueError, match="y_scale must be a scalar"):
        QLINEAR(a, scale, one, a, scale, one, np.ones(2, np.float32), one)

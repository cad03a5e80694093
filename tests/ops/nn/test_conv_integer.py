"""ConvInteger and QLinearConv against sums of Python integers and fractions."""

from fractions import Fraction

import numpy as np
import pytest

from onnxeval.ops.nn.conv_integer import conv_integer, qlinear_conv

PLAIN = {"auto_pad": "NOTSET", "dilations": None, "group": 1, "kernel_shape": None, "pads": None, "strides": None}


def integer(x, w, x_zero_point=None, w_zero_point=None, **attributes):
    return conv_integer(x, w, x_zero_point, w_zero_point, allocate=np.empty, **{**PLAIN, **attributes})


def linear(*inputs, **attributes):
    return qlinear_conv(*inputs, allocate=np.empty, **{**PLAIN, **attributes})


def sums_2d(x, w, x_zero, w_zeros, pads, strides, group):
    """Exact sums over a padding that is the zero point."""
    n, _, height, width = x.shape
    m, channels, rows, columns = w.shape
    high = (height + pads[0] + pads[2] - rows) // strides[0] + 1
    wide = (width + pads[1] + pads[3] - columns) // strides[1] + 1
    y = np.zeros((n, m, high, wide), object)
    for i, f, r, s in np.ndindex(y.shape):
        for k, a, b in np.ndindex(channels, rows, columns):
            row, column = r * strides[0] + a - pads[0], s * strides[1] + b - pads[1]
            if 0 <= row < height and 0 <= column < width:
                channel = f // (m // group) * channels + k
                y[i, f, r, s] += (int(x[i, channel, row, column]) - x_zero) * (int(w[f, k, a, b]) - w_zeros[f])
    return y


def some(dtype, shape, seed):
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("x_dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("w_dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("per_map", [False, True])
def test_conv_integer(x_dtype, w_dtype, per_map):
    x, w = some(x_dtype, (2, 4, 5, 6), 1), some(w_dtype, (6, 2, 3, 2), 2)
    x_zero, w_zero = some(x_dtype, (), 3), some(w_dtype, (6,) if per_map else (), 4)
    attributes = {"pads": [1, 0, 2, 1], "strides": [2, 1], "group": 2}
    expected = sums_2d(x, w, int(x_zero), np.broadcast_to(w_zero, 6).tolist(), **attributes)
    y = integer(x, w, x_zero, w_zero, **attributes)
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, expected.astype(np.int32))


def test_zero_points_are_zero_by_default():
    x, w = some(np.uint8, (1, 1, 4), 1), some(np.int8, (1, 1, 2), 2)
    expected = [[[sum(int(x[0, 0, i + t]) * int(w[0, 0, t]) for t in range(2)) for i in range(3)]]]
    np.testing.assert_array_equal(integer(x, w), expected)
    np.testing.assert_array_equal(integer(x, w, None, np.zeros(1, np.int8)), expected)


def test_a_sum_beyond_32_bits_wraps_around():
    x, w = np.full((1, 40_000, 1), 255, np.uint8), np.full((1, 40_000, 1), 255, np.uint8)
    assert integer(x, w)[0, 0, 0] == 255 * 255 * 40_000 - 2**32


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("per_map", [False, True])
def test_qlinear_conv(dtype, per_map):
    x, w, b = some(np.uint8, (1, 4, 5, 5), 5), some(np.int8, (4, 2, 3, 3), 6), np.array([300, -5, 0, 70_000], np.int32)
    x_scale, y_scale = np.float32(0.037), np.float32(4.1)
    w_scale = np.array([0.11, 0.23, 0.5, 0.0625], np.float32) if per_map else np.array(0.3, np.float32)
    w_zero = some(np.int8, w_scale.shape, 7)
    y_zero = np.array(3, dtype)
    attributes = {"pads": [1, 1, 0, 2], "strides": [1, 2], "group": 2}
    sums = sums_2d(x, w, 131, np.broadcast_to(w_zero, 4).tolist(), **attributes) + b.reshape(4, 1, 1)
    scales = [
        Fraction(float(s)) * Fraction(float(x_scale)) / Fraction(float(y_scale)) for s in np.broadcast_to(w_scale, 4)
    ]
    limits = np.iinfo(dtype)
    expected = np.empty(sums.shape, dtype)
    for place in np.ndindex(sums.shape):
        expected[place] = min(max(round(sums[place] * scales[place[1]]) + 3, limits.min), limits.max)
    y = linear(x, x_scale, np.uint8(131), w, w_scale, w_zero, y_scale, y_zero, b, **attributes)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, expected)


def test_ties_go_to_even_before_the_zero_point():
    x, one = np.array([[[1, 3, 5, 7, 255]]], np.uint8), np.float32(1)
    w = np.ones((1, 1, 1), np.uint8)
    zero = np.uint8(0)
    y = linear(x, one, zero, w, one, zero, np.float32(2), np.uint8(1), None)
    np.testing.assert_array_equal(y[0, 0], [1, 3, 3, 5, 129])


X, W = np.zeros((1, 2, 3), np.uint8), np.zeros((4, 2, 2), np.uint8)
ONE, ZERO = np.array(1, np.float32), np.array(0, np.uint8)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({1: np.ones(2, np.float32)}, r"x_scale must be a scalar"),
        (
            {4: np.ones(3, np.float32), 5: np.zeros(3, np.uint8)},
            r"w_scale has shape \(3,\), expected a scalar or \(4,\)",
        ),
        ({4: np.ones(4, np.float32)}, r"w_scale has shape \(4,\), w_zero_point \(\), expected the same"),
        ({6: np.array(0, np.float32)}, "over y_scale 0.0 is not finite"),
        ({1: np.array(np.nan, np.float32)}, "is not finite"),
        ({8: np.zeros(3, np.int32)}, r"the bias has shape \(3,\), expected \(4,\)"),
        ({0: X[:, :1]}, "the input has 1 channels, expected 2 for each of 1 groups"),
    ],
)
def test_bad_qlinear_conv(changed, message):
    inputs = [X, ONE, ZERO, W, ONE, ZERO, ONE, ZERO, None]
    for position, value in changed.items():
        inputs[position] = value
    with pytest.raises(ValueError, match=message):
        linear(*inputs)


def test_bad_conv_integer():
    with pytest.raises(ValueError, match="x_zero_point must be a scalar"):
        integer(X, W, np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match=r"w_zero_point has shape \(2,\), expected a scalar or \(4,\)"):
        integer(X, W, None, np.zeros(2, np.uint8))

"""Pow: exact integers, any exponent type, one rounding."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import power  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

POW = STANDARD["", "Pow", 15]
EXPONENTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("exponent", [*EXPONENTS, np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_integers_are_exact_and_wrap_around(dtype, exponent):
    bits = np.iinfo(dtype).bits
    bases, powers = [-(2 ** (bits - 1)), -7, -2, -1, 0, 1, 2, 3, 10, 3037000499 % 2**31], [0, 1, 2, 3, 13, 19, 40]
    result = POW(np.array(bases, dtype)[:, None], np.array(powers, exponent))
    assert result.dtype == dtype
    half = 2 ** (bits - 1)
    assert result.tolist() == [[(a**p + half) % 2**bits - half for p in powers] for a in bases]


def test_an_int64_that_float64_cannot_hold():
    assert POW(np.array([3]), np.array([39])).tolist() == [3**39]
    assert POW(np.array([3]), np.array([39.0], np.float32)).tolist() == [3**39]


def test_exponents_beyond_int64():
    result = POW(np.array([-1, 1, 0, 2, 3]), np.array([2**64 - 1], np.uint64))
    assert result.tolist() == [-1, 1, 0, 0, (pow(3, 2**64 - 1, 2**64) + 2**63) % 2**64 - 2**63]


@pytest.mark.parametrize("exponent", [np.int32, np.float32])
def test_negative_powers_of_integers_truncate(exponent):
    result = POW(np.array([1, -1, -1, 2, -3, 7], np.int32), np.array([-3, -3, -2, -1, -2, -5], exponent))
    assert result.tolist() == [1, -1, 1, 0, 0, 0]
    with pytest.raises(ValueError, match=r"0 to the power -1.* divides by zero"):
        POW(np.array([0], np.int32), np.array([-1], exponent))


def test_fractional_powers_of_integers_truncate():
    result = POW(np.array([4, 9, 2, 2, 10], np.int64), np.array([0.5, 0.5, 0.5, 1.5, 0.301], np.float64))
    assert result.tolist() == [2, 3, 1, 2, 1]
    mixed = POW(np.array([3, 16]), np.array([39.0, 0.5], np.float32))
    assert mixed.tolist() == [3**39, 4]
    assert POW(np.array([1, 0]), np.array([np.nan, np.inf])).tolist() == [1, 0]


@pytest.mark.parametrize(("base", "exponent"), [(-2, 0.5), (2, np.nan), (2, np.inf), (10**9, 1.5)])
def test_powers_that_no_integer_can_hold(base, exponent):
    with pytest.raises(ValueError, match=f"{base} to the power {exponent} is outside int32"):
        POW(np.array([base], np.int32), np.array([exponent]))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("exponent", [*EXPONENTS, np.float32, np.float64])
def test_floats(dtype, exponent):
    bases, powers = [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0], [0, 1, 2, 3, 5]
    result = POW(np.array(bases, dtype)[:, None], np.array(powers, exponent))
    assert result.dtype == dtype
    expected = np.array([[a**p for p in powers] for a in bases])
    np.testing.assert_array_equal(result.astype(float), expected)


def test_the_parity_of_exponents_that_no_float_holds():
    odd, even = 2**53 + 1, 2**53 + 2
    result = POW(np.array([-1.0, -1.0, -0.0, np.nan], np.float32), np.array([odd, even, odd, odd]))
    np.testing.assert_array_equal(result, np.array([-1, 1, -0.0, np.nan], np.float32))
    assert np.signbit(result[2])
    assert POW(np.array([-1.0]), np.array([2**24 + 1], np.int32)).tolist() == [-1]
    assert POW(np.array([-1.0, -1.0], np.float32), np.array([-3, -2])).tolist() == [-1, 1]


def test_special_numbers():
    x = np.array([-8.0, 0.0, -0.0, np.inf, np.nan, 1.0], np.float32)
    y = np.array([1 / 3, -1.0, -3.0, 0.0, 0.0, np.nan], np.float32)
    np.testing.assert_array_equal(POW(x, y), np.array([np.nan, np.inf, -np.inf, 1, 1, 1], np.float32))


def test_bfloat16_is_rounded_once():
    # Just above the midpoint of 1 and its neighbour: float32 alone would land on the tie and go down.
    wanted = 1 + 2**-8 + 2**-40
    result = POW(np.array([2.0], ml_dtypes.bfloat16), np.array([math.log2(wanted)]))
    assert result.astype(float).tolist() == [1 + 2**-7]


def test_version_1():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    old = STANDARD["", "Pow", 1]
    y = np.array([2, 3], np.float32)
    np.testing.assert_array_equal(old(x, y, axis=0, broadcast=1), [[0, 1, 4], [27, 64, 125]])
    with pytest.raises(ValueError, match="broadcast is 0"):
        old(x, y, axis=None, broadcast=0)


def test_empty_and_rank_0():
    assert POW(np.zeros((0, 2), np.int32), np.ones(2, np.int32)).shape == (0, 2)
    assert POW(np.array(3, np.int64), np.array(2.0, np.float32)) == 9
    assert POW(np.array(3, np.float16), np.array(2, np.int8)) == 9

from __future__ import annotations

import numpy as np
import pytest

from onnxeval.ops.nn import shrink  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

SHRINK = STANDARD["", "Shrink", 9]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats(dtype):
    x = np.array([-2, -1.5, -1, 0, 1.5, 2, np.inf, -np.inf, np.nan], dtype)
    y = SHRINK(x, lambd=1.5, bias=0.5)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, np.array([-1.5, 0, 0, 0, 0, 1.5, np.inf, -np.inf, 0], dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_integers(dtype):
    low = np.iinfo(dtype).min
    x = np.array([low, 0, 1, 2, 100], dtype)
    y = SHRINK(x, lambd=1.5, bias=1.5)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, np.array([low + 1 if low else 0, 0, 0, 1, 99], dtype))


def test_large_integers_compare_exactly():
    x = np.array([2**53, 2**53 + 1, -(2**53), -(2**53) - 1], np.int64)
    np.testing.assert_array_equal(SHRINK(x, lambd=float(2**53), bias=0.0), [0, x[1], 0, x[3]])


@pytest.mark.parametrize("lambd", [-0.5, -1.5, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_the_first_condition_wins(lambd, dtype):
    x = np.arange(-3, 4).astype(dtype)
    expected = [v + 1 if v < -lambd else v - 1 if v > lambd else 0 for v in x.tolist()]
    np.testing.assert_array_equal(SHRINK(x, lambd=lambd, bias=1.0), np.array(expected, dtype))


def test_a_bias_that_does_not_fit():
    with pytest.raises(ValueError, match=r"bias 300\.0 does not fit int8"):
        SHRINK(np.zeros(1, np.int8), lambd=0.5, bias=300.0)


def test_rank_zero():
    assert SHRINK(np.array(3, np.float32), lambd=0.5, bias=1.0) == 2

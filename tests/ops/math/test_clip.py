from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import clip as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

CLIP = STANDARD["", "Clip", 13]
ATTRIBUTES = STANDARD["", "Clip", 6]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOAT32_MAX = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_bounds(dtype):
    x = np.array([0, 3, 5, 7, 100], dtype)
    low, high = np.array(3, dtype), np.array(7, dtype)
    for bounds, expected in [
        ((low, high), [3, 3, 5, 7, 7]),
        ((low, None), [3, 3, 5, 7, 100]),
        ((None, high), [0, 3, 5, 7, 7]),
        ((None, None), [0, 3, 5, 7, 100]),
        ((high, low), [3, 3, 3, 3, 3]),
    ]:
        result = CLIP(x, *bounds)
        assert result.dtype == dtype
        assert result.astype(float).tolist() == expected


def test_large_integers_stay_exact():
    x = np.array([2**53 + 1, 2**63 - 1])
    assert CLIP(x, np.array(0), np.array(2**63 - 1)).tolist() == x.tolist()
    x = np.array([2**64 - 1, 2**53 + 1], np.uint64)
    assert CLIP(x, None, np.array(2**64 - 2, np.uint64)).tolist() == [2**64 - 2, 2**53 + 1]


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity(dtype):
    x = np.array([np.nan, -np.inf, np.inf], dtype)
    low, high = np.array(-1, dtype), np.array(1, dtype)
    np.testing.assert_array_equal(CLIP(x, low, high).astype(float), [np.nan, -1, 1])
    np.testing.assert_array_equal(CLIP(x, None, None).astype(float), x.astype(float))
    nan = np.array(np.nan, dtype)
    np.testing.assert_array_equal(CLIP(x, nan, nan).astype(float), x.astype(float))


def test_bounds_are_scalars():
    assert CLIP(np.ones(()), np.array([2.0]), None).shape == ()
    with pytest.raises(ValueError, match="max must be a scalar"):
        CLIP(np.ones(2), None, np.ones(2))
    with pytest.raises(ValueError, match="min must be a scalar"):
        CLIP(np.ones(2), np.ones((0,)), None)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("low", "high"), [(None, None), (-FLOAT32_MAX, FLOAT32_MAX)])
def test_attributes_default_to_the_limits_of_the_type(dtype, low, high):
    limit = np.finfo(dtype).max
    x = np.array([-np.inf, -limit, 2, limit, np.inf, np.nan], dtype)
    expected = np.array([-limit, -limit, 2, limit, limit, np.nan], dtype)
    result = ATTRIBUTES(x, min=low, max=high)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_attributes(dtype):
    x = np.array([-2, 0.5, 3], dtype)
    np.testing.assert_array_equal(ATTRIBUTES(x, min=-1.0, max=1.0), [-1, 0.5, 1])
    np.testing.assert_array_equal(STANDARD["", "Clip", 1](x, min=-1.0, max=None), [-1, 0.5, 3])
    assert ATTRIBUTES(x[:0], min=0.0, max=1.0).shape == (0,)

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import topk as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

TOPK = STANDARD["", "TopK", 24]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def ranked(row: list, k: int, largest: int) -> list[int]:
    """The indices by the text: by value, then by index; NaN above all."""

    def key(i):
        nan = row[i] != row[i]
        value = (nan, 0 if nan else row[i])
        return (tuple(-v for v in value) if largest else value, i)

    return sorted(range(len(row)), key=key)[:k]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
def test_by_value_then_by_index(dtype, largest, axis):
    x = np.random.default_rng(0).integers(0, 5, (4, 7, 5)).astype(dtype)  # many ties
    if dtype in FLOATS:
        x[1, 2, 3] = x[0, 0, 0] = np.nan
        x[2, 1, 1], x[3, 1, 1] = np.inf, -np.inf
    values, indices = TOPK(x, np.array([3]), axis=axis, largest=largest, sorted=1)
    assert (values.dtype, indices.dtype) == (dtype, np.int64)
    lines = np.moveaxis(x.astype(object) if dtype in INTEGERS else x.astype(float), axis, -1)
    expected = [[ranked(row, 3, largest) for row in plane] for plane in lines.tolist()]
    assert np.moveaxis(indices, axis, -1).tolist() == expected
    np.testing.assert_array_equal(values.astype(float), np.take_along_axis(x, indices, axis).astype(float))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_extremes(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([high - 1, low, high, low + 1], dtype)
    assert TOPK(x, np.array([4]), axis=0, largest=1, sorted=1)[1].tolist() == [2, 0, 3, 1]
    assert TOPK(x, np.array([4]), axis=0, largest=0, sorted=1)[1].tolist() == [1, 3, 0, 2]


def test_old_versions():
    x = np.array([[3, 1, 3], [0, 5, 4]], np.float32)
    for values, indices in [
        STANDARD["", "TopK", 1](x, axis=-1, k=2),
        STANDARD["", "TopK", 10](x, np.array([2]), axis=-1),
        STANDARD["", "TopK", 11](x, np.array([2]), axis=-1, largest=1, sorted=0),
    ]:
        assert values.tolist() == [[3, 3], [5, 4]]
        assert indices.tolist() == [[0, 2], [1, 2]]


def test_none_and_too_many():
    x = np.ones((2, 3), np.float32)
    values, indices = TOPK(x, np.array([0]), axis=1, largest=1, sorted=1)
    assert values.shape == indices.shape == (2, 0)
    assert TOPK(np.ones((0, 3)), np.array([2]), axis=1, largest=1, sorted=1)[0].shape == (0, 2)
    for k in (4, -1):
        with pytest.raises(ValueError, match=rf"k {k} is outside \[0, 3\]"):
            TOPK(x, np.array([k]), axis=1, largest=1, sorted=1)
    with pytest.raises(ValueError, match="k must be a scalar"):
        TOPK(x, np.array([1, 2]), axis=1, largest=1, sorted=1)
    with pytest.raises(ValueError, match="axis 2"):
        TOPK(x, np.array([1]), axis=2, largest=1, sorted=1)

"""Unique against a search of the slices one by one."""

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.tensor.unique import unique


def found(slices, sorted_):
    """The text's four outputs, the first as indices: slices are lists."""
    distinct = []
    for one in slices:
        if one not in distinct:
            distinct.append(one)
    if sorted_:
        distinct.sort()
    first = [slices.index(one) for one in distinct]
    return first, [distinct.index(one) for one in slices], [slices.count(one) for one in distinct]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, np.float64, np.bool_, object])
@pytest.mark.parametrize("sorted_", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_each_once(dtype, sorted_, axis):
    x = np.random.default_rng(4).integers(0, 2 if axis is not None else 9, (6, 3, 2))
    x = np.array(["", "b", "ab", "é", "a", "ba", "z", "Z", "aa"], object)[x] if dtype is object else x.astype(dtype)
    slices = x.ravel().tolist() if axis is None else [s.ravel().tolist() for s in np.moveaxis(x, axis, 0)]
    y, indices, inverse, counts = unique(x, axis=axis, sorted=sorted_, n_outputs=4)
    assert y.dtype == dtype
    assert (indices.tolist(), inverse.tolist(), counts.tolist()) == found(slices, sorted_)
    assert y.tolist() == (x.ravel()[indices] if axis is None else x.take(indices, axis)).tolist()
    assert {part.dtype for part in (indices, inverse, counts)} == {np.dtype(np.int64)}


def lists(x, **attributes):
    return [part.tolist() for part in unique(np.array(x), n_outputs=4, **{"axis": None, "sorted": 1, **attributes})]


def test_worked_examples():
    assert lists([2, 1, 1, 3, 4, 3], sorted=0) == [[2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]]
    assert lists([[1, 3], [2, 3]]) == [[1, 2, 3], [0, 2, 1], [0, 2, 1, 2], [1, 1, 2]]
    rows = lists([[1, 0, 0], [1, 0, 0], [2, 3, 4]], axis=0)
    assert rows == [[[1, 0, 0], [2, 3, 4]], [0, 2], [0, 0, 1], [2, 1]]
    middle = lists([[[1.0, 1.0], [0.0, 1.0], [2.0, 1.0], [0.0, 1.0]]] * 2, axis=1)
    assert middle == [[[[0, 1], [1, 1], [2, 1]]] * 2, [1, 0, 2], [1, 0, 2, 0], [2, 1, 1]]


def test_nan_is_one_and_comes_last_and_zeros_are_equal():
    x = np.array([np.nan, 2, -0.0, np.nan, 0.0, -np.inf])
    y, indices, inverse, counts = unique(x, axis=None, sorted=1, n_outputs=4)
    np.testing.assert_array_equal(y, [-np.inf, -0.0, 2, np.nan])
    assert np.signbit(y[1])
    assert (indices.tolist(), inverse.tolist(), counts.tolist()) == ([5, 2, 1, 0], [3, 2, 1, 3, 1, 0], [1, 2, 1, 2])
    rows = unique(np.array([[np.nan, 1], [np.nan, 1]]), axis=0, sorted=1, n_outputs=2)
    assert [part.shape for part in rows] == [(1, 2), (1,)]


def test_empty_and_rank_0():
    assert lists(np.zeros((0, 2))) == [[], [], [], []]
    assert lists(np.zeros((0, 2)), axis=0) == [[], [], [], []]
    assert lists(np.zeros((3, 0)), axis=0, sorted=0) == [[[]], [0], [0, 0, 0], [3]]
    assert lists(5) == [[5], [0], [0], [1]]
    with pytest.raises(ValueError, match="axis 0 is outside"):
        lists(5, axis=0)

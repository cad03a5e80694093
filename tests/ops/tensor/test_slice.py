"""Slice against the standard's steps for one axis, written out element by element."""

import itertools
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.tensor.slice import slice_attributes, slice_inputs

I64 = np.iinfo(np.int64)
I32 = np.iinfo(np.int32)
ints = partial(np.array, dtype=np.int64)


def places(start, end, step, size):
    """The indices the text of Slice-13 names."""
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        start, end = max(0, min(start, size)), max(0, min(end, size))
        return list(itertools.takewhile(lambda at: at < end, range(start, size + 1, step)))
    start, end = min(max(0, start), size - 1), max(-1, min(end, size - 1))
    return list(itertools.takewhile(lambda at: at > end, range(start, -2, step))) if size else []


@pytest.mark.parametrize("size", [0, 1, 5])
def test_every_bound_on_one_axis(size):
    x = np.arange(size, dtype=np.int16)
    bounds = [I64.min, -7, -size, -1, 0, 1, size - 1, size, 9, I64.max]
    for start, end, step in itertools.product(bounds, bounds, [I64.min, -3, -1, 1, 2, I64.max]):
        got = slice_inputs(x, ints([start]), ints([end]), None, ints([step]))
        assert got.tolist() == places(start, end, step, size), (start, end, step)


def test_worked_examples():
    x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert slice_inputs(x, ints([1, 0]), ints([2, 3]), ints([0, 1]), ints([1, 2])).tolist() == [[5, 7]]
    assert slice_inputs(x, ints([0, 1]), ints([-1, 1000]), None, None).tolist() == [[2, 3, 4]]
    assert slice_attributes(x, starts=(1, 0), ends=(2, 3), axes=(0, 1)).tolist() == [[5, 6, 7]]
    assert slice_attributes(x, starts=(0, 1), ends=(-1, 1000), axes=None).tolist() == [[2, 3, 4]]


def test_axes_in_any_order_from_the_back_and_absent():
    x = np.arange(24).reshape(2, 3, 4)
    got = slice_inputs(x, ints([-1, 0]), ints([I32.min, 1]), ints([-1, 1]), ints([-2, 1]))
    assert got.tolist() == x[:, 0:1, ::-2].tolist()
    assert slice_inputs(x, ints([1]), ints([2]), None, ints([-1])).shape == (0, 3, 4)
    assert slice_inputs(x, ints([]), ints([]), ints([]), None).tolist() == x.tolist()
    assert slice_inputs(np.array(3.0), ints([]), ints([]), None, None).shape == ()


@pytest.mark.parametrize("dtype", [object, np.bool_, np.complex64, ml_dtypes.bfloat16])
def test_every_kind_of_element(dtype):
    x = np.array(["a", "b", ""], object) if dtype is object else np.array([1, 0, 1], dtype)
    got = slice_inputs(x, np.array([2], np.int32), np.array([I32.min], np.int32), None, np.array([-1], np.int32))
    assert got.dtype == dtype
    assert got.tolist() == x.tolist()[::-1]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((ints([0]), ints([2]), None, ints([0])), "step is 0"),
        ((ints([0]), ints([2, 3]), None, None), "1 starts, 2 ends"),
        ((ints([0, 0]), ints([2, 3]), ints([1, -1]), None), "twice"),
        ((ints([0]), ints([2]), ints([2]), None), "axes 2 is outside"),
        ((ints([0, 0, 0]), ints([2, 3, 1]), None, None), "axes 2 is outside"),
        ((ints(0), ints([2]), None, None), "starts has rank 0"),
    ],
)
def test_errors(bounds, message):
    with pytest.raises(ValueError, match=message):
        slice_inputs(np.zeros((3, 4)), *bounds)

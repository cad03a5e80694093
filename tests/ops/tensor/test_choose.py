"""Where, NonZero, IsNaN, IsInf and OneHot."""

import ml_dtypes
import numpy as np
import pytest

from onnxeval import dtypes
from onnxeval.registry import OpKey, Registry

FLOAT8 = [dtypes.FLOAT8E4M3FN, dtypes.FLOAT8E4M3FNUZ, dtypes.FLOAT8E5M2, dtypes.FLOAT8E5M2FNUZ]
FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, *FLOAT8]


def kernel(op_type, version):
    return Registry.standard()[OpKey("", op_type, version)]


@pytest.mark.parametrize("dtype", [np.float32, object, ml_dtypes.bfloat16, np.complex64, np.uint64])
def test_where_broadcasts_three_ways(dtype):
    condition = np.array([[True], [False]])
    x, y = np.arange(3).astype(dtype), np.array(7).astype(dtype)
    got = kernel("Where", 16)(condition, x, y)
    assert got.dtype == dtype
    assert got.tolist() == [[x[0], x[1], x[2]], [y.item()] * 3]


def test_where_of_nothing_and_refuses():
    assert kernel("Where", 9)(np.array(True), np.zeros((0, 2)), np.ones(2)).shape == (0, 2)
    with pytest.raises(ValueError, match="broadcast"):
        kernel("Where", 9)(np.array([True] * 3), np.zeros(2), np.zeros(3))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, ml_dtypes.bfloat16, np.complex64, object])
def test_non_zero(dtype):
    x = np.array([[1, 0, 2], [0, 0, 3]]).astype(dtype)
    if dtype is object:
        x = np.array([["a", "", "b"], ["", "", "0"]], object)
    got = kernel("NonZero", 13)(x)
    assert got.dtype == np.int64
    assert got.tolist() == [[0, 0, 1], [0, 2, 2]]


def test_non_zero_of_special_values_and_edges():
    assert kernel("NonZero", 9)(np.array([np.nan, -0.0, np.inf], np.float32)).tolist() == [[0, 2]]
    assert kernel("NonZero", 9)(np.array(5)).shape == (0, 1)
    assert kernel("NonZero", 9)(np.array(0)).shape == (0, 0)
    assert kernel("NonZero", 9)(np.array("", object)).shape == (0, 0)
    assert kernel("NonZero", 9)(np.zeros((2, 3, 4))).shape == (3, 0)
    assert kernel("NonZero", 9)(np.zeros((2, 0))).shape == (2, 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_is_nan(dtype):
    x = np.array([0.0, np.nan, 1.0, -np.nan, -2.0]).astype(dtype)
    got = kernel("IsNaN", 20)(x)
    assert got.dtype == np.bool_
    assert got.tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("negative", "positive"), [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_is_inf(dtype, negative, positive):
    with np.errstate(all="ignore"):
        x = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -1.0]).astype(dtype)
    has_infinities = dtype not in FLOAT8 or dtype == dtypes.FLOAT8E5M2
    got = kernel("IsInf", 20)(x, detect_negative=negative, detect_positive=positive)
    assert got.dtype == np.bool_
    assert got.tolist() == [bool(positive) and has_infinities, bool(negative) and has_infinities, *[False] * 4]


def test_is_inf_of_a_scalar():
    assert bool(kernel("IsInf", 10)(np.array(-np.inf), detect_negative=1, detect_positive=0))


def hot(indices, depth, values, axis, from_the_back=True):
    """One element at a time, from the text."""
    axis = axis % (indices.ndim + 1)
    output = np.empty((*indices.shape[:axis], depth, *indices.shape[axis:]), values.dtype)
    for place in np.ndindex(output.shape):
        index = int(indices[place[:axis] + place[axis + 1 :]])
        if from_the_back and -depth <= index < 0:
            index += depth
        output[place] = values[1] if index == place[axis] else values[0]
    return output


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 2)])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float32, np.float16])
@pytest.mark.parametrize("depth", [5, 0, 1])
def test_one_hot(shape, dtype, depth):
    indices = np.array(np.random.default_rng(1).integers(-8, 8, shape), dtype)
    values = np.array([2.5, -1], np.float64)
    for axis in range(-len(shape) - 1, len(shape) + 1):
        size = np.array([depth], np.float32)
        for version in (11, 28):
            got = kernel("OneHot", version)(indices, size, values, axis=axis, allocate=np.empty)
            np.testing.assert_array_equal(got, hot(indices, depth, values, axis))
        got = kernel("OneHot", 9)(indices, size, values, axis=axis, allocate=np.empty)
        np.testing.assert_array_equal(got, hot(indices, depth, values, axis, from_the_back=False))


def test_one_hot_of_extreme_integers():
    values = np.array([0, 1], np.int32)
    big = np.array([2**64 - 1, 2**63, 2], np.uint64)
    assert kernel("OneHot", 28)(big, np.array(3), values, axis=-1, allocate=np.empty).tolist() == [
        [0] * 3,
        [0] * 3,
        [0, 0, 1],
    ]
    small = np.array([127, -128, -1], np.int8)
    got = kernel("OneHot", 28)(small, np.array(200, np.uint64), values, axis=-1, allocate=np.empty)
    assert [row.nonzero()[0].tolist() for row in got] == [[127], [72], [199]]
    got = kernel("OneHot", 9)(small, np.array(200), values, axis=-1, allocate=np.empty)
    assert [row.nonzero()[0].tolist() for row in got] == [[127], [], []]


def test_one_hot_casts_towards_zero():
    indices = np.array([1.9, -0.5, -1.9], np.float32)
    got = kernel("OneHot", 11)(indices, np.array(3.9), np.array(["off", "on"], object), axis=0, allocate=np.empty)
    assert got.T.tolist() == [["off", "on", "off"], ["on", "off", "off"], ["off", "off", "on"]]


def test_one_hot_refuses():
    values, one = np.array([0, 1]), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="depth -1 is negative"):
        kernel("OneHot", 11)(one, np.array(-1), values, axis=-1, allocate=np.empty)
    with pytest.raises(ValueError, match=r"depth is of shape \[2\]"):
        kernel("OneHot", 11)(one, np.array([1, 2]), values, axis=-1, allocate=np.empty)
    with pytest.raises(ValueError, match=r"values are of shape \[3\]"):
        kernel("OneHot", 11)(one, np.array(2), np.array([0, 1, 2]), axis=-1, allocate=np.empty)
    with pytest.raises(ValueError, match="axis 2"):
        kernel("OneHot", 11)(one, np.array(2), values, axis=2, allocate=np.empty)

    def refuse(shape, dtype):
        raise MemoryError(shape)

    with pytest.raises(MemoryError):
        kernel("OneHot", 11)(one, np.array(2**60), values, axis=0, allocate=refuse)
    empty = kernel("OneHot", 11)(one[:0], np.array(10**12), values, axis=-1, allocate=np.empty)
    assert empty.shape == (0, 10**12)

"""The Scatter family against the loops of the text."""

import operator

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.tensor.scatter import scatter_elements, scatter_nd
from onnxeval.registry import STANDARD

RNG = np.random.default_rng(3)
FUNCTIONS = {"none": lambda old, new: new, "add": operator.add, "mul": operator.mul, "max": max, "min": min}


def looped_elements(data, indices, updates, axis, reduction):
    output = data.astype(object)
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[axis] = int(indices[place])
        output[tuple(target)] = FUNCTIONS[reduction](output[tuple(target)], updates[place].item())
    return output.tolist()


def looped_nd(data, indices, updates, reduction):
    output = data.astype(object)
    for place in np.ndindex(indices.shape[:-1]):
        target = tuple(int(i) for i in indices[place])
        for rest in np.ndindex(data.shape[len(target) :]):
            new = updates[(*place, *rest)].item()
            output[(*target, *rest)] = FUNCTIONS[reduction](output[(*target, *rest)], new)
    return output.tolist()


@pytest.mark.parametrize("reduction", FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_elements_with_duplicates(reduction, axis, index_type):
    data = RNG.integers(-9, 9, (4, 5, 3))
    shape = tuple(7 if at == axis % 3 else size - 1 for at, size in enumerate(data.shape))
    indices = RNG.integers(-data.shape[axis], data.shape[axis], shape).astype(index_type)
    updates = RNG.integers(-3, 4, shape)
    before = data.copy()
    got = scatter_elements(data, indices, updates, axis=axis, reduction=reduction)
    assert got.tolist() == looped_elements(data, indices, updates, axis, reduction)
    assert data.tolist() == before.tolist()


@pytest.mark.parametrize("reduction", FUNCTIONS)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_nd_with_duplicates(reduction, depth):
    data = RNG.integers(-9, 9, (3, 4, 2))
    indices = np.stack([RNG.integers(-size, size, (2, 5)) for size in data.shape[:depth]] or [np.zeros((2, 5))], -1)
    indices = indices.astype(np.int64)[..., :depth]
    updates = RNG.integers(-3, 4, (2, 5, *data.shape[depth:]))
    got = scatter_nd(data, indices, updates, reduction=reduction)
    assert got.tolist() == looped_nd(data, indices, updates, reduction)


def test_worked_examples():
    data, indices = np.zeros((3, 3), np.float32), np.array([[1, 0, 2], [0, 2, 1]])
    updates = np.array([[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]], np.float32)
    wanted = np.array([[2.0, 1.1, 0.0], [1.0, 0.0, 2.2], [0.0, 2.1, 1.2]], np.float32)
    for name, version in (("Scatter", 9), ("Scatter", 11), ("ScatterElements", 11), ("ScatterElements", 18)):
        assert STANDARD["", name, version](data, indices, updates, axis=0).tolist() == wanted.tolist()
    row = scatter_elements(np.array([[1.0, 2, 3, 4, 5]]), np.array([[1, 3]]), np.array([[1.1, 2.1]]), axis=1)
    assert row.tolist() == [[1.0, 1.1, 3.0, 2.1, 5.0]]
    got = scatter_nd(np.arange(1, 9), np.array([[4], [3], [1], [7]]), np.array([9, 10, 11, 12]))
    assert got.tolist() == [1, 11, 3, 10, 9, 6, 7, 12]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bits_round_once(dtype):
    """1 + 300 * 2^-9 and 300 * 2^-13: each small step alone would round back to 1."""
    step = 2.0**-9 if dtype is ml_dtypes.bfloat16 else 2.0**-13
    ones, many = np.ones(1, dtype), np.full(300, step, dtype)
    for got in (
        scatter_elements(ones, np.zeros(300, np.int64), many, axis=0, reduction="add"),
        scatter_nd(ones, np.zeros((300, 1), np.int64), many, reduction="add"),
    ):
        assert got.dtype == dtype
        assert got[0] == np.float32(1 + 300 * step).astype(dtype)


def test_integers_wrap_and_nan_stays():
    at = np.zeros(2, np.int64)
    assert (
        scatter_elements(np.array([100], np.int8), at, np.array([100, 100], np.int8), axis=0, reduction="add")[0] == 44
    )
    big = np.array([2**63], np.uint64)
    assert scatter_elements(big, at[:1], big + np.uint64(1), axis=0, reduction="max")[0] == 2**63 + 1
    for reduction in ("max", "min"):
        with np.errstate(invalid="ignore"):
            got = scatter_elements(np.array([1.0]), at, np.array([np.nan, 2.0]), axis=0, reduction=reduction)
        assert np.isnan(got[0])


def test_strings_and_booleans_are_put():
    words = np.array(["a", "b"], object)
    assert scatter_elements(words, np.array([-1]), np.array(["z"], object), axis=0).tolist() == ["a", "z"]
    flags = scatter_nd(np.zeros(3, np.bool_), np.array([[2]]), np.array([True]), reduction="none")
    assert flags.tolist() == [False, False, True]
    with pytest.raises(TypeError, match="'add' has no meaning for string"):
        scatter_elements(words, np.array([0]), np.array(["z"], object), axis=0, reduction="add")
    with pytest.raises(TypeError, match="'max' has no meaning for complex64"):
        scatter_nd(np.zeros(1, np.complex64), np.array([[0]]), np.ones(1, np.complex64), reduction="max")


def test_nothing_to_put():
    x = np.arange(6.0).reshape(2, 3)
    assert scatter_elements(x, np.zeros((2, 0), np.int64), np.zeros((2, 0)), axis=1).tolist() == x.tolist()
    assert scatter_nd(x, np.zeros((0, 2), np.int64), np.zeros(0)).tolist() == x.tolist()
    assert scatter_nd(np.zeros((2, 0)), np.array([[1]]), np.zeros((1, 0)), reduction="add").shape == (2, 0)


@pytest.mark.parametrize(
    ("indices", "updates", "axis", "message"),
    [
        ([[3]], [[1.0]], 0, r"index 3 is outside \[-3, 2\]"),
        ([[-4]], [[1.0]], 0, r"index -4 is outside"),
        ([[0]], [[1.0, 2.0]], 0, "two shapes"),
        ([0], [1.0], 0, "rank 1, data has 2"),
        ([[0] * 5], [[0.0] * 5], 0, "exceed data"),
        ([[0]], [[1.0]], 2, "axis 2 is outside"),
    ],
)
def test_errors_of_elements(indices, updates, axis, message):
    with pytest.raises(ValueError, match=message):
        scatter_elements(np.zeros((3, 4)), np.array(indices), np.array(updates), axis=axis)


@pytest.mark.parametrize(
    ("indices", "updates", "reduction", "message"),
    [
        ([[3, 0]], [1.0], "none", r"index 3 is outside \[-3, 2\]"),
        ([[0, -5]], [1.0], "none", r"index -5 is outside \[-4, 3\]"),
        ([[0]], [1.0], "none", r"updates are \[1\], expected \[1, 4\]"),
        ([[0, 0, 0]], [1.0], "none", "address 3 axes"),
        ([[0, 0]], [1.0], "mean", "reduction 'mean'"),
        (0, 1.0, "none", "indices 0, expected 1 at least"),
    ],
)
def test_errors_of_nd(indices, updates, reduction, message):
    with pytest.raises(ValueError, match=message):
        scatter_nd(np.zeros((3, 4)), np.array(indices), np.array(updates), reduction=reduction)


@pytest.mark.parametrize("name", ["ScatterElements", "ScatterND"])
def test_version_16_adds_and_multiplies_alone(name):
    data, updates = np.array([1, 2, 3]), np.array([5, 7])
    indices = np.array([1, 1]) if name == "ScatterElements" else np.array([[1], [1]])
    axis = {"axis": 0} if name == "ScatterElements" else {}
    kernel = STANDARD["", name, 16]
    assert kernel(data, indices, updates, reduction="add", **axis).tolist() == [1, 14, 3]
    assert kernel(data, indices, updates, reduction="mul", **axis).tolist() == [1, 70, 3]
    for reduction, wanted in (("max", 7), ("min", 2)):
        with pytest.raises(ValueError, match="came with version 18"):
            kernel(data, indices, updates, reduction=reduction, **axis)
        assert STANDARD["", name, 18](data, indices, updates, reduction=reduction, **axis).tolist() == [1, wanted, 3]

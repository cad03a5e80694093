"""The Gather family against loops from the text."""

import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry

RNG = np.random.default_rng(5)
X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def kernel(op_type, version):
    return Registry.standard()[OpKey("", op_type, version)]


def gathered(data, indices, axis):
    output = np.empty(data.shape[:axis] + indices.shape + data.shape[axis + 1 :], data.dtype)
    for before in np.ndindex(data.shape[:axis]):
        for place in np.ndindex(indices.shape):
            for after in np.ndindex(data.shape[axis + 1 :]):
                output[(*before, *place, *after)] = data[(*before, int(indices[place]), *after)]
    return output


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,), (2, 0)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather(axis, shape, dtype):
    size = X.shape[axis]
    indices = np.array(RNG.integers(-size, size, shape), dtype)
    for version in (1, 11, 13):
        got = kernel("Gather", version)(X, indices, axis=axis)
        np.testing.assert_array_equal(got, gathered(X, indices, axis % 3))
    assert np.shares_memory(got, X) == (shape == ())


@pytest.mark.parametrize("dtype", [object, ml_dtypes.bfloat16, ml_dtypes.int4, np.bool_])
def test_gather_of_any_type(dtype):
    x = np.arange(4).astype(dtype)
    assert kernel("Gather", 13)(x, np.array([3, -4]), axis=0).tolist() == [x[3], x[0]]
    one = kernel("Gather", 13)(x, np.array(2), axis=0)
    assert isinstance(one, np.ndarray)
    assert (one.shape, one.dtype, one.item()) == ((), dtype, x[2])


def test_gather_the_examples():
    data = np.array([[1.0, 1.2], [2.3, 3.4], [4.5, 5.7]])
    assert kernel("Gather", 1)(data, np.array([[0, 1], [1, 2]]), axis=0).tolist() == [
        [[1.0, 1.2], [2.3, 3.4]],
        [[2.3, 3.4], [4.5, 5.7]],
    ]
    data = np.array([[1.0, 1.2, 1.9], [2.3, 3.4, 3.9], [4.5, 5.7, 5.9]])
    assert kernel("Gather", 13)(data, np.array([[0, 2]]), axis=1).tolist() == [[[1.0, 1.9]], [[2.3, 3.9]], [[4.5, 5.9]]]


@pytest.mark.parametrize(("index", "axis"), [(3, 0), (-4, 0), (5, -1)])
def test_gather_refuses(index, axis):
    with pytest.raises(ValueError, match=f"index {index} is outside"):
        kernel("Gather", 13)(X, np.array([0, index]), axis=axis)
    with pytest.raises(ValueError, match=f"index {index} is outside"):
        kernel("Gather", 13)(X, np.array(index), axis=axis)


def test_gather_from_nothing():
    with pytest.raises(ValueError, match="rank 0"):
        kernel("Gather", 13)(np.array(1), np.array(0), axis=0)
    with pytest.raises(ValueError, match="index 0 is outside"):
        kernel("Gather", 13)(np.zeros((0, 2)), np.array([0]), axis=0)
    assert kernel("Gather", 13)(np.zeros((0, 2)), np.zeros(0, np.int64), axis=0).shape == (0, 2)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("smaller", [0, 1])
@pytest.mark.parametrize("version", [11, 13])
def test_gather_elements(axis, smaller, version):
    shape = [7 if i == axis % 3 else size - smaller for i, size in enumerate(X.shape)]
    indices = RNG.integers(-X.shape[axis], X.shape[axis], shape)
    got = kernel("GatherElements", version)(X, indices, axis=axis)
    assert got.shape == tuple(shape)
    for place in np.ndindex(*shape):
        source = list(place)
        source[axis] = indices[place]
        assert got[place] == X[tuple(source)]


def test_gather_elements_does_not_broadcast():
    got = kernel("GatherElements", 13)(X, np.zeros((1, 1, 2), np.int64), axis=2)
    assert got.shape == (1, 1, 2)
    with pytest.raises(ValueError, match="exceed data"):
        kernel("GatherElements", 13)(X[:1], np.zeros((2, 4, 1), np.int64), axis=2)


def test_gather_elements_refuses():
    with pytest.raises(ValueError, match="rank 1, data has 3"):
        kernel("GatherElements", 13)(X, np.zeros(1, np.int64), axis=0)
    with pytest.raises(ValueError, match="index 3 is outside"):
        kernel("GatherElements", 13)(X, np.full((1, 1, 1), 3), axis=0)
    with pytest.raises(ValueError, match="rank 0"):
        kernel("GatherElements", 13)(np.array(1), np.array(0), axis=0)


CUBE = np.array([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])


@pytest.mark.parametrize(
    ("data", "indices", "batch_dims", "wanted"),
    [
        ([[0, 1], [2, 3]], [[0, 0], [1, 1]], 0, [0, 3]),
        ([[0, 1], [2, 3]], [[1], [0]], 0, [[2, 3], [0, 1]]),
        (CUBE, [[0, 1], [1, 0]], 0, [[2, 3], [4, 5]]),
        (CUBE, [[[0, 1]], [[1, 0]]], 0, [[[2, 3]], [[4, 5]]]),
        (CUBE, [[1], [0]], 1, [[2, 3], [4, 5]]),
        (CUBE, [-1, -2], 0, [4, 5]),
    ],
)
def test_gather_nd_the_examples(data, indices, batch_dims, wanted):
    got = kernel("GatherND", 13)(np.array(data), np.array(indices), batch_dims=batch_dims)
    assert got.tolist() == wanted
    if batch_dims == 0:
        assert kernel("GatherND", 11)(np.array(data), np.array(indices)).tolist() == wanted


@pytest.mark.parametrize("batch_dims", [0, 1, 2])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("inner", [(), (2,), (2, 0), (3, 2)])
def test_gather_nd(batch_dims, depth, inner):
    data = RNG.integers(0, 99, (2, 3, 4, 5))
    batch = data.shape[:batch_dims]
    indices = RNG.integers(-2, 2, (*batch, *inner, depth))
    got = kernel("GatherND", 12)(data, indices, batch_dims=batch_dims)
    assert got.shape == (*batch, *inner, *data.shape[batch_dims + depth :])
    for place in np.ndindex(*batch, *inner):
        np.testing.assert_array_equal(got[place], data[(*place[:batch_dims], *indices[place])])


def test_gather_nd_of_strings_and_bfloat16():
    x = np.array([["a", "b"], ["c", "d"]], object)
    one = kernel("GatherND", 13)(x, np.array([1, 0]))
    assert isinstance(one, np.ndarray)
    assert one.item() == "c"
    assert kernel("GatherND", 13)(np.ones((2, 2), ml_dtypes.bfloat16), np.array([[1]])).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("indices", "batch_dims", "message"),
    [
        ([[0, 0, 0, 0]], 0, "address 4 axes, expected 1 to 3"),
        (np.zeros((2, 0), int), 0, "address 0 axes"),
        ([[0, 2]], 0, r"index 2 is outside \[-2, 1\] on axis 1"),
        ([[-3]], 0, "index -3 is outside"),
        ([[0], [0], [0]], 1, "batch sizes"),
        ([[0], [0]], 2, r"batch_dims 2 is outside \[0, 1\]"),
        ([[0], [0]], -1, "batch_dims -1"),
        (0, 0, "rank"),
    ],
)
def test_gather_nd_refuses(indices, batch_dims, message):
    with pytest.raises(ValueError, match=message):
        kernel("GatherND", 13)(CUBE, np.array(indices), batch_dims=batch_dims)

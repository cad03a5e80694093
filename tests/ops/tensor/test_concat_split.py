"""Concat, Split, Tile and Transpose."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def kernel(op_type, version):
    return Registry.standard()[OpKey("", op_type, version)]


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("dtype", [np.float16, np.uint64, object, ml_dtypes.bfloat16, ml_dtypes.int4, np.complex64])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(dtype, axis):
    parts = [X[:, :2], X[:, :2], X[:, :2]]
    if axis == 1:
        parts = [X[:, :0], X[:, :1], X[:, 1:]]
    parts = [part.astype(dtype) for part in parts]
    got = kernel("Concat", 13)(*parts, axis=axis)
    assert got.dtype == dtype
    assert got.tolist() == np.concatenate([part.astype(object) for part in parts], axis).tolist()


def test_concat_versions():
    assert kernel("Concat", 1)(X, X, axis=None).shape == (2, 6, 4)
    assert kernel("Concat", 1)(X, X, axis=2).shape == (2, 3, 8)
    assert kernel("Concat", 4)(X, X, axis=0).shape == (4, 3, 4)
    assert kernel("Concat", 13)(X, axis=0) is X


def test_concat_refuses():
    with pytest.raises(ValueError, match=r"tensor 1 is \[2, 3\], tensor 0 \[2, 3, 4\]"):
        kernel("Concat", 13)(X, X[..., 0], axis=0)
    with pytest.raises(ValueError, match=r"tensor 2 is \[2, 2, 4\]"):
        kernel("Concat", 13)(X, X, X[:, :2], axis=2)
    with pytest.raises(ValueError, match="axis 3 is outside"):
        kernel("Concat", 13)(X, X, axis=3)
    with pytest.raises(ValueError, match="rank 0"):
        kernel("Concat", 13)(np.array(1), np.array(2), axis=0)


def check_parts(parts, x, axis, lengths):
    assert [part.shape[axis] for part in parts] == lengths
    np.testing.assert_array_equal(np.concatenate(parts, axis), x)
    assert all(np.shares_memory(part, x) for part in parts if part.size)


@pytest.mark.parametrize(("axis", "lengths"), [(0, [1, 1]), (1, [2, 0, 1]), (2, [4]), (-1, [0, 4, 0]), (-2, [1, 2])])
def test_split_by_lengths(axis, lengths):
    count = len(lengths)
    check_parts(kernel("Split", 18)(X, ints(*lengths), axis=axis, num_outputs=None, n_outputs=count), X, axis, lengths)
    check_parts(kernel("Split", 13)(X, ints(*lengths), axis=axis, n_outputs=count), X, axis, lengths)
    check_parts(kernel("Split", 11)(X, split=tuple(lengths), axis=axis, n_outputs=count), X, axis, lengths)
    check_parts(kernel("Split", 2)(X, split=tuple(lengths), axis=axis, n_outputs=count), X, axis, lengths)
    check_parts(kernel("Split", 1)(X, None, split=tuple(lengths), axis=axis, n_outputs=count), X, axis, lengths)
    floats = np.array(lengths, np.float32)
    check_parts(kernel("Split", 1)(X, floats, split=None, axis=axis, n_outputs=count), X, axis, lengths)


def test_split_evenly():
    check_parts(kernel("Split", 13)(X, None, axis=2, n_outputs=2), X, 2, [2, 2])
    check_parts(kernel("Split", 2)(X, split=None, axis=0, n_outputs=2), X, 0, [1, 1])
    check_parts(kernel("Split", 1)(X, None, split=None, axis=None, n_outputs=2), X, 0, [1, 1])
    check_parts(kernel("Split", 13)(np.zeros((0, 2)), None, axis=0, n_outputs=3), np.zeros((0, 2)), 0, [0, 0, 0])
    with pytest.raises(ValueError, match="3 elements on axis 1 do not split into 2 equal parts"):
        kernel("Split", 13)(X, None, axis=1, n_outputs=2)


@pytest.mark.parametrize(
    ("size", "count", "lengths"),
    [(7, 3, [3, 3, 1]), (6, 3, [2, 2, 2]), (7, 4, [2, 2, 2, 1]), (6, 4, [2, 2, 2, 0]), (0, 2, [0, 0])],
)
def test_split_into_num_outputs(size, count, lengths):
    x = np.arange(size)
    check_parts(kernel("Split", 18)(x, None, axis=0, num_outputs=count, n_outputs=count), x, 0, lengths)


@pytest.mark.parametrize(
    ("version", "arguments", "message"),
    [
        (18, {"num_outputs": None, "n_outputs": 2}, "neither"),
        (18, {"num_outputs": 3, "n_outputs": 2}, "num_outputs is 3, the node has 2"),
        (18, {"num_outputs": 4, "n_outputs": 4}, "do not fill 4 parts of 2"),
    ],
)
def test_split_18_refuses(version, arguments, message):
    with pytest.raises(ValueError, match=message):
        kernel("Split", version)(np.arange(5), None, axis=0, **arguments)


def test_split_refuses():
    with pytest.raises(ValueError, match="both"):
        kernel("Split", 18)(X, ints(1, 1), axis=0, num_outputs=2, n_outputs=2)
    with pytest.raises(ValueError, match=r"lengths \[1, 1\] do not add up to the 3 elements on axis 1"):
        kernel("Split", 13)(X, ints(1, 1), axis=1, n_outputs=2)
    with pytest.raises(ValueError, match=r"lengths \[3, -1\]"):
        kernel("Split", 13)(X, ints(3, -1), axis=0, n_outputs=2)
    with pytest.raises(ValueError, match=r"2 lengths .* for 3 outputs"):
        kernel("Split", 13)(X, ints(1, 1), axis=0, n_outputs=3)
    with pytest.raises(ValueError, match="axis 3"):
        kernel("Split", 13)(X, ints(1, 1), axis=3, n_outputs=2)
    with pytest.raises(ValueError, match="rank 0"):
        kernel("Split", 13)(X, np.array(2), axis=0, n_outputs=1)
    with pytest.raises(ValueError, match="given twice"):
        kernel("Split", 1)(X, np.ones(2, np.float32), split=(1, 1), axis=0, n_outputs=2)
    with pytest.raises(ValueError, match=r"length 0\.5 is not an integer"):
        kernel("Split", 1)(X, np.array([0.5, 1.5], np.float32), split=None, axis=0, n_outputs=2)


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, object, ml_dtypes.bfloat16])
@pytest.mark.parametrize("repeats", [(1, 2, 3), (2, 1, 1), (1, 1, 1), (0, 2, 1)])
def test_tile(dtype, repeats):
    x = X.astype(dtype)
    got = kernel("Tile", 13)(x, ints(*repeats), allocate=np.empty)
    wanted = np.empty([n * size for n, size in zip(repeats, x.shape, strict=True)], dtype)
    for place in np.ndindex(wanted.shape):
        wanted[place] = x[tuple(i % size for i, size in zip(place, x.shape, strict=True))]
    assert got.dtype == dtype
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)
    assert got is x or repeats != (1, 1, 1)


def test_tile_the_example_and_edges():
    got = kernel("Tile", 6)(np.array([[1, 2], [3, 4]]), ints(1, 2), allocate=np.empty)
    assert got.tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert kernel("Tile", 13)(np.array(5), ints(), allocate=np.empty).item() == 5
    assert kernel("Tile", 13)(np.zeros((0, 2)), ints(3, 2), allocate=np.empty).shape == (0, 4)
    one = np.ones(1, np.float32)
    assert kernel("Tile", 1)(X, one * 2, one, allocate=np.empty).tolist() == np.tile(X, (1, 2, 1)).tolist()
    assert kernel("Tile", 1)(X, np.float32(2).reshape(()), -one, allocate=np.empty).shape == (2, 3, 8)


def test_tile_refuses():
    with pytest.raises(ValueError, match="must not be negative"):
        kernel("Tile", 13)(X, ints(1, -1, 1), allocate=np.empty)
    with pytest.raises(ValueError, match=r"shape \[2\], expected \[3\]"):
        kernel("Tile", 13)(X, ints(1, 1), allocate=np.empty)
    with pytest.raises(ValueError, match=r"tiles 1\.5 is not an integer"):
        kernel("Tile", 1)(X, np.array([1.5], np.float32), np.zeros(1, np.float32), allocate=np.empty)
    with pytest.raises(ValueError, match="not of one element"):
        kernel("Tile", 1)(X, np.ones(2, np.float32), np.zeros(1, np.float32), allocate=np.empty)

    def refuse(shape, dtype):
        raise MemoryError(shape)

    with pytest.raises(MemoryError):
        kernel("Tile", 13)(X, ints(10**9, 10**9, 10**9), allocate=refuse)


@pytest.mark.parametrize("perm", [None, *itertools.permutations(range(3))])
def test_transpose(perm):
    got = kernel("Transpose", 25)(X, perm=perm)
    order = perm or (2, 1, 0)
    assert got.shape == tuple(X.shape[i] for i in order)
    assert np.shares_memory(got, X)
    for place in np.ndindex(got.shape):
        source = [0, 0, 0]
        for i, axis in enumerate(order):
            source[axis] = place[i]
        assert got[place] == X[tuple(source)]


def test_transpose_edges():
    assert kernel("Transpose", 1)(np.array(1), perm=None).shape == ()
    assert kernel("Transpose", 1)(np.array(1), perm=()).shape == ()
    for perm in ((0, 1), (0, 1, 1), (0, 1, 3), (0, 1, -1), ()):
        with pytest.raises(ValueError, match="no permutation of the 3 axes"):
            kernel("Transpose", 25)(X, perm=perm)

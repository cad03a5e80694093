"""Reshape, Squeeze, Unsqueeze, Shape, Size and Identity."""

import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry
from onnxeval.values import EmptyOptional, Sequence

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def kernel(op_type, version):
    return Registry.standard()[OpKey("", op_type, version)]


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    "value", [X, Sequence([X]), EmptyOptional(), np.array("a", object)], ids=lambda v: type(v).__name__
)
def test_identity_gives_the_value_itself(value):
    assert kernel("Identity", 25)(value) is value


@pytest.mark.parametrize(
    ("wanted", "shape"),
    [
        ([4, 6], (4, 6)),
        ([-1], (24,)),
        ([0, -1], (2, 12)),
        ([-1, 0], (8, 3)),
        ([0, 0, 0], (2, 3, 4)),
        ([0, 3, -1, 1], (2, 3, 4, 1)),
        ([2, -1, 0], (2, 3, 4)),
    ],
)
def test_reshape(wanted, shape):
    for version in (5, 13, 14, 25):
        got = kernel("Reshape", version)(X, ints(*wanted))
        assert got.shape == shape
        assert np.shares_memory(got, X)
        np.testing.assert_array_equal(got.ravel(), X.ravel())
    assert kernel("Reshape", 1)(X, shape=tuple(wanted)).shape == shape


def test_reshape_to_and_from_a_scalar():
    assert kernel("Reshape", 25)(np.ones((1, 1)), ints()).shape == ()
    assert kernel("Reshape", 25)(np.array(3), ints(1, -1)).shape == (1, 1)
    assert kernel("Reshape", 1)(np.ones(1), shape=()).shape == ()


def test_reshape_of_nothing():
    empty = np.zeros((0, 3))
    assert kernel("Reshape", 14)(empty, ints(3, 0), allowzero=1).shape == (3, 0)
    assert kernel("Reshape", 14)(empty, ints(0, 5), allowzero=0).shape == (0, 5)
    assert kernel("Reshape", 14)(empty, ints(5, -1), allowzero=1).shape == (5, 0)


@pytest.mark.parametrize(
    ("shape", "allowzero", "message"),
    [
        ([5, 5], 0, r"24 elements of \[2, 3, 4\] cannot become \[5, 5\]"),
        ([-1, -1], 0, "-1 twice"),
        ([-2, 12], 0, "below -1"),
        ([5, -1], 0, "-1 cannot be told, 24 elements over 5"),
        ([1, 1, 1, 0], 0, "copies axis 3"),
        ([0, -1], 1, "both 0 and -1"),
        ([0, 24], 1, r"cannot become \[0, 24\]"),
        ([2**31, 2**33], 0, "cannot become"),
    ],
)
def test_reshape_refuses(shape, allowzero, message):
    with pytest.raises(ValueError, match=message):
        kernel("Reshape", 25)(X, ints(*shape), allowzero=allowzero)


def test_reshape_refuses_what_nothing_determines():
    with pytest.raises(ValueError, match="-1 cannot be told, 0 elements over 0"):
        kernel("Reshape", 25)(np.zeros((0, 3)), ints(0, -1))
    with pytest.raises(ValueError, match="rank 2"):
        kernel("Reshape", 25)(X, ints(4, 6).reshape(1, 2))
    with pytest.raises(ValueError, match="missing"):
        kernel("Reshape", 1)(X, shape=None)


COLUMN = np.arange(3).reshape(1, 3, 1)


@pytest.mark.parametrize(
    ("axes", "shape"), [(None, (3,)), ((0,), (3, 1)), ((2, 0), (3,)), ((-1,), (1, 3)), ((-3, 2), (3,)), ((), (1, 3, 1))]
)
def test_squeeze(axes, shape):
    got = kernel("Squeeze", 25)(COLUMN, None if axes is None else ints(*axes))
    assert got.shape == shape
    assert np.shares_memory(got, COLUMN)
    assert kernel("Squeeze", 11)(COLUMN, axes=axes).shape == shape
    if min(axes or (0,)) >= 0:
        assert kernel("Squeeze", 1)(COLUMN, axes=axes).shape == shape


def test_squeeze_refuses():
    with pytest.raises(ValueError, match="axis 1 has size 3"):
        kernel("Squeeze", 25)(COLUMN, ints(1))
    with pytest.raises(ValueError, match="axes 3 is outside"):
        kernel("Squeeze", 25)(COLUMN, ints(3))
    with pytest.raises(ValueError, match="twice"):
        kernel("Squeeze", 25)(COLUMN, ints(0, -3))
    with pytest.raises(ValueError, match="opset 11"):
        kernel("Squeeze", 1)(COLUMN, axes=(-1,))
    with pytest.raises(ValueError, match="rank 2"):
        kernel("Squeeze", 25)(COLUMN, ints(0).reshape(1, 1))


@pytest.mark.parametrize(
    ("axes", "shape"),
    [
        ((0, 4), (1, 2, 3, 4, 1)),
        ((4, 0), (1, 2, 3, 4, 1)),
        ((-1,), (2, 3, 4, 1)),
        ((-5, 3), (1, 2, 3, 1, 4)),
        ((), (2, 3, 4)),
    ],
)
def test_unsqueeze(axes, shape):
    got = kernel("Unsqueeze", 25)(X, ints(*axes))
    assert got.shape == shape
    assert np.shares_memory(got, X)
    assert kernel("Unsqueeze", 11)(X, axes=axes).shape == shape
    if min(axes, default=0) >= 0:
        assert kernel("Unsqueeze", 1)(X, axes=axes).shape == shape


def test_unsqueeze_a_scalar_and_refuses():
    assert kernel("Unsqueeze", 25)(np.array(1), ints(0, 1)).shape == (1, 1)
    with pytest.raises(ValueError, match="twice"):
        kernel("Unsqueeze", 25)(X, ints(0, -5))
    with pytest.raises(ValueError, match="outside"):
        kernel("Unsqueeze", 25)(X, ints(4))
    with pytest.raises(ValueError, match="opset 11"):
        kernel("Unsqueeze", 1)(X, axes=(-1,))


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        (0, None, [2, 3, 4]),
        (-1, None, [4]),
        (0, -1, [2, 3]),
        (1, 2, [3]),
        (2, 1, []),
        (-9, 9, [2, 3, 4]),
        (3, None, []),
        (9, None, []),
        (0, -9, []),
    ],
)
def test_shape(start, end, wanted):
    got = kernel("Shape", 25)(X, start=start, end=end)
    assert got.dtype == np.int64
    assert got.shape == (len(wanted),)
    assert got.tolist() == wanted


def test_shape_and_size_of_a_scalar():
    assert kernel("Shape", 1)(np.array(1.0)).tolist() == []
    for x, count in ((np.array(1.0), 1), (X, 24), (np.zeros((3, 0)), 0)):
        got = kernel("Size", 13)(x)
        assert (got.dtype, got.shape, got.item()) == (np.int64, (), count)

"""The Reduce family against exact arithmetic, group by group."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import STANDARD

STANDARD.load_section("reduction")
RNG = np.random.default_rng(5)
BFLOAT16 = ml_dtypes.bfloat16
FLOATS = [np.float16, BFLOAT16, np.float32, np.float64]
INTEGERS = [np.int32, np.int64, np.uint32, np.uint64]
EPS = {np.float16: 2.0**-11, BFLOAT16: 2.0**-8, np.float32: 2.0**-21, np.float64: 2.0**-48}
NEWEST = {
    "ReduceL1": 18,
    "ReduceL2": 18,
    "ReduceLogSum": 28,
    "ReduceLogSumExp": 28,
    "ReduceMax": 20,
    "ReduceMean": 18,
    "ReduceMin": 20,
    "ReduceProd": 18,
    "ReduceSum": 13,
    "ReduceSumSquare": 18,
}
#: What each makes of a list of Python numbers, in double precision or in whole numbers.
MEANING = {
    "ReduceL1": lambda group: sum(map(abs, group)),
    "ReduceL2": lambda group: math.sqrt(sum(v * v for v in group)),
    "ReduceLogSum": lambda group: math.log(sum(group)),
    "ReduceLogSumExp": lambda group: math.log(sum(map(math.exp, group))),
    "ReduceMax": max,
    "ReduceMean": lambda group: sum(group) / len(group),
    "ReduceMin": min,
    "ReduceProd": math.prod,
    "ReduceSum": sum,
    "ReduceSumSquare": lambda group: sum(v * v for v in group),
}


@pytest.fixture(autouse=True)
def _as_while_a_model_runs():
    with np.errstate(all="ignore"):
        yield


def reduced(name, x, axes=None, keepdims=1, noop=0):
    axes = None if axes is None else np.array(axes, np.int64)
    got = STANDARD["", name, NEWEST[name]](x, axes, keepdims=keepdims, noop_with_empty_axes=noop)
    assert got.dtype == x.dtype
    return got


def grouped(x, axes, keepdims):
    """The elements that each result is made of, and the shape of the result."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    groups = x.transpose(*kept, *axes).reshape(*(x.shape[axis] for axis in kept), -1)
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape) if keepdims or axis not in axes)
    return groups, shape


@pytest.mark.parametrize("name", NEWEST)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(name, dtype):
    x = RNG.uniform(0.25, 2, (2, 3, 4)).astype(dtype)
    if name not in ("ReduceLogSum",):
        x = x * np.array([1, -1, 1, -1], dtype)
    for axes in ([0], [-1], [2, 0], [0, 1, 2]):
        for keepdims in (0, 1):
            got = reduced(name, x, axes, keepdims)
            groups, shape = grouped(x, [axis % 3 for axis in axes], keepdims)
            assert got.shape == shape
            wanted = [MEANING[name]([float(v) for v in group]) for group in groups.reshape(-1, groups.shape[-1])]
            np.testing.assert_allclose(got.ravel().astype(float), wanted, rtol=EPS[dtype] * 1.01, atol=EPS[dtype])


@pytest.mark.parametrize("name", ["ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around(name, dtype):
    info = np.iinfo(dtype)
    x = np.array([[info.max, 3, info.min], [info.max - 4, 7, info.max]], dtype)
    for axes in ([0], [1], [0, 1]):
        groups, _ = grouped(x, axes, 0)
        for got, group in zip(reduced(name, x, axes, 0).ravel(), groups.reshape(-1, groups.shape[-1]), strict=True):
            exact = MEANING[name]([int(v) for v in group])
            assert (int(got) - exact) % 2**info.bits == 0


@pytest.mark.parametrize("dtype", INTEGERS)
def test_means_of_integers_do_not_overflow_and_are_cut(dtype):
    info = np.iinfo(dtype)
    for row in ([info.max, info.max, info.max - 1], [info.min, info.min + 1], [3, 4], [info.max], [info.min, info.max]):
        got = reduced("ReduceMean", np.array(row, dtype), [0], 0)
        assert int(got) == math.trunc(Fraction(sum(row), len(row)))
    if info.min:
        assert reduced("ReduceMean", np.array([[-3, -4], [-1, 0], [-2, -2]], dtype), [1], 0).tolist() == [-3, 0, -2]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_norms_and_logarithms_of_integers(dtype):
    top = int(np.iinfo(dtype).max)
    assert reduced("ReduceL2", np.array([[3, 4], [2, 2], [top, 0]], dtype), [1], 0).tolist() == [5, 2, top]
    assert reduced("ReduceLogSum", np.array([[1, 0], [3, 5], [top, top]], dtype), [1], 0).tolist() == [
        0,
        2,
        int(math.log(2 * top)),
    ]
    big = [[top, top - 1], [0, 0], [1, 2], [top, 0]]
    assert reduced("ReduceLogSumExp", np.array(big, dtype), [1], 0).tolist() == [top, 0, 2, top]
    assert reduced("ReduceLogSumExp", np.array(top, dtype), None, 0).tolist() == top
    if np.iinfo(dtype).min:
        rows = [[-5, -5], [-1, -1], [-4, -4]]  # log 2 = 0.69: -4.31, -0.31, -3.31
        assert reduced("ReduceLogSumExp", np.array(rows, dtype), [1], 0).tolist() == [-4, 0, -3]
        assert reduced("ReduceLogSumExp", np.array([[-7]], dtype), [1], 0).tolist() == [-7]
        with pytest.raises(ValueError, match="logarithm of 0"):
            reduced("ReduceLogSum", np.array([2, -2], dtype), [0])
    with pytest.raises(ValueError, match=r"L2 norm .* outside"):
        reduced("ReduceL2", np.array([top, top], dtype), [0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, *INTEGERS, *FLOATS, np.bool_])
def test_nothing_has_an_identity(dtype):
    x = np.zeros((2, 0), dtype)
    if dtype is np.bool_:
        least, greatest = False, True
    elif dtype in FLOATS:
        least, greatest = -np.inf, np.inf
    else:
        least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    assert reduced("ReduceMax", x, [1]).tolist() == [[least], [least]]
    assert reduced("ReduceMin", x, [1], 0).tolist() == [greatest, greatest]
    if dtype in (np.int8, np.uint8, np.bool_):
        return
    for name in ("ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2"):
        assert reduced(name, x, [1], 0).tolist() == [0, 0]
    assert reduced("ReduceProd", x, [1], 0).tolist() == [1, 1]
    for name in ("ReduceLogSum", "ReduceLogSumExp", "ReduceMean"):
        if dtype in INTEGERS:
            with pytest.raises(ValueError, match=r"logarithm of 0|of no elements"):
                reduced(name, x, [1])
        else:
            got = reduced(name, x, [1], 0).astype(float)
            np.testing.assert_array_equal(got, np.nan if name == "ReduceMean" else -np.inf)
    assert reduced("ReduceSum", x, [0]).shape == (1, 0)


def test_nan_and_infinity():
    x = np.array([[1, np.nan], [np.inf, 1], [-np.inf, -np.inf], [np.inf, -np.inf]], np.float32)
    assert np.isnan(reduced("ReduceMax", x, [1], 0)[0])
    assert np.isnan(reduced("ReduceMin", x, [1], 0)[0])
    np.testing.assert_array_equal(reduced("ReduceLogSumExp", x, [1], 0), np.array([np.nan, np.inf, -np.inf, np.inf]))
    huge = np.array([1000, 1000], np.float32)
    np.testing.assert_allclose(reduced("ReduceLogSumExp", huge, [0], 0), 1000 + math.log(2), rtol=1e-6)
    np.testing.assert_allclose(reduced("ReduceL2", np.array([3e30, 4e30], np.float32), [0], 0), 5e30, rtol=1e-6)


def test_booleans_are_ordered():
    x = np.array([[True, False], [True, True], [False, False]])
    assert reduced("ReduceMax", x, [1], 0).tolist() == [True, True, False]
    assert reduced("ReduceMin", x, [1], 0).tolist() == [False, True, False]


@pytest.mark.parametrize("name", NEWEST)
@pytest.mark.parametrize("axes", [None, []])
def test_no_axes_are_all_or_none(name, axes):
    x = RNG.uniform(0.5, 2, (2, 3))
    assert reduced(name, x, axes, 1).shape == (1, 1)
    np.testing.assert_allclose(reduced(name, x, axes, 0), MEANING[name](x.ravel().tolist()), rtol=1e-12)
    for keepdims in (0, 1):
        alone = reduced(name, x, axes, keepdims, noop=1)
        assert alone.shape == x.shape
        np.testing.assert_allclose(alone, [[MEANING[name]([v]) for v in row] for row in x.tolist()], rtol=1e-12)


@pytest.mark.parametrize("name", NEWEST)
def test_rank_0(name):
    x = np.array(2.5, np.float32)
    for keepdims in (0, 1):
        got = reduced(name, x, None, keepdims)
        assert got.shape == ()
        np.testing.assert_allclose(got, MEANING[name]([2.5]), rtol=1e-6)
    assert reduced(name, np.array(7, np.int32)).shape == ()


def by_attribute():
    for key in STANDARD:
        if key.op_type in NEWEST and key.since_version < (13 if key.op_type == "ReduceSum" else 18):
            yield key


@pytest.mark.parametrize("key", list(by_attribute()), ids=str)
def test_axes_as_an_attribute(key):
    name, kernel = key.op_type, STANDARD[key]
    x = RNG.uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    for axes in (None, (), (1,), (-1, 0)):
        for keepdims in (0, 1):
            got = kernel(x, axes=axes, keepdims=keepdims)
            wanted = reduced(name, x, axes, keepdims)
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("axes", "message"),
    [([2], "axes 2 is outside"), ([-3], "axes -3 is outside"), ([0, -2], "twice"), ([[0]], "rank 2")],
)
def test_errors(axes, message):
    with pytest.raises(ValueError, match=message):
        reduced("ReduceSum", np.zeros((2, 3)), axes)

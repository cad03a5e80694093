"""MatMul and Gemm against triple loops over Python integers and floats."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import matmul as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

MATMUL = STANDARD["", "MatMul", 13]
INTEGERS = [np.int32, np.int64, np.uint32, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def product(a, b) -> list[list]:
    """The matrix product by the definition."""
    rows, columns = len(a), len(b[0]) if len(b) else 0
    return [[sum(a[i][k] * b[k][j] for k in range(len(b))) for j in range(columns)] for i in range(rows)]


def wrapped(value: int, dtype) -> int:
    return int(np.array(value % 2**64, np.uint64).astype(dtype))


def numbers(shape, dtype, seed=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype)
    return rng.integers(-8, 9, shape).astype(dtype)


def gemm(version, a, b, c, *, alpha=1.0, beta=1.0, transA=0, transB=0, **more):
    return STANDARD["", "Gemm", version](a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB, **more)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around(dtype):
    a, b = numbers((3, 4), dtype), numbers((4, 2), dtype, 1)
    result = MATMUL(a, b)
    assert result.dtype == dtype
    assert result.tolist() == [[wrapped(v, dtype) for v in row] for row in product(a.tolist(), b.tolist())]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize(
    ("left", "right", "shape"),
    [
        ((3,), (3,), ()),
        ((3,), (3, 2), (2,)),
        ((4, 3), (3,), (4,)),
        ((4, 3), (3, 2), (4, 2)),
        ((5, 4, 3), (3,), (5, 4)),
        ((3,), (5, 3, 2), (5, 2)),
        ((5, 1, 4, 3), (6, 3, 2), (5, 6, 4, 2)),
        ((1, 4, 3), (7, 3, 2), (7, 4, 2)),
        ((4, 0), (0, 2), (4, 2)),
        ((0,), (0,), ()),
        ((2, 0, 4, 3), (3, 2), (2, 0, 4, 2)),
    ],
)
def test_shapes(left, right, shape, dtype):
    a, b = np.ones(left, dtype), np.full(right, 2, dtype)
    result = MATMUL(a, b)
    assert np.shape(result) == shape
    assert result.dtype == dtype
    assert np.all(np.asarray(result).astype(float) == 2 * left[-1])


def test_batches():
    a, b = numbers((2, 1, 3, 4), np.float64), numbers((5, 4, 2), np.float64, 1)
    result = MATMUL(a, b)
    for i, j in itertools.product(range(2), range(5)):
        assert result[i, j].tolist() == product(a[i, 0].tolist(), b[j].tolist())


@pytest.mark.parametrize(("left", "right"), [((2, 3), (2, 3)), ((3,), (2,)), ((2, 2, 3), (3, 3, 2))])
def test_shapes_that_do_not_multiply(left, right):
    with pytest.raises(ValueError, match=r"2.*3|3.*2"):
        MATMUL(np.ones(left), np.ones(right))


def test_rank_0():
    with pytest.raises(ValueError, match="rank 1 at least, got 0 and 2"):
        MATMUL(np.ones(()), np.ones((2, 2)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bits_are_summed_in_float32(dtype):
    ones = np.ones((1, 4097), dtype)
    exact = np.float32(4097).astype(dtype)
    assert MATMUL(ones, ones.T)[0, 0] == exact
    # one rounding after the bias: 4097 + 3 is a float16, which 4096 + 3 rounded is too, but another
    assert gemm(13, ones, ones.T, np.array([3], dtype))[0, 0] == np.float32(4100).astype(dtype)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize(("transA", "transB"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(
    ("version", "bias"), [(9, (2,)), (9, (4, 1)), (11, (1, 2)), (11, (4, 2)), (13, ()), (13, (1,)), (13, None)]
)
def test_gemm(dtype, version, transA, transB, bias):
    a = numbers((3, 4) if transA else (4, 3), dtype)
    b = numbers((2, 3) if transB else (3, 2), dtype, 1)
    c = None if bias is None else numbers(bias, dtype, 2)
    result = gemm(version, a, b, c, alpha=2.0, beta=-3.0, transA=transA, transB=transB)
    assert result.dtype == dtype
    exact = object if np.dtype(dtype).kind in "iu" else float
    left, right = ((m.T if t else m).astype(exact) for m, t in ((a, transA), (b, transB)))
    expected = 2 * np.array(product(left.tolist(), right.tolist()), exact)
    if c is not None:
        expected = expected + -3 * c.astype(exact)
    if exact is object:
        assert result.tolist() == [[wrapped(v, dtype) for v in row] for row in expected.tolist()]
    else:
        np.testing.assert_array_equal(result.astype(float), expected.astype(np.float32).astype(dtype).astype(float))


def test_gemm_of_nothing_is_the_bias():
    bias = np.array([[1], [2]], np.float32)
    result = gemm(13, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), bias, beta=2.0)
    assert result.tolist() == [[2, 2, 2], [4, 4, 4]]
    assert gemm(13, np.zeros((0, 2)), np.zeros((2, 3)), None).shape == (0, 3)


def test_gemm_of_integers_needs_whole_factors():
    eye = np.eye(2, dtype=np.int32)
    for factors in [{"alpha": 0.5}, {"beta": 1.5}, {"alpha": float("nan")}]:
        with pytest.raises(ValueError, match="not a whole number"):
            gemm(13, eye, eye, eye, **factors)


@pytest.mark.parametrize(
    ("a", "b", "c", "text"),
    [
        ((2, 3), (3,), None, "B has rank 1"),
        ((3,), (3, 2), None, "A has rank 1"),
        ((2, 3), (2, 3), None, "3 columns meet 2 rows"),
        ((2, 3), (3, 4), (3,), r"C of shape \[3\]"),
        ((1, 3), (3, 1), (2, 1), r"C of shape \[2, 1\]"),
        ((2, 3), (3, 4), (1, 2, 4), r"C of shape \[1, 2, 4\]"),
    ],
)
def test_gemm_refuses(a, b, c, text):
    with pytest.raises(ValueError, match=text):
        gemm(13, np.ones(a), np.ones(b), None if c is None else np.ones(c))


@pytest.mark.parametrize("version", [1, 6])
def test_gemm_broadcast_attribute(version):
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    row = np.arange(4, dtype=np.float32)
    assert gemm(version, a, b, row, broadcast=1).tolist() == [[3, 4, 5, 6]] * 2
    assert gemm(version, a, b, np.ones((2, 4), np.float32), broadcast=0).tolist() == [[4] * 4] * 2
    with pytest.raises(ValueError, match=r"C has shape \[4\], expected \[2, 4\], as broadcast is 0"):
        gemm(version, a, b, row, broadcast=0)

"""Sum, Min, Max and Mean; CumSum and CumProd; Expand."""

from __future__ import annotations

import itertools
import operator

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops._cast import convert
from onnxeval.registry import STANDARD

STANDARD.load_section("math")
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
NEWEST = {"Sum": 13, "Min": 13, "Max": 13, "Mean": 13}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NEWEST)
def test_variadic(name, dtype):
    a = np.array([[1.0, -2.0], [3.0, 4.0]], dtype)
    b, c = np.array([2.0, -4.0], dtype), np.array(3.0, dtype)
    result = STANDARD["", name, NEWEST[name]](a, b, c)
    assert result.dtype == dtype
    columns = [[(x, y, 3.0) for x, y in zip(row, [2.0, -4.0], strict=True)] for row in [[1.0, -2.0], [3.0, 4.0]]]
    function = {"Sum": sum, "Min": min, "Max": max, "Mean": lambda v: sum(v) / 3}[name]
    expected = np.array([[function(v) for v in row] for row in columns])
    np.testing.assert_array_equal(result.astype(float), convert(expected, np.dtype(dtype)).astype(float))
    assert STANDARD["", name, NEWEST[name]](a).astype(float).tolist() == a.astype(float).tolist()


@pytest.mark.parametrize("name", NEWEST)
@pytest.mark.parametrize("version", [1, 6])
def test_variadic_wants_equal_shapes_before_8(name, version):
    kernel = STANDARD["", name, version]
    assert kernel(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)).shape == (2, 2)
    with pytest.raises(ValueError, match=r"shapes \[2, 2\] and \[2\] differ"):
        kernel(np.ones((2, 2), np.float32), np.ones(2, np.float32))
    assert STANDARD["", name, 8](np.ones((2, 2), np.float32), np.ones(2, np.float32)).shape == (2, 2)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_min_and_max_of_integers(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = np.array([low, high, 1], dtype), np.array([high, high - 1, 2], dtype)
    least, greatest = STANDARD["", "Min", 12](a, b), STANDARD["", "Max", 12](a, b)
    assert (least.dtype, greatest.dtype) == (dtype, dtype)
    assert least.tolist() == [low, high - 1, 1]
    assert greatest.tolist() == [high, high, 2]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["Min", "Max"])
def test_nan_wins(name, dtype):
    a, b = np.array([np.nan, 1, 1], dtype), np.array([1, np.nan, 2], dtype)
    assert np.isnan(STANDARD["", name, 13](a, b).astype(float)).tolist() == [True, True, False]


def test_sixteen_bit_sums_are_rounded_once():
    xs = [np.array([2048.0], np.float16), np.array([1.0], np.float16), np.array([1.0], np.float16)]
    assert STANDARD["", "Sum", 13](*xs).tolist() == [2050]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64, *FLOATS])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("axis", [0, 1, -1, -3])
@pytest.mark.parametrize("name", ["CumSum", "CumProd"])
def test_running(name, axis, exclusive, reverse, dtype):
    x = np.random.default_rng(0).integers(1, 4, (3, 4, 2)).astype(dtype)
    kernel = STANDARD["", name, {"CumSum": 14, "CumProd": 26}[name]]
    result = kernel(x, np.array(axis), exclusive=exclusive, reverse=reverse)
    assert result.dtype == dtype
    combine, start = (operator.add, 0) if name == "CumSum" else (operator.mul, 1)

    def run(row):
        row = row.tolist()[::-1] if reverse else row.tolist()
        totals = list(itertools.accumulate(row, combine, initial=start))
        totals = totals[:-1] if exclusive else totals[1:]
        return totals[::-1] if reverse else totals

    np.testing.assert_array_equal(result.astype(float), np.apply_along_axis(run, axis, x.astype(float)))


@pytest.mark.parametrize(
    ("exclusive", "reverse", "sums", "products"),
    [
        (0, 0, [1, 3, 6], [1, 2, 6]),
        (1, 0, [0, 1, 3], [1, 1, 2]),
        (0, 1, [6, 5, 3], [6, 6, 3]),
        (1, 1, [5, 3, 0], [6, 3, 1]),
    ],
)
def test_the_examples_of_the_text(exclusive, reverse, sums, products):
    x = np.array([1, 2, 3], np.int32)
    attributes = {"exclusive": exclusive, "reverse": reverse}
    assert STANDARD["", "CumSum", 11](x, np.array(0), **attributes).tolist() == sums
    assert STANDARD["", "CumProd", 26](x, np.array(0), **attributes).tolist() == products


def test_running_sums_at_the_edges():
    kernel = STANDARD["", "CumSum", 14]
    assert kernel(np.array([2**31 - 1, 1], np.int32), np.array(0), exclusive=0, reverse=0).tolist() == [
        2**31 - 1,
        -(2**31),
    ]
    infinite = np.array([np.inf, 1.0])
    assert kernel(infinite, np.array(0), exclusive=1, reverse=0).tolist() == [0, np.inf]
    for exclusive in (0, 1):
        assert kernel(np.zeros((2, 0)), np.array(1), exclusive=exclusive, reverse=0).shape == (2, 0)
        assert kernel(np.zeros((2, 0)), np.array([0]), exclusive=exclusive, reverse=1).shape == (2, 0)
    with pytest.raises(ValueError, match="axis 2"):
        kernel(np.zeros((2, 2)), np.array(2), exclusive=0, reverse=0)
    with pytest.raises(ValueError, match="axis must be a scalar"):
        kernel(np.zeros((2, 2)), np.array([0, 1]), exclusive=0, reverse=0)


def test_running_float16_sums_are_rounded_once():
    x = np.array([2048, 1, 1, 1, 1], np.float16)
    assert STANDARD["", "CumSum", 14](x, np.array(0), exclusive=0, reverse=0).tolist() == [2048, 2048, 2050, 2052, 2052]


@pytest.mark.parametrize(
    ("shape", "wanted", "result"),
    [
        ((3, 1), (2, 1, 6), (2, 3, 6)),
        ((3, 1), (3, 4), (3, 4)),
        ((3, 4), (1,), (3, 4)),
        ((3, 4), (), (3, 4)),
        ((), (2, 3), (2, 3)),
        ((1,), (0,), (0,)),
        ((0, 1), (1, 3), (0, 3)),
        ((2, 3), (1, 1, 1), (1, 2, 3)),
    ],
)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, bool, np.complex64, np.complex128, object])
def test_expand(shape, wanted, result, dtype):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    expanded = STANDARD["", "Expand", 13](x, np.array(wanted, np.int64), allocate=np.empty)
    assert expanded.dtype == dtype
    assert expanded.tolist() == np.broadcast_to(x, result).tolist()


def test_expand_refuses():
    expand = STANDARD["", "Expand", 8]
    for wanted, text in [([3], "do not broadcast"), ([-1], "negative"), ([[2]], "rank 2"), ([0], "do not broadcast")]:
        with pytest.raises(ValueError, match=text):
            expand(np.ones(2), np.array(wanted), allocate=np.empty)


def test_expand_asks_before_it_takes_memory():
    def refuse(shape, dtype):
        raise MemoryError(shape)

    with pytest.raises(MemoryError, match="1000000000000"):
        STANDARD["", "Expand", 13](np.ones(1), np.array([10**12]), allocate=refuse)

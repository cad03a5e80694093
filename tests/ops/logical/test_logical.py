"""Comparisons, boolean algebra, shifts and bits, against Python's operators."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import STANDARD

STANDARD.load_section("logical")
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
COMPARISONS = {
    "Equal": (19, operator.eq),
    "Greater": (13, operator.gt),
    "Less": (13, operator.lt),
    "GreaterOrEqual": (16, operator.ge),
    "LessOrEqual": (16, operator.le),
}
BOOLEAN = {"And": operator.and_, "Or": operator.or_, "Xor": operator.xor}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_integers_compare_exactly(name, dtype):
    version, compare = COMPARISONS[name]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([low, low + 1, 0, 1, high - 1, high], dtype)
    result = STANDARD["", name, version](x[:, None], x)
    assert result.dtype == bool
    assert result.tolist() == [[compare(a, b) for b in x.tolist()] for a in x.tolist()]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_floats(name, dtype):
    version, compare = COMPARISONS[name]
    x = np.array([-np.inf, -1, -0.0, 0.0, 2, np.inf, np.nan], dtype)
    with np.errstate(invalid="ignore"):
        result = STANDARD["", name, version](x[:, None], x)
    values = x.astype(float).tolist()
    assert result.tolist() == [[compare(a, b) for b in values] for a in values]


def test_equal_strings_and_booleans():
    equal = STANDARD["", "Equal", 19]
    result = equal(np.array([["a"], ["b\0"]], object), np.array(["a", "b", "b\0"], object))
    assert result.dtype == bool
    assert result.tolist() == [[True, False, False], [False, False, True]]
    assert bool(equal(np.array("", object), np.array("", object)))
    assert STANDARD["", "Equal", 7](np.array([True, False]), np.array(False)).tolist() == [False, True]


@pytest.mark.parametrize("name", ["Equal", "Greater", "Less", "And", "Or", "Xor"])
def test_version_1(name):
    kernel = STANDARD["", name, 1]
    dtype = bool if name in BOOLEAN else np.int32 if name == "Equal" else np.float32
    a = (np.arange(24).reshape(2, 3, 4) % 3).astype(dtype)
    b = np.array([0, 1, 2]).astype(dtype)
    function = BOOLEAN.get(name) or COMPARISONS[name][1]
    result = kernel(a, b, axis=1, broadcast=1)
    assert result.dtype == bool
    assert result.tolist() == [
        [[bool(function(v, b.tolist()[j])) for v in row] for j, row in enumerate(plane)] for plane in a.tolist()
    ]
    with pytest.raises(ValueError, match="broadcast is 0"):
        kernel(a, b, axis=1, broadcast=0)


@pytest.mark.parametrize("name", BOOLEAN)
def test_boolean(name):
    x = np.array([False, True])
    result = STANDARD["", name, 7](x[:, None], x)
    assert result.dtype == bool
    assert result.tolist() == [[BOOLEAN[name](a, b) for b in (False, True)] for a in (False, True)]
    assert STANDARD["", name, 7](np.zeros((0, 1), bool), x).shape == (0, 2)


def test_not():
    assert STANDARD["", "Not", 1](np.array([[True, False]])).tolist() == [[False, True]]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([low, 0, 1, 6, high], dtype)
    for name in BOOLEAN:
        result = STANDARD["", f"Bitwise{name}", 18](x[:, None], x)
        assert result.dtype == dtype
        assert result.tolist() == [[BOOLEAN[name](a, b) for b in x.tolist()] for a in x.tolist()]
    flipped = STANDARD["", "BitwiseNot", 18](x)
    assert flipped.tolist() == [~v if low else high - v for v in x.tolist()]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    bits = np.iinfo(dtype).bits
    x = np.array([low, 0, 1, 5, high, *([-1, -5] if low else [])], dtype)
    shifts = np.array([0, 1, 2, bits - 1, bits, bits + 1, min(high, 100), *([-1, low] if low else [])], dtype)

    def left(a, n):
        moved = a << n if 0 <= n < bits else 0
        return (moved - low) % 2**bits + low

    def right(a, n):
        return a >> n if 0 <= n < bits else -1 if a < 0 else 0

    for version in (28,) if low else (11, 28):
        for direction, shift in (("LEFT", left), ("RIGHT", right)):
            result = STANDARD["", "BitShift", version](x[:, None], shifts, direction=direction)
            assert result.dtype == dtype
            assert result.tolist() == [[shift(a, n) for n in shifts.tolist()] for a in x.tolist()]


def test_shift_direction():
    with pytest.raises(ValueError, match="'left'"):
        STANDARD["", "BitShift", 11](np.ones(1, np.uint8), np.ones(1, np.uint8), direction="left")

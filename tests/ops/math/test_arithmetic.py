"""Add, Sub, Mul, Div and Mod: exact integers, one rounding, the old broadcasting."""

from __future__ import annotations

import math
import operator

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops._cast import convert
from onnxeval.registry import STANDARD

STANDARD.load_section("math")
BFLOAT16 = ml_dtypes.bfloat16
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, BFLOAT16, np.float32, np.float64]
OPERATORS = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul}


def extremes(dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array(sorted({info.min, info.min + 1, max(info.min, -7), max(info.min, -1), 0, 1, 2, 7, info.max}), dtype)


def wrapped(value: int, dtype) -> int:
    bits = np.iinfo(dtype).bits
    value %= 2**bits
    return value - 2**bits if np.iinfo(dtype).min < 0 and value >= 2 ** (bits - 1) else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", OPERATORS)
def test_integers_wrap_around(name, dtype):
    x = extremes(dtype)
    result = STANDARD["", name, 14](x[:, None], x)
    assert result.dtype == dtype
    expected = [[wrapped(OPERATORS[name](a, b), dtype) for b in x.tolist()] for a in x.tolist()]
    assert result.tolist() == expected


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_truncates(dtype):
    x = extremes(dtype)
    divisors = x[x != 0]
    result = STANDARD["", "Div", 14](x[:, None], divisors)
    assert result.dtype == dtype
    expected = [[wrapped(truncated(a, b), dtype) for b in divisors.tolist()] for a in x.tolist()]
    assert result.tolist() == expected


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("version", [10, 13, 28])
def test_mod_of_integers(version, dtype):
    x = extremes(dtype)
    divisors = x[x != 0]
    mod = STANDARD["", "Mod", version]
    floored = mod(x[:, None], divisors, fmod=0)
    assert floored.dtype == dtype
    assert floored.tolist() == [[a % b for b in divisors.tolist()] for a in x.tolist()]
    towards_zero = mod(x[:, None], divisors, fmod=1)
    assert towards_zero.tolist() == [[a - truncated(a, b) * b for b in divisors.tolist()] for a in x.tolist()]


@pytest.mark.parametrize("name", ["Div", "Mod"])
def test_an_integer_over_zero(name):
    kernel = STANDARD["", name, {"Div": 14, "Mod": 13}[name]]
    attributes = {"fmod": 0} if name == "Mod" else {}
    with pytest.raises(ValueError, match="by zero"):
        kernel(np.array([1, 2]), np.array([1, 0]), **attributes)
    assert kernel(np.zeros((0, 2), int), np.array([1, 0]), **attributes).shape == (0, 2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_division_by_zero(dtype):
    result = STANDARD["", "Div", 14](np.array([1, -1, 0], dtype), np.zeros(3, dtype))
    np.testing.assert_array_equal(result.astype(float), [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
@pytest.mark.parametrize("name", [*OPERATORS, "Div"])
def test_sixteen_bits_are_rounded_once(name, dtype):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 2**16, 5000).astype(np.uint16).view(dtype) for _ in "ab")
    exact = {**OPERATORS, "Div": operator.truediv}[name](a.astype(np.float64), b.astype(np.float64))
    once = convert(exact, np.dtype(dtype))
    result = STANDARD["", name, 14](a, b)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(float), once.astype(float))


@pytest.mark.parametrize("version", [10, 13])
def test_floats_need_fmod_before_28(version):
    with pytest.raises(ValueError, match="fmod must be 1"):
        STANDARD["", "Mod", version](np.ones(2, np.float32), np.ones(2, np.float32), fmod=0)


def test_fmod_is_a_flag():
    with pytest.raises(ValueError, match="fmod 2"):
        STANDARD["", "Mod", 28](np.ones(2), np.ones(2), fmod=2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mod_of_floats(dtype):
    x = np.array([-4.5, 7.25, -7.25, 0.0, -0.0, 3.0, -3.0, np.inf, np.nan, 1.0], dtype)
    y = np.array([2.0, -3.0, 0.5, np.inf, -np.inf, np.nan], dtype)
    floored = STANDARD["", "Mod", 28](x[:, None], y, fmod=0).astype(float)
    truncated = STANDARD["", "Mod", 13](x[:, None], y, fmod=1).astype(float)
    for i, a in enumerate(x.astype(float).tolist()):
        for j, b in enumerate(y.astype(float).tolist()):
            if math.isnan(a) or math.isnan(b) or math.isinf(a):
                floor = trunc = math.nan
            elif math.isinf(b):
                same = math.copysign(1, a) == math.copysign(1, b)
                floor = math.copysign(0, b) if a == 0 else a if same else b
                trunc = a
            else:
                floor = math.copysign(a - math.floor(a / b) * b, b)
                trunc = math.copysign(a - math.trunc(a / b) * b, a)
            np.testing.assert_equal(floored[i, j], floor)
            np.testing.assert_equal(truncated[i, j], trunc)
    zeros = STANDARD["", "Mod", 28](np.array([0.0, -0.0], dtype), np.array([-2.0, 2.0], dtype), fmod=0).astype(float)
    assert np.signbit(zeros).tolist() == [True, False]
    over_zero = STANDARD["", "Mod", 28](np.ones(1, dtype), np.zeros(1, dtype), fmod=0)
    assert np.isnan(over_zero.astype(float)).all()


# The examples in the text of Add-1.
@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("version", [1, 6])
@pytest.mark.parametrize(
    ("shape", "axis", "spread"),
    [
        ((), None, ()),
        ((1, 1), None, (1, 1)),
        ((5,), None, (5,)),
        ((4, 5), None, (4, 5)),
        ((3, 4), 1, (3, 4, 1)),
        ((2,), 0, (2, 1, 1, 1)),
        ((3,), -3, (3, 1, 1)),
        ((3, 1, 1), 1, (3, 1, 1)),
        ((2, 3, 4, 5), None, (2, 3, 4, 5)),
    ],
)
def test_axis_and_broadcast(name, version, shape, axis, spread):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 3, 4, 5)).astype(np.float32)
    b = rng.uniform(1, 2, size=shape).astype(np.float32)
    result = STANDARD["", name, version](a, b, axis=axis, broadcast=1)
    expected = {**OPERATORS, "Div": operator.truediv}[name](a, b.reshape(spread))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("shape", "axis", "broadcast"),
    [
        ((5,), None, 0),
        ((), None, 0),
        ((4,), None, 1),
        ((4, 5), 1, 1),
        ((3,), 4, 1),
        ((3,), -9, 1),
        ((4, 5), 3, 1),
        ((1, 1, 1, 1, 1), None, 1),
        ((1, 2, 3, 4, 5), None, 1),
    ],
)
def test_shapes_that_the_old_rules_refuse(shape, axis, broadcast):
    with pytest.raises(ValueError, match="shape"):
        STANDARD["", "Add", 6](np.ones((2, 3, 4, 5)), np.ones(shape), axis=axis, broadcast=broadcast)


def test_the_old_rules_never_stretch_the_first_operand():
    with pytest.raises(ValueError, match="shape"):
        STANDARD["", "Add", 6](np.ones((2, 1)), np.ones((2, 3)), axis=None, broadcast=1)


def test_broadcasting_of_empty_and_rank_0():
    add = STANDARD["", "Add", 14]
    assert add(np.ones((0, 3)), np.ones((1, 3))).shape == (0, 3)
    assert add(np.float32(1) + np.zeros((), np.float32), np.ones((), np.float32)).shape == ()
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        add(np.ones(2), np.ones(3))

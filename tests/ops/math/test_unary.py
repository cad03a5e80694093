"""Functions of one number against Python's math module, element by element, in every type."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import STANDARD

STANDARD.load_section("math")
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
DIGITS = {np.float16: 2**-11, ml_dtypes.bfloat16: 2**-8, np.float32: 2e-7, np.float64: 1e-15}
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
FUNCTIONS = {
    "Sqrt": (13, math.sqrt, (0, 9)),
    "Reciprocal": (13, lambda x: 1 / x, (0.1, 5)),
    "Exp": (13, math.exp, (-5, 5)),
    "Log": (13, math.log, (0.1, 9)),
    "Sin": (22, math.sin, (-7, 7)),
    "Cos": (22, math.cos, (-7, 7)),
    "Tan": (22, math.tan, (-1.4, 1.4)),
    "Asin": (22, math.asin, (-1, 1)),
    "Acos": (22, math.acos, (-1, 1)),
    "Atan": (22, math.atan, (-9, 9)),
    "Sinh": (22, math.sinh, (-5, 5)),
    "Cosh": (22, math.cosh, (-5, 5)),
    "Tanh": (13, math.tanh, (-5, 5)),
    "Asinh": (22, math.asinh, (-9, 9)),
    "Acosh": (22, math.acosh, (1, 9)),
    "Atanh": (22, math.atanh, (-0.9, 0.9)),
    "Erf": (13, math.erf, (-4, 4)),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    version, function, (low, high) = FUNCTIONS[name]
    x = np.linspace(low, high, 101).astype(dtype)
    result = STANDARD["", name, version](x)
    assert result.dtype == dtype
    expected = [function(value) for value in x.astype(float).tolist()]
    np.testing.assert_allclose(result.astype(float), expected, rtol=4 * DIGITS[dtype], atol=DIGITS[dtype])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["Exp", "Log", "Sin", "Tanh", "Sqrt"])
def test_sixteen_bits_are_rounded_once(name, dtype):
    version, function, (low, high) = FUNCTIONS[name]
    x = np.linspace(low, high, 1001).astype(dtype)
    exact = np.array([function(v) if v or name != "Log" else -math.inf for v in x.astype(float).tolist()])
    wide = exact.astype(np.float32)
    near_a_tie = wide.astype(dtype) != np.nextafter(wide, np.float32(np.inf)).astype(dtype)
    near_a_tie |= wide.astype(dtype) != np.nextafter(wide, np.float32(-np.inf)).astype(dtype)
    result = STANDARD["", name, version](x)
    np.testing.assert_array_equal(result[~near_a_tie].astype(float), wide.astype(dtype)[~near_a_tie].astype(float))


@pytest.mark.parametrize(
    ("name", "version", "x", "expected"),
    [
        ("Sqrt", 13, [-1, -0.0, np.inf], [np.nan, -0.0, np.inf]),
        ("Reciprocal", 13, [0.0, -0.0, np.inf], [np.inf, -np.inf, 0]),
        ("Log", 6, [0.0, -1, np.inf], [-np.inf, np.nan, np.inf]),
        ("Exp", 1, [-np.inf, np.inf, np.nan], [0, np.inf, np.nan]),
        ("Acos", 7, [2, -2, 1], [np.nan, np.nan, 0]),
        ("Atanh", 9, [1, -1, 2], [np.inf, -np.inf, np.nan]),
        ("Acosh", 9, [0.5, 1, np.inf], [np.nan, 0, np.inf]),
        ("Erf", 13, [np.inf, -np.inf, np.nan], [1, -1, np.nan]),
        ("Sign", 13, [np.nan, -0.0, -3], [np.nan, 0, -1]),
        ("Abs", 13, [-np.inf, -0.0, np.nan], [np.inf, 0, np.nan]),
        ("Neg", 13, [-np.inf, 0.0, np.nan], [np.inf, 0, np.nan]),
        ("Round", 22, [0.9, 2.5, 2.3, 1.5, -4.5, np.inf, np.nan], [1, 2, 2, 2, -4, np.inf, np.nan]),
        ("Round", 11, [-0.5, 0.5, -2.5], [0, 0, -2]),
        ("Ceil", 13, [-1.5, 1.2, -0.0, np.inf, np.nan], [-1, 2, 0, np.inf, np.nan]),
        ("Floor", 6, [-1.5, 1.2, -0.0, -np.inf, np.nan], [-2, 1, 0, -np.inf, np.nan]),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_numbers(name, version, x, expected, dtype):
    result = STANDARD["", name, version](np.array(x, dtype))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(float), expected)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_integers(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([low, max(low, -1), 0, 1, high], dtype)
    sign = STANDARD["", "Sign", 9](x)
    assert sign.dtype == dtype
    assert sign.tolist() == [-1 if v < 0 else int(v > 0) for v in x.tolist()]
    size = STANDARD["", "Abs", 6](x)
    assert size.dtype == dtype
    assert size.tolist() == [v if v == low and low else abs(v) for v in x.tolist()]
    if low:
        assert STANDARD["", "Neg", 6](x).tolist() == [v if v == low else -v for v in x.tolist()]


def test_erf_is_accurate():
    x = np.concatenate([np.linspace(-6.5, 6.5, 3001), np.logspace(-300, 0, 301), -np.logspace(-300, 0, 301)])
    expected = np.array([math.erf(value) for value in x.tolist()])
    result = STANDARD["", "Erf", 13](x)
    assert np.all(np.abs(result - expected) <= 3 * np.spacing(np.abs(expected)))
    narrow = x.astype(np.float32)
    expected = np.array([math.erf(value) for value in narrow.tolist()])
    error = np.abs(STANDARD["", "Erf", 13](narrow) - expected)
    assert np.all(error <= 3 * np.spacing(np.abs(expected).astype(np.float32)))


def test_erf_against_scipy():
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-6, 6, 20001)
    np.testing.assert_allclose(STANDARD["", "Erf", 9](x), special.erf(x), rtol=1e-15)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_erf_of_integers_is_truncated(dtype):
    x = np.array([0, 1, 2, 3, 100], dtype)
    result = STANDARD["", "Erf", 9](x)
    assert result.dtype == dtype
    assert result.tolist() == [int(math.erf(value)) for value in x.tolist()]


@pytest.mark.parametrize("name", [*FUNCTIONS, "Abs", "Round"])
def test_empty_and_rank_0(name):
    version = FUNCTIONS.get(name, (13 if name == "Abs" else 22,))[0]
    assert STANDARD["", name, version](np.zeros((2, 0), np.float32)).shape == (2, 0)
    assert STANDARD["", name, version](np.ones((), np.float16)).shape == ()

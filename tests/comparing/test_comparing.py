"""A value against the expected one, by NumPy's own measure."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onnxeval.comparing import Tolerance, compare
from onnxeval.values import EmptyOptional, Sequence

FLOATS = arrays.arrays(np.float32, 5, elements=st.floats(width=32))


@given(FLOATS, FLOATS, st.sampled_from([0.0, 1e-3, 0.5]), st.sampled_from([0.0, 1e-7, 1.0]))
def test_the_verdict_is_that_of_numpy(one, other, rtol, atol):
    wide, wide_other = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.isclose(wide, wide_other, rtol=rtol, atol=atol, equal_nan=True)
    close &= np.isfinite(wide) == np.isfinite(wide_other)
    found = compare("y", one, other, Tolerance(rtol, atol))
    assert found.mismatching == np.count_nonzero(~close)
    assert found.agrees == bool(close.all())
    assert found.count == 5


@given(FLOATS)
def test_a_value_agrees_with_itself(array):
    found = compare("y", array, array.copy(), Tolerance(ulp=0))
    assert found.agrees
    assert found.max_abs in (0.0, None)
    assert found.max_ulp in (0, None)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(0, 9))
def test_neighbours_are_one_ulp_apart(number, steps):
    start = np.array([number], np.float32)
    end = start
    with np.errstate(over="ignore"):
        for _ in range(steps):
            end = np.nextafter(end, np.float32(np.inf))
    if np.isfinite(end).all():
        assert compare("y", start, end).max_ulp == steps
        assert compare("y", start, end, Tolerance(ulp=steps)).agrees
        assert steps == 0 or not compare("y", start, end, Tolerance(ulp=steps - 1)).agrees


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn, np.float16])
def test_ulps_of_narrow_types_count_their_codes(dtype):
    bits = 4 if dtype is ml_dtypes.float4_e2m1fn else 8 * np.dtype(dtype).itemsize
    codes = np.arange(min(2 ** (bits - 1), 100), dtype=f"u{np.dtype(dtype).itemsize}")
    numbers = codes.view(dtype)
    assert compare("y", numbers[:-1], numbers[1:]).max_ulp == 1
    assert compare("y", numbers[1:2], -numbers[1:2]).max_ulp == 2


def test_integers_are_exact_unless_a_tolerance_is_given():
    one, other = np.array([1000, 2**62], np.int64), np.array([1001, 2**62], np.int64)
    assert compare("y", one, other).mismatching == 1
    assert compare("y", one, other, Tolerance(atol=1)).agrees
    assert compare("y", np.array([-(2**63)]), np.array([2**63 - 1])).max_abs == float(2**64 - 1)
    assert compare("y", np.array([2**53]), np.array([2**53 + 1])).mismatching == 1


def test_metrics():
    found = compare("y", np.array([3.0, 4.5, 0.0]), np.array([3.0, 4.0, 0.0]))
    assert found.mismatching == 1
    assert found.max_abs == 0.5
    assert found.max_rel == 0.125
    assert found.cosine == pytest.approx((9 + 18) / (5 * math.hypot(3, 4.5)))
    assert found.snr == pytest.approx(20)
    worst = found.worst[0]
    assert (worst.place, worst.value, worst.expected) == ("y[1]", 4.5, 4.0)


def test_the_worst_come_first_wherever_they_are():
    expected = np.zeros((3, 700_000), np.float32)
    value = expected.copy()
    for place, error in (((0, 5), 1), ((2, 699_999), 5), ((1, 0), np.nan), ((2, 0), 3)):
        value[place] = error
    found = compare("y", value, expected)
    assert [element.place for element in found.worst] == ["y[1, 0]", "y[2, 699999]", "y[2, 0]", "y[0, 5]"]
    assert found.mismatching == 4


def test_special_numbers():
    specials = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert compare("y", specials, specials).agrees
    assert compare("y", specials, specials[[0, 2, 1]]).mismatching == 2
    assert compare("y", specials, np.zeros(3, np.float32), Tolerance(rtol=1e9, atol=1e9)).mismatching == 3


@pytest.mark.parametrize(
    ("value", "expected", "reason"),
    [
        (np.zeros(2, np.float32), np.zeros(2), "y is float32[2], float64[2] is expected"),
        (np.zeros(2), np.zeros((2, 1)), "y is float64[2], float64[2, 1] is expected"),
        (Sequence([np.zeros(2)]), Sequence([]), "y holds 1 values, 0 are expected"),
        ({1: 2.0}, {2: 2.0}, "key"),
        (None, np.zeros(2), "y is an empty optional, float64[2] is expected"),
        (np.zeros(2), {1: 2.0}, "map of 1 is expected"),
    ],
)
def test_what_cannot_be_compared_says_why(value, expected, reason):
    found = compare("y", value, expected)
    assert reason in found.reason
    assert not found.agrees


def test_other_values():
    text = np.array(["a", "b"], object)
    assert compare("y", text, np.array(["a", "c"], object)).worst[0].place == "y[1]"
    assert compare("y", EmptyOptional(), None).agrees
    assert compare("y", {"a": 1.5}, {"a": 1.5}).agrees
    found = compare("y", Sequence([text, np.array([1 + 1j])]), Sequence([text, np.array([1 - 1j])]))
    assert found.worst[0].place == "y[1][0]"
    assert compare("y", np.array(5), np.array(6)).worst[0].place == "y"
    assert compare("y", np.zeros((0, 3)), np.zeros((0, 3))).agrees

"""`convert` against an oracle in exact fractions, written from the tables of Cast and of the formats."""

import itertools
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from onnxeval import dtypes
from onnxeval.ops._cast import convert


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):  # as while a model runs
        yield


@dataclass(frozen=True)
class Format:
    exponent_bits: int
    mantissa_bits: int
    bias: int
    kind: str  # "ieee": infinities and NaN; "fn": the last code is NaN; "fnuz": -0 is NaN; "finite": neither

    @property
    def sign(self) -> int:
        """The code of the sign bit."""
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def greatest(self) -> int:
        """The code of the greatest finite value."""
        if self.kind == "ieee":
            return self.sign - (1 << self.mantissa_bits) - 1
        return self.sign - (2 if self.kind == "fn" else 1)

    def magnitude(self, code: int) -> Fraction:
        exponent, mantissa = divmod(code, 1 << self.mantissa_bits)
        if exponent == 0:
            return Fraction(mantissa) / 2**self.mantissa_bits * Fraction(2) ** (1 - self.bias)
        return (1 + Fraction(mantissa) / 2**self.mantissa_bits) * Fraction(2) ** (exponent - self.bias)


FORMATS = {
    dtypes.BFLOAT16: Format(8, 7, 127, "ieee"),
    np.dtype(np.float16): Format(5, 10, 15, "ieee"),
    dtypes.FLOAT8E5M2: Format(5, 2, 15, "ieee"),
    dtypes.FLOAT8E4M3FN: Format(4, 3, 7, "fn"),
    dtypes.FLOAT8E4M3FNUZ: Format(4, 3, 8, "fnuz"),
    dtypes.FLOAT8E5M2FNUZ: Format(5, 2, 16, "fnuz"),
    dtypes.FLOAT6E2M3: Format(2, 3, 1, "finite"),
    dtypes.FLOAT6E3M2: Format(3, 2, 3, "finite"),
    dtypes.FLOAT4E2M1: Format(2, 1, 1, "finite"),
}
FLOAT8 = [d for d in FORMATS if d.name.startswith("float8")]
CASES = [(d, s) for d in FORMATS for s in ((True, False) if d in FLOAT8 else (True,))]
IDS = [f"{dtypes.name_of(d)}-{'saturate' if s else 'plain'}" for d, s in CASES]


@cache
def midpoints(dtype) -> list[Fraction]:
    """Between each value and the next, the last one between the greatest value and what would follow it."""
    form = FORMATS[dtype]
    values = [form.magnitude(code) for code in range(form.greatest + 2)]
    return [(low + high) / 2 for low, high in itertools.pairwise(values)]


def codes_of(array) -> np.ndarray:
    return np.atleast_1d(array).view(f"u{array.dtype.itemsize}").astype(np.int64)


def expected(values, dtype, saturate) -> np.ndarray:
    """The code of each value (NaN: -1), which float64 holds exactly."""
    form = FORMATS[dtype]
    ties = np.array([float(m) for m in midpoints(dtype)])
    assert [Fraction(t) for t in ties] == midpoints(dtype)
    values = np.asarray(values, np.float64)
    below = np.searchsorted(ties, np.abs(values), side="left")
    at_tie = np.abs(values) == ties[np.minimum(below, len(ties) - 1)]
    codes = below + (at_tie & (below % 2 == 1))
    over = codes > form.greatest
    if form.kind == "finite" or (saturate and dtype in FLOAT8):
        codes[over] = form.greatest
    elif form.kind == "ieee":
        codes[over] = form.greatest + 1
    negative = np.signbit(values) & ~((form.kind == "fnuz") & (codes == 0))
    codes = codes + form.sign * negative
    nan = np.isnan(values)
    if form.kind == "finite":
        return np.where(nan, form.sign, codes)
    if form.kind != "ieee" and not saturate:
        nan |= over
    return np.where(nan, -1, codes)


def actual(x, dtype, saturate) -> np.ndarray:
    result = convert(x, dtype, saturate=saturate)
    assert result.dtype == dtype
    assert result.shape == x.shape
    with_nan = FORMATS[dtype].kind != "finite"
    return np.where(np.isnan(result.astype(np.float32)), -1, codes_of(result)) if with_nan else codes_of(result)


def near_ties(dtype, source) -> np.ndarray:
    """Each midpoint and value of ``dtype`` and one ulp of ``source`` to either side, of both signs."""
    form = FORMATS[dtype]
    points = midpoints(dtype) + [form.magnitude(code) for code in range(form.greatest + 1)]
    exact = np.array([float(p) for p in points]).astype(source)
    everything = [exact, np.nextafter(exact, source(np.inf)), np.nextafter(exact, source(-np.inf))]
    specials = np.array([0, np.inf, np.nan, np.finfo(source).max, np.finfo(source).smallest_subnormal], source)
    positive = np.concatenate([*everything, specials])
    return np.concatenate([positive, -positive[~np.isnan(positive)]])


@pytest.mark.parametrize(("dtype", "saturate"), CASES, ids=IDS)
@pytest.mark.parametrize("source", [np.float64, np.float32, np.float16])
def test_one_ulp_either_side_of_every_tie(dtype, saturate, source):
    x = near_ties(dtype, source)
    np.testing.assert_array_equal(actual(x, dtype, saturate), expected(x, dtype, saturate))


@pytest.mark.parametrize(("dtype", "saturate"), CASES, ids=IDS)
@pytest.mark.parametrize("source", [np.dtype(np.float16), dtypes.BFLOAT16])
def test_every_16_bit_float(dtype, saturate, source):
    x = np.arange(2**16, dtype=np.uint16).view(source)
    if source == dtype:
        assert convert(x, dtype) is x
        return
    nan = np.isnan(x.astype(np.float32))
    got, wanted = actual(x, dtype, saturate), expected(x.astype(np.float64), dtype, saturate)
    np.testing.assert_array_equal(got[~nan], wanted[~nan])
    if FORMATS[dtype].kind == "finite":
        assert np.all(got[nan] % FORMATS[dtype].sign == 0)
    else:
        assert np.all(got[nan] == -1)


@pytest.mark.parametrize(("dtype", "saturate"), CASES, ids=IDS)
@pytest.mark.parametrize("source", FLOAT8)
def test_every_8_bit_float(dtype, saturate, source):
    x = np.arange(256, dtype=np.uint8).view(source)
    x = x[~np.isnan(x.astype(np.float32))]
    if source != dtype:
        np.testing.assert_array_equal(actual(x, dtype, saturate), expected(x.astype(np.float64), dtype, saturate))


@pytest.mark.parametrize("dtype", [d for d in FORMATS if d != np.float16])
@pytest.mark.parametrize("target", [np.float32, np.float64])
def test_widening_is_exact(dtype, target):
    form = FORMATS[dtype]
    for sign in (0, form.sign):
        codes = np.arange(sign, sign + form.greatest + 1).astype(f"u{dtype.itemsize}")
        if form.kind == "fnuz" and sign:
            codes = codes[1:]
        wide = convert(codes.view(dtype), np.dtype(target))
        wanted = [form.magnitude(int(code) - sign) * (-1 if sign else 1) for code in codes]
        assert [Fraction(float(w)) for w in wide] == wanted
        assert bool(np.signbit(wide[0])) == bool(sign)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("source", [np.int64, np.uint64, np.int32, np.uint32, np.int16, np.int8, np.uint8])
def test_integers_round_once(dtype, source):
    limits, form = np.iinfo(source), FORMATS[dtype]
    ties = [float(m) for m in midpoints(dtype)]  # exact, and Python compares integers with floats exactly
    near = {int(tie) + step for tie in ties if tie.is_integer() for step in (-1, 0, 1)}
    near |= {-n for n in near} | {limits.min, limits.max, 0, 1, 2**53 + 1, 2**63 - 1, 2**62 + 2**54 + 1}
    values = sorted(n for n in near if limits.min <= n <= limits.max)
    greatest = form.greatest + (dtype in (np.float16, dtypes.BFLOAT16))
    for value, code in zip(values, codes_of(convert(np.array(values, source), dtype)), strict=True):
        wanted = bisect_left(ties, abs(value))
        at_tie = wanted < len(ties) and ties[wanted] == abs(value)
        wanted += wanted % 2 if at_tie else 0
        assert code == min(wanted, greatest) + form.sign * (value < 0), value


def test_double_rounding_is_avoided():
    just_above_a_tie = np.array([1 + 2**-8 + 2**-40], np.float64)  # float32 would drop the last bit
    assert convert(just_above_a_tie, dtypes.BFLOAT16).astype(float) == 1 + 2**-7
    assert convert(np.array(2**62 + 2**54 + 1), dtypes.BFLOAT16).astype(float) == 2**62 + 2**55


@pytest.mark.parametrize(
    ("dtype", "saturate", "wanted"),
    [
        (dtypes.FLOAT8E4M3FN, True, [448, -448, 448, -448]),
        (dtypes.FLOAT8E4M3FNUZ, True, [240, -240, 240, -240]),
        (dtypes.FLOAT8E5M2, True, [57344, -57344, 57344, -57344]),
        (dtypes.FLOAT8E5M2FNUZ, True, [57344, -57344, 57344, -57344]),
        (dtypes.FLOAT8E4M3FN, False, [np.nan] * 4),
        (dtypes.FLOAT8E4M3FNUZ, False, [np.nan] * 4),
        (dtypes.FLOAT8E5M2, False, [np.inf, -np.inf, np.inf, -np.inf]),
        (dtypes.FLOAT8E5M2FNUZ, False, [np.nan] * 4),
    ],
)
def test_the_tables_of_cast(dtype, saturate, wanted):
    x = np.array([np.inf, -np.inf, 1e6, -1e6])
    np.testing.assert_array_equal(convert(x, dtype, saturate=saturate).astype(float), wanted)
    zeros = convert(np.array([0.0, -0.0]), dtype, saturate=saturate)
    assert list(codes_of(zeros)) == [0, 0 if dtype.name.endswith("fnuz") else 0x80]
    nans = codes_of(convert(np.array([np.nan, -np.nan], np.float32), dtype, saturate=saturate))
    if dtype.name.endswith("fnuz"):
        assert list(nans) == [0x80, 0x80]
    else:
        assert list(nans >> 7) == [0, 1]  # -NaN stays -NaN


def power_of_two(x: float, saturate: bool, round_mode: str) -> int:
    """The code of float8e8m0 by the table of Cast: 2**(code - 127), 255 is NaN."""
    if x != x or x < 0:
        return 255
    if x < Fraction(2) ** -127:
        return 0 if saturate else 255
    if x > 2.0**127:
        return 254 if saturate else 255
    power = max(e for e in range(-127, 128) if Fraction(2) ** e <= Fraction(x))
    ratio = Fraction(x) / Fraction(2) ** power
    up = {"up": ratio > 1, "down": False, "nearest": ratio >= Fraction(3, 2)}[round_mode]
    return power + 127 + up


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("source", [np.float64, np.float32])
def test_float8e8m0(saturate, round_mode, source):
    powers = np.array([2.0**e for e in (-127, -126, -125, -1, 0, 1, 2, 126, 127)], source)
    points = np.concatenate([powers, powers * source(1.5)])
    points = np.concatenate([points, np.nextafter(points, source(np.inf)), np.nextafter(points, source(0))])
    x = np.concatenate([points, np.array([0, np.inf, np.nan, 1e-45, 3e38, -1, -np.inf], source)])
    got = codes_of(convert(x, dtypes.FLOAT8E8M0, saturate=saturate, round_mode=round_mode))
    assert list(got) == [power_of_two(float(v), saturate, round_mode) for v in x]


def test_float8e8m0_of_wide_integers_and_back():
    x = np.array([2**62 + 1, 2**62, 3], np.int64)
    assert list(codes_of(convert(x, dtypes.FLOAT8E8M0))) == [190, 189, 129]
    every = np.arange(255, dtype=np.uint8).view(dtypes.FLOAT8E8M0)
    assert [Fraction(float(v)) for v in convert(every, np.dtype(np.float32))] == [
        Fraction(2) ** (c - 127) for c in range(255)
    ]
    assert np.all(np.isnan(convert(np.array([255], np.uint8).view(dtypes.FLOAT8E8M0), np.dtype(np.float16))))


def test_unknown_round_mode():
    with pytest.raises(ValueError, match="'away'"):
        convert(np.ones(1, np.float32), dtypes.FLOAT8E8M0, round_mode="away")


INTEGERS = [d for d in dtypes.BY_ELEMENT_TYPE.values() if dtypes.is_integer(d)]
WIDE = [d for d in INTEGERS if d not in dtypes.SUB_BYTE_BITS]
NARROW = [d for d in INTEGERS if d in dtypes.SUB_BYTE_BITS]


def as_python(array) -> list[int]:
    return [int(v) for v in array.astype(object)]


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("source", [np.float64, np.float32, np.float16])
def test_float_to_integer_truncates_and_stops_at_the_ends(dtype, source):
    lowest, highest = dtypes.integer_range(dtype)
    x = np.array([1.9, -1.9, 0.5, -0.5, 2.5, np.inf, -np.inf, np.nan, lowest, highest, highest + 1, -0.0], source)
    wanted = [
        0 if v != v else min(max(highest if v == np.inf else lowest if v == -np.inf else int(v), lowest), highest)
        for v in x.tolist()
    ]
    assert as_python(convert(x, dtype)) == wanted
    assert [convert(np.array(v, source), dtype).item() for v in x] == wanted


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("source", [np.float64, np.float16, dtypes.BFLOAT16])
def test_float_to_narrow_integer_rounds_and_keeps_the_low_bits(dtype, source):
    lowest, highest = dtypes.integer_range(dtype)
    x = np.arange(-40, 41).astype(np.float64) / 4
    size = highest - lowest + 1
    wanted = [(round(v) - lowest) % size + lowest for v in x.tolist()]  # Python rounds ties to even
    assert as_python(convert(x.astype(source), dtype)) == wanted


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integer_to_integer_keeps_the_low_bits(dtype, source):
    low, high = dtypes.integer_range(source)
    values = sorted({v for v in (low, low + 1, -1, 0, 1, 7, 8, 15, 200, high - 1, high) if low <= v <= high})
    lowest, highest = dtypes.integer_range(dtype)
    wanted = [(v - lowest) % (highest - lowest + 1) + lowest for v in values]
    assert as_python(convert(np.array(values, object).astype(source), dtype)) == wanted


@pytest.mark.parametrize("source", [d for d in dtypes.NAMES if d.kind != "c" and d not in (dtypes.STRING, bool)])
def test_to_and_from_bool(source):
    x = np.array([0, 1]).astype(source)
    wanted = [True, True] if source == dtypes.FLOAT8E8M0 else [False, True]  # it has no zero
    assert list(convert(x, np.dtype(bool))) == wanted
    if source != dtypes.FLOAT8E8M0:
        assert list(convert(np.array([False, True]), source).astype(float)) == [0, 1]


def test_nan_and_minus_zero_to_bool():
    assert list(convert(np.array([np.nan, -0.0, np.inf, 1e-45], np.float32), np.dtype(bool))) == [
        True,
        False,
        True,
        True,
    ]


def strings(*texts: str) -> np.ndarray:
    return np.array(texts, object)


def test_numbers_to_strings():
    floats = np.array([2.5, 1000, 0.1, 1e-5, 1e20, -0.0, np.nan, np.inf, -np.inf], np.float32)
    assert list(convert(floats, dtypes.STRING)) == [
        *("2.5", "1000", "0.1", "0.00001", "100000000000000000000", "-0", "NaN", "INF", "-INF")
    ]
    assert list(convert(np.array([314.15926, 1 / 3]), dtypes.STRING)) == ["314.15926", "0.3333333333333333"]
    assert list(convert(np.array([2**64 - 1], np.uint64), dtypes.STRING)) == ["18446744073709551615"]
    assert list(convert(np.array([True, False]), dtypes.STRING)) == ["1", "0"]
    assert list(convert(np.array([-8, 7]).astype(dtypes.INT4), dtypes.STRING)) == ["-8", "7"]
    assert list(convert(np.array([1.5, -448]).astype(dtypes.FLOAT8E4M3FN), dtypes.STRING)) == ["1.5", "-448"]
    assert convert(np.array(2.5, np.float16), dtypes.STRING).item() == "2.5"


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(np.float32), dtypes.BFLOAT16, dtypes.FLOAT8E5M2])
def test_strings_read_back_as_the_same_number(dtype):
    x = np.random.default_rng(0).integers(0, 2 ** (8 * dtype.itemsize), 2000).astype(f"u{dtype.itemsize}").view(dtype)
    back = convert(convert(x, dtypes.STRING), dtype, saturate=False)
    finite = ~np.isnan(x.astype(np.float32))
    np.testing.assert_array_equal(codes_of(back)[finite], codes_of(x)[finite])


def test_strings_to_floats():
    x = strings("3.14", "1000", "1e-5", "1E8", "+INF", "inf", "-Inf", "nAn", "-0", ".5", "5.", "1e400", "1e-400")
    wanted = [3.14, 1000, 1e-5, 1e8, np.inf, np.inf, -np.inf, np.nan, -0.0, 0.5, 5.0, np.inf, 0.0]
    np.testing.assert_array_equal(convert(x, np.dtype(np.float64)), wanted)
    np.testing.assert_array_equal(convert(x, np.dtype(np.float32)), np.array(wanted, np.float32))


def test_strings_round_once():
    tie = Fraction(1) + Fraction(1, 2**24)  # between 1 and the next float32
    text = f"{float(tie):.24f}"
    assert Fraction(text) == tie
    above, below = text + "0" * 30 + "1", str(int(tie * 10**24) - 1)[0] + "." + str(int(tie * 10**24) - 1)[1:] + "9"
    got = convert(strings(text, above, below), np.dtype(np.float32))
    assert [float(v) for v in got] == [1.0, 1 + 2**-23, 1.0]
    assert convert(strings("1.00390625" + "0" * 30 + "1"), dtypes.BFLOAT16).astype(float) == 1 + 2**-7


def test_strings_to_integers():
    x = strings("100.5", "-7", "+3", "1e3", "-0.9", "9007199254740993")
    assert list(convert(x, np.dtype(np.int64))) == [100, -7, 3, 1000, 0, 9007199254740993]
    assert list(convert(strings("18446744073709551615"), np.dtype(np.uint64))) == [2**64 - 1]
    assert as_python(convert(strings("-8", "7"), dtypes.INT4)) == [-8, 7]
    assert list(convert(strings("0", "2"), np.dtype(bool))) == [False, True]


@pytest.mark.parametrize("text", ["Hello World!", "", " 1", "1_000", "0x10", "1e", "infinity", "+NaN", "١"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
def test_strings_that_are_no_numbers(text, dtype):
    with pytest.raises(ValueError, match="is not a number"):
        convert(strings(text), np.dtype(dtype))


@pytest.mark.parametrize("text", ["128", "-129", "1e999999999", "NaN", "INF", "9" * 5000])
def test_strings_beyond_an_integer_type(text):
    with pytest.raises(ValueError, match="range of int8"):
        convert(strings(text), np.dtype(np.int8))


def test_rank_0_empty_and_strided():
    for dtype in dtypes.NAMES:
        if dtype.kind != "c":
            assert convert(np.zeros((2, 0)), dtype).shape == (2, 0)
            assert convert(np.array(1.0), dtype).shape == ()
            assert isinstance(convert(np.array(1.0), dtype), np.ndarray)
    x = np.arange(24, dtype=np.float64).reshape(4, 6)[::2, ::3].T
    np.testing.assert_array_equal(convert(x, dtypes.BFLOAT16).astype(float), x)


@pytest.mark.parametrize("source", [np.int64, np.uint64])
@pytest.mark.parametrize(("target", "bits"), [(np.float32, 24), (np.float64, 53)])
def test_wide_integers_to_ieee_floats(source, target, bits):
    limits = np.iinfo(source)
    ties = {2**top + (2 * i + 1) * 2 ** (top - bits) for top in range(bits, 64) for i in range(3)}
    values = sorted(
        {n + step for n in ties for step in (-1, 0, 1) if n + step <= limits.max} | {limits.max, limits.min}
    )
    got = convert(np.array(values, source), np.dtype(target))
    for value, near in zip(values, got.tolist(), strict=True):
        others = [int(np.nextafter(target(near), target(way))) for way in (-np.inf, np.inf)]
        assert all(abs(int(near) - value) <= abs(other - value) for other in others)
        if abs(int(near) - value) in [abs(other - value) for other in others]:  # a tie: the even one
            assert np.array(near, target).view(f"i{target().itemsize}") % 2 == 0

"""The layout of values, on screens of every width."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onnxeval.values import EmptyOptional, Sequence, TensorType
from onnxeval_cli.digits import range_text, text_width
from onnxeval_cli.render import SUMMARY_ABOVE, value_lines
from onnxeval_cli.screen import Screen


def text_of(value, width=100, *, terminal=True, **options):
    lines = value_lines("v", value, Screen(width, terminal=terminal), **options)
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def body_of(value, **options):
    return text_of(value, **options).split("\n", 1)[1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], "  1  2  3"),
        ([1, -2.5, 3], "  1.0  -2.5  3.0"),
        ([0.998, 1.2e-9, 0], "  0.998  1.2e-09  0.000"),
        ([1e-9, 2e-9], "  1e-09  2e-09"),
        ([1.5e20, 1], "  1.5e+20  1e+00"),
        ([123456.7, 0.1], "  123456.7  0.1"),
        ([np.nan, np.inf, -np.inf, 1], "  NaN  Inf  -Inf  1"),
        ([-0.0, 1.5], "  -0.0  1.5"),
        ([1e6], "  1000000"),
    ],
)
def test_digits(values, expected):
    assert body_of(np.array(values, np.float32)) == expected


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1, -8], ml_dtypes.int4), "v  int4[2]  -8 to 1\n  1  -8"),
        (np.array([3, 0], ml_dtypes.uint2), "v  uint2[2]  0 to 3\n  3  0"),
        (np.array([0.5, 448], ml_dtypes.float8_e4m3fn), "v  float8e4m3fn[2]  0.5 to 448\n  0.5  448.0"),
        (np.array([1.5, np.nan], ml_dtypes.bfloat16), "v  bfloat16[2]  1.5, 1 NaN\n  1.5  NaN"),
        (np.array([2**64 - 1], np.uint64), "v  uint64[1]  18446744073709551615\n  18446744073709551615"),
        (np.array([True, False]), "v  bool[2]  1 of 2 true\n  true  false"),
        (np.array([1 + 2j, complex(0, -1)], np.complex64), "v  complex64[2]  magnitude 1 to 2.23607\n  1+2j  0-1j"),
        (np.array(["a\n", '"'], object), 'v  string[2]  2 strings\n  "a\\n"  "\\""'),
        (np.array(5, np.int8), "v  int8[]  5"),
        (np.array("x", object), 'v  string[]  "x"'),
        (np.array(np.nan), "v  float64[]  NaN"),
        (np.zeros((0, 3), np.float32), "v  float32[0, 3]  no elements"),
        (np.zeros((2, 0)), "v  float64[2, 0]  no elements"),
    ],
)
def test_every_kind_of_element(array, expected):
    assert text_of(array) == expected


def test_planes_of_higher_ranks_carry_their_index():
    assert body_of(np.arange(8).reshape(2, 1, 2, 2)) == ("  [0, 0]\n  0  1\n  2  3\n  [1, 0]\n  4  5\n  6  7")


def test_columns_are_as_wide_as_they_have_to_be_in_all_planes():
    assert body_of(np.array([[[1, 100], [10, 1]], [[2, 3], [4, 5000]]])) == (
        "  [0]\n   1   100\n  10     1\n  [1]\n   2     3\n   4  5000"
    )


def test_a_long_vector_goes_on_under_the_place_of_its_first_element():
    assert body_of(np.arange(12), width=24) == "   [0]   0   1   2   3\n   [4]   4   5   6   7\n   [8]   8   9  10  11"


def test_a_wide_row_goes_on_set_further_in():
    assert body_of(np.arange(12).reshape(2, 6), width=14) == "  0  1  2  3\n       4   5\n  6  7  8  9\n      10  11"


def test_summaries_show_the_edges_of_every_axis():
    text = body_of(np.arange(20 * 50).reshape(20, 50) + 1000 * np.ones((2, 1, 1), int), width=40)
    assert text.splitlines() == [
        "  [0]",
        "  1000  1001  1002  …  1048  1049",
        "  1050  1051  1052  …  1098  1099",
        "  1100  1101  1102  …  1148  1149",
        "  1150  1151  1152  …  1198  1199",
        "  … 12 more rows …",
        "  1800  1801  1802  …  1848  1849",
        "  1850  1851  1852  …  1898  1899",
        "  1900  1901  1902  …  1948  1949",
        "  1950  1951  1952  …  1998  1999",
        *text.splitlines()[10:],
    ]
    planes = body_of(np.zeros((100, 20, 1)))
    assert "  … 94 more planes …" in planes.splitlines()
    assert [line for line in planes.splitlines() if "[" in line][2:4] == ["  [2]", "  [97]"]


def test_full_without_a_terminal_is_a_row_a_line():
    assert len(body_of(np.zeros((3, 2000)), full=True, terminal=False).splitlines()) == 3
    assert len(body_of(np.zeros(2000), full=True, terminal=False).splitlines()) == 1


def test_strings_are_cut_unless_everything_is_asked_for():
    array = np.array(["x" * 100], object)
    assert body_of(array) == f'  "{"x" * 59}…"'
    assert body_of(array, full=True) == f'  "{"x" * 100}"'


def test_wide_letters_keep_columns_straight():
    lines = body_of(np.array([["日本", "a"], ["b", "c"]], object)).splitlines()
    assert lines == ['  "日本"  "a"', '  "b"     "c"']
    assert text_width("日本e\u0301") == 5


def test_sequences_maps_and_optionals():
    assert text_of(Sequence([np.array([1, 2]), np.array(3)])) == (
        "v  seq(int64)  2 items\n  v[0]  int64[2]  1 to 2\n    1  2\n  v[1]  int64[]  3"
    )
    assert text_of(Sequence([], TensorType(np.dtype(np.float32)))) == "v  seq(float32)  0 items"
    assert text_of({1: np.float32(0.25), 10: np.float32(0.75)}) == (
        "v  map(int64, float32)  2 entries\n   1: 0.25\n  10: 0.75"
    )
    assert (
        text_of([{"a": 1.0}])
        == 'v  seq(map(string, float64))  1 item\n  v[0]  map(string, float64)  1 entry\n    "a": 1'
    )
    assert text_of(EmptyOptional(TensorType(np.dtype(np.int8)))) == "v  optional(int8)  empty"
    assert "  … 90 more" in text_of(Sequence([np.array(1)] * 100)).splitlines()


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1.5, 1.5]), "1.5"),
        (np.array([np.nan, np.nan]), "2 NaN"),
        (np.array([np.inf, 1, 2, np.nan]), "1 to 2, 1 NaN, 1 Inf"),
        (np.array([2**63 - 1, -(2**63)]), "-9223372036854775808 to 9223372036854775807"),
        (np.array([1 / 3], np.float32), "0.333333"),
        (np.array(["a"], object), "1 string"),
    ],
)
def test_ranges(array, expected):
    assert range_text(array) == expected


@given(
    arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.uint64, np.complex64, np.bool_]),
        arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=12),
    ),
    st.integers(80, 200),
)
def test_no_array_breaks_the_layout(array, width):
    with np.errstate(all="ignore"):
        lines = text_of(array, width).splitlines()
    assert lines[0].startswith("v  ")
    if array.size > SUMMARY_ABOVE:
        assert len(lines) <= 2 + 6 * 10


@given(arrays.arrays(np.float64, 20, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_what_is_shown_is_the_number_to_three_digits(array):
    shown = body_of(array, full=True, terminal=False).split()
    np.testing.assert_allclose([float(text) for text in shown], array, rtol=5e-3, atol=0)

"""Casts, generators, tables, raw bytes, and types as text."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from files.values import DTYPES, same
from hypothesis import given
from hypothesis import strategies as st

from onnxeval.dtypes import BFLOAT16, FLOAT8E8M0, STRING, is_float, is_integer, name_of
from onnxeval.errors import InputError
from onnxeval.files import Reading, read
from onnxeval.files.typetext import parse_type
from onnxeval.values import MapType, OptionalType, Sequence, SequenceType, TensorType

FLOATS, INTS = TensorType(np.dtype(np.float32)), TensorType(np.dtype(np.int64))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# types as text


@st.composite
def types(draw, depth=2):
    dtype = draw(st.sampled_from(DTYPES))
    sizes = st.one_of(st.integers(0, 2**62), st.none(), st.from_regex(r"[A-Za-z_]\w{0,5}", fullmatch=True))
    shape = draw(st.lists(sizes, max_size=4).map(tuple))
    tensor = draw(st.sampled_from([TensorType(dtype), TensorType(dtype, shape), TensorType(None, shape)]))
    kind = draw(st.integers(0, 3)) if depth else 0
    if kind == 0:
        return tensor
    inner = draw(types(depth=depth - 1))
    if kind == 3:
        return MapType(draw(st.sampled_from([np.dtype(np.int64), STRING])), inner)
    return (SequenceType, OptionalType)[kind - 1](inner)


@given(types())
def test_a_type_is_read_as_it_is_printed(value_type):
    assert parse_type(str(value_type)) == value_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2x3", TensorType(None, (2, 3))),
        ("[2, ?]", TensorType(None, (2, None))),
        ("float[2,N]", TensorType(np.dtype(np.float32), (2, "N"))),
        ("bfloat16", TensorType(BFLOAT16)),
        ("int64[]", TensorType(np.dtype(np.int64), ())),
    ],
)
def test_other_ways_to_write_types(text, expected):
    assert parse_type(text) == expected


@pytest.mark.parametrize("text", ["", "float33", "[2", "2", "float32[2,3]x", "map(int64)", "[1.5]", "seq(float33)"])
def test_what_is_no_type(text):
    with pytest.raises(ValueError, match="is no"):
        parse_type(text)


# casts


def cast(array, dtype):
    reading = Reading(cast=True, can_cast=True)
    np.save("x.npy", array)
    return read("x.npy", TensorType(np.dtype(dtype)), reading), reading.notes


def test_nothing_is_cast_unasked():
    for array, wanted in ((np.zeros(2), FLOATS), (np.zeros(2, np.int32), INTS), (np.array(["1"]), INTS)):
        np.save("x.npy", array)
        with pytest.raises(InputError, match="the model declares") as caught:
            read("x.npy", wanted, Reading(can_cast=True))
        assert caught.value.hint == "--cast converts them"


def test_a_cast_says_what_changed():
    found, notes = cast(np.array([1.5, 2, 0.1]), np.float32)
    assert same(found, np.array([1.5, 2, 0.1], np.float32))
    assert notes == ["x.npy: cast from float64 to float32, 1 of 3 elements changed"]
    found, notes = cast(np.array([1.5, -2.0]), np.int8)
    assert found.tolist() == [1, -2]
    assert notes == ["x.npy: cast from float64 to int8, 1 of 2 elements changed"]
    assert cast(np.array([1, 0]), bool)[0].tolist() == [True, False]
    assert cast(np.array([np.nan, 1.0]), np.float16)[1] == ["x.npy: cast from float64 to float16, no element changed"]


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([300]), np.uint8),
        (np.array([-1]), np.uint64),
        (np.array([2**63], np.uint64), np.int64),
        (np.array([2.0**63]), np.int64),
        (np.array([np.nan]), np.int32),
        (np.array([1e39]), np.float32),
        (np.array([8]), ml_dtypes.int4),
        (np.array([500.0]), ml_dtypes.float8_e4m3fn),
        (np.array(["x"]), np.int64),
    ],
)
def test_a_number_that_the_type_has_not_is_refused(array, dtype):
    with pytest.raises(InputError):
        cast(array, dtype)


def test_casts_inside_other_values():
    Path("x.json").write_text(
        '{"type": "sequence", "of": "float64", "items": ['
        '{"type": "tensor", "dtype": "float64", "shape": [1], "data": [0.5]}]}'
    )
    with pytest.raises(InputError, match="float64, the model declares float32"):
        read("x.json", SequenceType(FLOATS))
    found = read("x.json", SequenceType(FLOATS), Reading(cast=True))
    assert isinstance(found, Sequence)
    assert found[0].dtype == np.float32


# generators


NARROW_INTEGERS = (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2)  # 24 steps are too many for them


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_generators_make_every_type(dtype):
    wanted = TensorType(dtype, (4, "N", 2))
    sizes = Reading(sizes={"N": 3})
    for kind in ("zeros:", "ones:", "rand:", "randn:", "range:", "full:1"):
        impossible = {
            STRING: {"zeros:", "ones:", "rand:", "randn:", "range:"},
            np.dtype(bool): {"randn:", "range:", "full:1"},
            FLOAT8E8M0: {"zeros:", "range:"},  # it has no zero
            **{key: {"randn:", "range:"} for key in map(np.dtype, NARROW_INTEGERS)},
        }.get(dtype, {"randn:"} if is_integer(dtype) else set())
        if kind in impossible:
            with pytest.raises(InputError):
                read(kind, wanted, sizes)
            continue
        found = read(kind, wanted, sizes)
        assert found.dtype == dtype
        assert found.shape == (4, 3, 2)
        if kind == "rand:" and is_float(dtype):
            assert 0 <= found.astype(np.float64).min() <= found.astype(np.float64).max() <= 1


def test_ranges_of_random_numbers():
    found = read("rand:int64[1000]:-2:3")
    assert set(found.tolist()) == {-2, -1, 0, 1, 2, 3}
    floats = read("rand:float64[1000]:-2:3")
    assert -2 <= floats.min() < -1.9
    assert 2.9 < floats.max() < 3
    normal = read("randn:float64[10000]:5:0.5")
    assert abs(normal.mean() - 5) < 0.05
    assert abs(normal.std() - 0.5) < 0.05
    assert read("range:[4]:10:-2").tolist() == [10, 8, 6, 4]
    assert read("range:float64[3]:0:0.5").tolist() == [0, 0.5, 1]
    assert read("full:NaN:[2]").tolist() != read("full:NaN:[2]").tolist()
    assert read("full:abc:string[2]").tolist() == ["abc", "abc"]


def test_seeds():
    from onnxeval.files.opening import open_source

    def drawn(name, seed):
        return open_source("rand:[8]", reading=Reading(seed=seed)).read(name, FLOATS).tolist()

    assert drawn("x", 1) == drawn("x", 1)
    assert drawn("x", 1) != drawn("x", 2)
    assert drawn("x", 1) != drawn("y", 1)


# tables


def test_tables_take_the_declared_type_and_rank():
    Path("x.csv").write_text("1,2,3\n")
    assert same(read("x.csv", TensorType(np.dtype(np.float16), ("N",))), np.array([1, 2, 3], np.float16))
    assert read("x.csv", TensorType(BFLOAT16, (1, 3))).dtype == BFLOAT16
    assert read("x.csv", TensorType(np.dtype(np.int8), (1, "N", 1, 1))).shape == (1, 3, 1, 1)
    assert read("x.csv", TensorType(STRING)).tolist() == [["1", "2", "3"]]
    with pytest.raises(InputError, match="does not fill"):
        read("x.csv", TensorType(np.dtype(np.int8), (2, 2, 2)))
    with pytest.raises(InputError, match="a table is a tensor"):
        read("x.csv", SequenceType(FLOATS))


def test_what_a_table_holds_where_no_type_is_declared():
    for text, dtype in (("1,2\n", np.int64), ("1,2.5\n", np.float32), ("true,False\n", bool), ("a,1\n", object)):
        Path("x.csv").write_text(text)
        assert read("x.csv").dtype == dtype


def test_columns_go_to_the_inputs_of_their_names(tmp_path):
    Path("x.csv").write_text('name,age\n"Li, A",30\nBo,41\n')
    found = read("x.csv", {"name": TensorType(STRING, ("N", 1)), "age": TensorType(np.dtype(np.int64), ("N",))})
    assert found["name"].tolist() == [["Li, A"], ["Bo"]]
    assert found["age"].tolist() == [30, 41]
    with pytest.raises(InputError, match="no column 'size'"):
        read("x.csv:size")


def test_lines_of_text():
    Path("x.txt").write_text("one line\nanother # line\n", encoding="utf-8")
    assert read("x.txt", TensorType(STRING, ("N",))).tolist() == ["one line", "another # line"]


def test_numbers_of_every_notation():
    Path("x.txt").write_text("# by hand\n1e3 nan INF -inf +7 1_0\n".replace(" 1_0", ""))
    assert str(read("x.txt", FLOATS).tolist()) == "[[1000.0, nan, inf, -inf, 7.0]]"
    Path("x.csv").write_text("1+2j,-nanj\n")
    assert str(read("x.csv", TensorType(np.dtype(np.complex64))).tolist()) == "[[(1+2j), nanj]]"


# raw bytes


def test_raw_bytes_take_a_type_from_the_model_or_the_name():
    array = np.arange(6, dtype=np.float32)
    array.tofile("x.bin")
    assert same(read("x.bin", TensorType(array.dtype, ("N", 3))), array.reshape(2, 3))
    assert same(read("x.bin:float32[2,3]"), array.reshape(2, 3))
    assert same(read("x.bin:float32"), array)
    assert same(read("x.bin:float32[?,2]"), array.reshape(3, 2))
    Path("x.bin").rename("x.dat")
    assert same(read("x.dat:float32[6]"), array)
    with pytest.raises(InputError, match="not read") as caught:
        read("x.dat")
    assert "x.dat:float32" in caught.value.hint
    Path("x.raw").write_bytes(bytes([0x21, 0x03]))
    assert read("x.raw:int4[3]").tolist() == [1, 2, 3]

"""Values that are typed in place."""

import json

import numpy as np
import pytest

from onnxeval.files.jsonform import value_form

INPUT_ERROR = 5


def outputs_of(result):
    assert result.exit_code == 0, result.stderr
    return {entry["name"]: entry for entry in json.loads(result.stdout)["outputs"]}


def data_of(result, name="y"):
    return outputs_of(result)[name]["data"]


@pytest.mark.parametrize(
    ("name", "literal", "expected"),
    [
        ("relu", "[[1, 2.5, -3]]", [[1, 2.5, 0]]),
        ("relu", "[[NaN, Infinity, 1]]", [["NaN", "Infinity", 1]]),
        ("scalar", "3.5", -3.5),
        ("scalar", "-3", 3),
        ("text", '["a", "日本"]', ["a", "日本"]),
        ("int64", "[9223372036854775807]", [2**63 - 1]),
        ("uint64", "[18446744073709551615]", [2**64 - 1]),
        ("bool", "[true, false]", [False, True]),
        ("complex", "[[1, -2], 3]", [[1, -2], [3, 0]]),
        ("bfloat16", "[0.1, -3]", [0.10009765625, -3]),
        ("int4", "[-8, 7]", [-8, 7]),
        ("int64", "[]", []),
    ],
)
def test_literals_take_the_declared_type(shell, model, name, literal, expected):
    output = {"text": "t"}.get(name, "y")
    assert data_of(shell("run", model(name), "--input", literal, "--format", "json"), output) == expected


def test_a_literal_longer_than_any_file_name(shell, model):
    numbers = list(range(2000))
    assert data_of(shell("run", model("int64"), "-i", str(numbers), "--format", "json")) == numbers
    result = shell("run", model("relu"), "-i", "x" * 5000)
    assert result.exit_code == INPUT_ERROR


def test_a_literal_is_rounded_once(shell, model):
    above_a_tie = 1 + 2**-8 + 2**-40  # float32 would make it the tie, which goes down to 1
    assert data_of(shell("run", model("bfloat16"), "-i", f"[{above_a_tie!r}]", "--format", "json")) == [1.0078125]


def test_literals_of_sequences_and_optionals(shell, model):
    items = outputs_of(shell("run", model("sequence"), "-i", "[[1], [2, 3]]", "--format", "json"))["t"]["items"]
    assert [item["data"] for item in items] == [[1], [2, 3]]
    of = outputs_of(shell("run", model("sequence"), "-i", "[[1]]", "--format", "json"))["t"]["of"]
    assert of == "float32"
    empty = outputs_of(shell("run", model("optional"), "-i", "null", "--format", "json"))["p"]
    assert empty == {"name": "p", "type": "optional", "of": "float32[N]"}
    counts = value_form({"a": np.int64(1)})
    assert counts == {"type": "map", "keys": "string", "of": "int64", "entries": [["a", 1]]}


@pytest.mark.parametrize(
    ("name", "literal", "reason"),
    [
        ("int64", "[1.5]", "1.5 is not an integer"),
        ("int64", "[true]", "true is not an integer"),
        ("int4", "[8]", "8 is outside int4 (-8 to 7)"),
        ("uint64", "[-1]", "-1 is outside uint64"),
        ("relu", "[[1e39, 0, 0]]", "1e+39 does not fit float32"),
        ("relu", "[[1e400, 0, 0]]", "1e400 does not fit float64"),
        ("relu", "[[1, 2], [3]]", "ragged"),
        ("relu", '[["a", 1, 2]]', '"a" is not a number'),
        ("bool", "[1]", "1 stands where true or false is expected"),
        ("text", "[1]", "1 stands where a string is expected"),
        ("text", "[GET]", "hint: values are written as in JSON, text in quotes"),
        ("relu", "[[1, 2, 3]", "Expecting"),
        ("relu", "{}", "{} is not a number"),
        ("relu", '{"type": "tensor"}', "the dtype null is unknown"),
        ("relu", '{"type": "tensor", "dtype": [], "shape": 3}', "the dtype [] is unknown"),
        ("relu", '{"type": "tensor", "dtype": "float32", "shape": [-1]}', "the shape [-1] is none"),
        ("relu", '{"type": "tensor", "dtype": "float32", "shape": [3], "data": [1]}', "is of shape [1], not [3]"),
        ("relu", '{"type": "map", "entries": [1]}', "1 stands where a key and a value are expected"),
        ("relu", "[" * 100_000, "recursion"),
        ("relu", "hello", "neither a file nor a value"),
        ("relu", "x.npy", "there is no such file"),
        ("relu", "f.npz:x", "there is no such file"),
    ],
)
def test_values_that_are_refused(shell, model, name, literal, reason):
    result = shell("run", model(name), "--input", literal)
    assert result.exit_code == INPUT_ERROR
    assert reason in result.stderr
    assert "Traceback" not in result.stderr

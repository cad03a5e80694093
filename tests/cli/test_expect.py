"""`--expect` and its tolerances."""

import json
from pathlib import Path

import numpy as np
import pytest

USAGE, INPUT_ERROR = 2, 5
TWO = ("-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, 0]")  # sum is 1 4 9, negative -1 -4 -9


def test_what_agrees(shell, model):
    result = shell("run", model("relu"), "-i", "[[1, -2, 3]]", "--expect", "[[1, 0, 3]]")
    assert result.exit_code == 0
    assert result.stdout.startswith("y  agrees  max abs 0")
    assert "float32" not in result.stdout


def test_what_differs_with_the_worst_places(shell, model):
    result = shell("run", model("two"), *TWO, "--expect", "sum=[[1, 4.5, 10]]", "--save", "out.npz")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("sum  differs  in 2 of 3 elements (66.7 %), max abs 1, max rel 0.111, max ulp 1048576")
    assert [line.split() for line in lines[1:]] == [
        ["sum[0,", "2]", "9,", "expected", "10"],
        ["sum[0,", "1]", "4,", "expected", "4.5"],
    ]
    assert Path("out.npz").exists()  # the results are right whatever is expected of them


def test_files_of_several(shell, model):
    np.savez("right.npz", sum=np.array([[1, 4, 9]], np.float32), negative=np.array([[-1, -4, -9]], np.float32))
    assert shell("run", model("two"), *TWO, "--expect", "right.npz").exit_code == 0
    assert shell("run", model("two"), *TWO, "--save", "test_data_set_0").exit_code == 0
    result = shell("run", model("two"), *TWO, "--expect", "test_data_set_0")
    assert result.exit_code == 0
    assert result.stdout.count("agrees") == 2
    result = shell("run", model("two"), *TWO, "--expect", "right.npz", "--expect", "sum=right.npz")
    assert "the output 'sum' is given twice" in result.stderr


def test_values_inside_can_be_expected(shell, model):
    result = shell("run", model("two"), *TWO, "--expect", "scaled=[[1, 4, 9]]", "--save", "out.npz")
    assert result.exit_code == 0
    assert result.stdout.startswith("scaled  agrees")
    with np.load("out.npz") as saved:
        assert saved.files == ["sum", "negative"]


@pytest.mark.parametrize(
    ("tolerance", "code"),
    [
        ((), 1),
        (("--rtol", "0.2"), 0),
        (("--rtol", "sum:0.2"), 0),
        (("--rtol", "sum:0.2", "--rtol", "0"), 0),
        (("--rtol", "sum:1e-9", "--rtol", "1"), 1),
        (("--atol", "1"), 0),
        (("--atol", "0.9"), 1),
        (("--max-ulp", "1048576"), 0),
        (("--max-ulp", "1048575"), 1),
    ],
)
def test_tolerances(shell, model, tolerance, code):
    result = shell(
        "run", model("two"), *TWO, "--expect", "sum=[[1, 4, 10]]", "--expect", "negative=[[-1, -4, -9]]", *tolerance
    )
    assert result.exit_code == code, result.stdout


def test_integers_are_exact(shell, model):
    assert shell("run", model("int64"), "-i", "[10000]", "--expect", "[10001]").exit_code == 1
    assert shell("run", model("int64"), "-i", "[10000]", "--expect", "[10001]", "--atol", "1").exit_code == 0


def test_wrong_use(shell, model):
    for arguments, code, reason in (
        (("--rtol", "1e-3"), USAGE, "--expect"),
        (("--rtol", "x"), USAGE, "[NAME:]X"),
        (("--rtol", "-1"), USAGE, "not negative"),
        (("--expect", "[[1, 0, 3]]", "--rtol", "z:1"), INPUT_ERROR, "'z', which is not compared"),
        (("--expect", "z=[[1, 0, 3]]"), INPUT_ERROR, "'z' is no output of the model"),
        (("--expect", "missing.npy"), INPUT_ERROR, "no such file"),
    ):
        result = shell("run", model("relu"), "-i", "[[1, -2, 3]]", *arguments)
        assert result.exit_code == code, result.stderr
        assert reason in result.stderr
        assert result.stdout == ""


def test_another_type_or_shape(shell, model):
    np.save("y.npy", np.array([[1, 0, 3]]))
    result = shell("run", model("relu"), "-i", "[[1, -2, 3]]", "--expect", "y.npy", "--save", "out.npz")
    assert result.exit_code == INPUT_ERROR
    assert "--cast" in result.stderr
    assert not Path("out.npz").exists()
    result = shell("run", model("relu"), "-i", "[[1, -2, 3]]", "--expect", "y.npy", "--cast")
    assert result.exit_code == 0
    assert "cast from int64 to float32" in result.stderr
    result = shell("run", model("relu"), "-i", "[[1, -2, 3]]", "--expect", "[1, 0, 3]")
    assert result.exit_code == 1
    assert "float32[1, 3], float32[3] is expected" in result.stdout


def test_other_values(shell, model):
    assert shell("run", model("sequence"), "-i", "[[1], [2, 3]]", "--expect", "[[1], [2, 3]]").exit_code == 0
    result = shell("run", model("sequence"), "-i", "[[1], [2, 3]]", "--expect", "[[1], [2, 4]]")
    assert result.exit_code == 1
    assert "t[1][1]  3, expected 4" in result.stdout
    assert shell("run", model("optional"), "-i", "null", "--expect", "null").exit_code == 0
    assert shell("run", model("optional"), "-i", "null", "--expect", "[1]").exit_code == 1
    result = shell("run", model("text"), "-i", '["a", "b"]', "--expect", '["a", "c"]')
    assert "t[1]  'b', expected 'c'" in result.stdout


def test_json(shell, model):
    result = shell("run", model("two"), *TWO, "--expect", "sum=[[1, 4, 10]]", "--format", "json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert [entry["name"] for entry in content["outputs"]] == ["sum", "negative"]
    verdict = content["verdict"]["outputs"][0]
    assert verdict["worst"] == [{"place": "sum[0, 2]", "value": 9.0, "expected": 10.0}]
    assert (verdict["elements"], verdict["mismatching"], verdict["max_abs"]) == (3, 1, 1.0)

"""`--stats`, `--hash`, `--show`, `--output-type`, `--save -` and pipes."""

import hashlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from files.values import DTYPES, examples_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onnxeval.dtypes import STRING, name_of
from onnxeval.summary import content_hash, statistics
from onnxeval.values import EmptyOptional, Sequence

USAGE, INPUT_ERROR, OUTPUT_ERROR = 2, 5, 8


@given(arrays.arrays(np.float64, st.integers(0, 50), elements=st.floats(-1e100, 1e100)))
def test_statistics_are_those_of_numpy(array):
    found = statistics(array)
    assert (found.count, found.zeros, found.nan, found.inf) == (array.size, np.count_nonzero(array == 0), 0, 0)
    if array.size:
        assert (found.least, found.most) == (array.min(), array.max())
        np.testing.assert_allclose([found.mean, found.deviation], [array.mean(), array.std()], rtol=1e-6, atol=1e90)
        assert sum(found.histogram) == array.size


def test_statistics_of_parts_are_those_of_the_whole(monkeypatch):
    monkeypatch.setattr("onnxeval.summary._CHUNK", 7)
    array = np.random.default_rng(0).normal(5, 2, 100).astype(np.float32)
    found = statistics(array)
    assert found.mean == pytest.approx(array.astype(np.float64).mean())
    assert found.deviation == pytest.approx(array.astype(np.float64).std())
    assert list(found.histogram) == np.histogram(array.astype(np.float64), 16)[0].tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_statistics_and_hashes_of_every_type(dtype):
    for array in examples_of(dtype):
        found = statistics(array)
        assert (found is None) == (dtype == STRING)
        assert len(content_hash(array)) == 64


def test_what_is_no_number_is_counted():
    found = statistics(np.array([np.nan, np.inf, -np.inf, 0, 2], ml_dtypes.bfloat16))
    assert (found.count, found.nan, found.inf, found.zeros, found.least, found.most) == (5, 1, 2, 1, 0, 2)
    assert statistics(np.full(3, np.nan)).histogram == ()
    assert statistics(np.array([2**63 - 1, -(2**63)])).most == 2**63 - 1


def test_a_hash_can_be_made_with_numpy_alone():
    array = np.array([[1, 2]], np.float32)
    assert content_hash(array) == hashlib.sha256(b"float32[1, 2]\n" + array.tobytes()).hexdigest()
    assert content_hash(np.asfortranarray(np.eye(3))) == content_hash(np.eye(3))


def test_values_that_differ_have_other_hashes():
    values = [
        np.zeros(2),
        np.zeros((2, 1)),
        np.zeros(2, np.float32),
        np.array(["ab", ""], object),
        np.array(["a", "b"], object),
        Sequence([np.zeros(2)]),
        Sequence([np.zeros(2), np.zeros(2)]),
        {1: 2.0},
        {"1": 2.0},
        {"a": "b"},
        EmptyOptional(),
        np.array([1], ml_dtypes.int4),
    ]
    assert len({content_hash(value) for value in values}) == len(values)


def test_stats(shell, model):
    result = shell("run", model("two"), "-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, NaN]", "--stats")
    assert result.exit_code == 0
    head, total, negative = result.stdout.splitlines()
    assert head.split() == ["type", "min", "max", "mean", "std", "zeros", "NaN", "Inf", "histogram"]
    assert total.split()[:10] == ["sum", "float32[1,", "3]", "1", "4", "2.5", "1.5", "0", "1", "0"]
    assert negative.split()[3:5] == ["-9", "-1"]


def test_stats_and_hashes_as_json(shell, model):
    result = shell("run", model("relu"), "-i", "[[1, 2, NaN]]", "--stats", "--hash", "--format", "json")
    entry = json.loads(result.stdout)["outputs"][0]
    assert "data" not in entry
    assert entry["stats"]["max"] == 2
    assert entry["stats"]["nan"] == 1
    assert entry["sha256"] == content_hash(np.array([[1, 2, np.nan]], np.float32))
    result = shell("run", model("sequence"), "-i", "[[1], [2, 3]]", "--stats", "--hash", "--format", "json")
    entry = json.loads(result.stdout)["outputs"][0]
    assert [part["count"] for part in entry["stats"]] == [1, 2]
    assert "items" not in entry


def test_hash(shell, model):
    result = shell("run", model("relu"), "-i", "[[1, 2, 3]]", "--hash")
    expected = content_hash(np.array([[1, 2, 3]], np.float32))
    assert result.stdout == f"sha256:{expected}  y  float32[1, 3]\n"


def test_show_in_letters(shell, model):
    result = shell("run", model("double"), "-i", "[[[[0, 1], [0.5, 0]]]]", "--show")
    assert result.stdout.splitlines()[1:] == ["  @@", "++" if False else result.stdout.splitlines()[2]]
    assert len(result.stdout.splitlines()) == 3
    result = shell("run", model("text"), "-i", '["a"]', "--show")
    assert "no picture" in result.stdout


def test_show_in_colours_on_a_terminal(shell, model, monkeypatch):
    path = model("double")
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "onnxeval", "run", str(path), "-i", "[[[[0, 1], [1, 0]]]]", "--show"]
    subprocess.run(command, stdout=follower, stderr=subprocess.PIPE, env=environment, check=True, timeout=60)
    os.close(follower)
    printed = os.read(leader, 10_000).decode()
    os.close(leader)
    assert printed.count("▀") == 2
    assert "\x1b[38;2;255;255;255;48;2;0;0;0m▀" in printed


def test_output_type(shell, model):
    result = shell("run", model("two"), "-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, 0]", "--output-type", "Mul", "-o", "sum")
    assert [line.split()[0] for line in result.stdout.splitlines() if line[:1].isalpha()] == ["sum", "scaled"]
    result = shell("run", model("two"), "-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, 0]", "--output-type", "Mul,Add")
    assert [line.split()[0] for line in result.stdout.splitlines() if line[:1].isalpha()] == ["scaled", "sum"]
    result = shell("run", model("two"), "-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, 0]", "--output-type", "Mull")
    assert result.exit_code == INPUT_ERROR
    assert "did you mean Mul?" in result.stderr


def test_standard_output_takes_a_file_and_standard_error_the_table(shell, model):
    result = shell("run", model("relu"), "-i", "[[1, -2, 3]]", "--save", "-")
    assert result.stdout_bytes.startswith(b"\x93NUMPY")
    assert "y  float32[1, 3]" in result.stderr
    result = shell("run", model("two"), "-i", "x=[[1, 2, 3]]", "-i", "b=[0, 0, 0]", "--save", "-")
    assert result.stdout_bytes.startswith(b"PK")
    assert shell("run", model("relu"), "-i", "[[1, 2, 3]]", "--save", "-", "--format", "json").exit_code == USAGE
    result = shell("run", model("sequence"), "-i", "[[1]]", "--save", "-")
    assert result.exit_code == OUTPUT_ERROR
    assert result.stdout_bytes == b""


def piped(command, **options):
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=120, check=False, **options
    )


@pytest.mark.skipif(os.name != "posix", reason="pipes of a POSIX shell")
def test_pipes(model):
    relu, two, seq = model("relu"), model("two"), model("sequence")
    run = f"{sys.executable} -m onnxeval run"
    done = piped(f"{run} {relu} -i '[[1, -2, 3]]' --save - | {run} {relu} -i - --format json")
    assert json.loads(done.stdout)["outputs"][0]["data"] == [[1, 0, 3]]
    done = piped(
        f"{run} {two} -i 'x=[[1, 2, 3]]' -i 'b=[0, 0, 0]' -o x -o b --save - | {run} {two} -i - -o sum --format json"
    )
    assert json.loads(done.stdout)["outputs"][0]["data"] == [[1, 4, 9]]
    done = piped(
        f'{run} {seq} -i \'[[1], [2, 3]]\' --format json | sed s/\\"t\\"/\\"s\\"/ | {run} {seq} -i - --format json'
    )
    assert [item["data"] for item in json.loads(done.stdout)["outputs"][0]["items"]] == [[1], [2, 3]]
    done = piped(f"{run} {relu} -i <({run} {relu} -i '[[1, -2, 3]]' --save -) --format json")
    assert json.loads(done.stdout)["outputs"][0]["data"] == [[1, 0, 3]]
    done = piped(f"{run} {relu} -i '[[1, -2, 3]]' --save - | true")
    assert b"error" not in done.stderr


def test_every_form_of_json_is_strict(shell, model):
    def refuse(name):
        raise AssertionError(name)

    arguments = ("-i", "[[NaN, Infinity, -Infinity]]", "--format", "json", "--expect", "zeros:[1,3]")
    for more in ((), ("--stats",), ("--hash",)):
        result = shell("run", model("relu"), *arguments, *more)
        assert result.exit_code == 1
        document = json.loads(result.stdout, parse_constant=refuse)
        assert document["verdict"]["agrees"] is False
        assert document["verdict"]["outputs"][0]["worst"][0]["value"] == "NaN"


@pytest.mark.parametrize(
    ("suffix", "reader"),
    [
        (".json", lambda p: json.loads(p.read_text())["outputs"][0]["data"]),
        (".csv", lambda p: [[float(x) for x in line.split(",")] for line in p.read_text().splitlines()]),
        (".txt", lambda p: np.loadtxt(p, ndmin=2).tolist()),
        (".bin", lambda p: np.fromfile(p, np.float32).reshape(1, 3).tolist()),
        (".pb", lambda p: onnx.numpy_helper.to_array(onnx.TensorProto.FromString(p.read_bytes())).tolist()),
    ],
)
def test_save_to_every_format(shell, model, suffix, reader):
    result = shell("run", model("relu"), "-i", "[[1, -2, 3.5]]", "--save", f"y{suffix}")
    assert result.exit_code == 0
    assert reader(Path(f"y{suffix}")) == [[1, 0, 3.5]]
    result = shell("run", model("relu"), "-i", "[[1, -2, 3.5]]", "--save", f"many/*{suffix}")
    assert result.exit_code == 0
    assert reader(Path(f"many/y{suffix}")) == [[1, 0, 3.5]]

"""`onnxeval run --random`."""

import shlex
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).parents[2] / "sample_models" / "digits" / "model.onnx"


def test_inputs_are_made_up_and_the_line_that_is_told_repeats_them(shell):
    result = shell("run", DIGITS, "--random", "--format", "json")
    assert result.exit_code == 0, result.stderr
    told = result.stderr.splitlines()
    assert told[0] == "note: made up picture float32[1, 1, 8, 8]"
    assert told[1] == "note: took 1 for the size N, which --dim can set"
    (line,) = (line for line in told if line.startswith("replay: onnxeval "))
    words = shlex.split(line.removeprefix("replay: onnxeval "))
    assert words[:3] == ["run", str(DIGITS), "--random"]
    assert words[-2:] == ["--dim", "N=1"]
    again = shell(*words, "--format", "json")
    assert again.stdout == result.stdout
    assert shell(*words[:-3], str(int(words[-3]) + 1), "--format", "json").stdout != result.stdout


def test_what_is_given_stays_and_is_told_in_the_line(shell, model):
    result = shell("run", model("two"), "--random", "-i", "b=[0, 0, 0]", "--seed", "3", "--dim", "N=2", "-o", "b")
    assert result.exit_code == 0, result.stderr
    assert "replay: onnxeval run" in result.stderr
    assert "-i 'b=[0, 0, 0]' --random --seed 3 --dim N=2\n" in result.stderr
    assert "made up b" not in result.stderr
    assert result.stdout.startswith("b  float32[3]  0\n")


def test_inputs_are_saved_and_give_the_same_again(shell, model):
    path = model("two")
    first = shell("run", path, "--random", "--dim", "N=2", "--save-inputs", "in.npz")
    assert first.exit_code == 0, first.stderr
    with np.load("in.npz") as saved:
        assert {name: saved[name].shape for name in saved.files} == {"x": (2, 3), "b": (3,)}
    assert shell("run", path, "-i", "in.npz").stdout == first.stdout


def test_given_inputs_are_saved_too(shell, model):
    assert shell("run", model("scalar"), "-i", "2.5", "--save-inputs", "x.npy").exit_code == 0
    assert np.load("x.npy") == 2.5


def test_dim_alone_means_nothing(shell, model):
    result = shell("run", model("relu"), "-i", "[[1, 2, 3]]", "--dim", "N=1")
    assert result.exit_code == 2
    assert "it needs --random" in result.stderr


def test_a_size_of_nothing(shell, model):
    result = shell("run", model("relu"), "--random", "--dim", "M=1")
    assert result.exit_code == 5
    assert "no input of the model has a dimension 'M'" in result.stderr
    assert "the open ones are: N" in result.stderr


def test_a_place_that_cannot_be_written_to(shell, model):
    result = shell("run", model("relu"), "--random", "--save-inputs", "nowhere/x.npy")
    assert result.exit_code == 8
    assert result.stdout == ""

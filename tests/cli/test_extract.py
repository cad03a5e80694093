"""`onnxeval extract`, and `onnxeval convert` of models."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxeval

DIGITS = Path(__file__).parents[2] / "sample_models" / "digits"
MODEL = DIGITS / "model.onnx"


def values(names):
    picture = np.load(DIGITS / "digit_7.npy")
    return onnxeval.load(MODEL).run({"picture": picture}, names, reference=True)


def test_a_part_runs_on_what_the_whole_gives(shell):
    np.save("pooled.npy", values(["edges_pooled"])["edges_pooled"])
    result = shell("extract", MODEL, "-i", "edges_pooled", "-o", "scores", "--save", "part.onnx")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "part.onnx  5 of 11 nodes\ninputs\n  edges_pooled  float32[N, 16, 4, 4]\noutputs\n  scores  float32[N, 10]\n"
    )
    assert result.stderr == ""
    assert shell("check", "part.onnx").exit_code == 0
    shell("run", "part.onnx", "-i", "pooled.npy", "--reference", "--save", "scores.npy")
    assert np.array_equal(np.load("scores.npy"), values(["scores"])["scores"])


def test_as_json(shell):
    told = json.loads(shell("extract", MODEL, "-o", "scores", "--save", "part.onnx", "--format", "json").stdout)
    assert told == {
        "path": "part.onnx",
        "nodes": 9,
        "of": 11,
        "inputs": [{"name": "picture", "type": "float32[N, 1, 8, 8]"}],
        "outputs": [{"name": "scores", "type": "float32[N, 10]"}],
    }


@pytest.mark.parametrize(
    ("arguments", "inputs", "outputs"),
    [
        ((), ["picture"], ["class", "probabilities"]),
        (("-o", "s*"), ["picture"], ["scaled", "strokes", "strokes_on", "strokes_pooled", "scores"]),
        (("-i", "edges*", "-o", "strokes,edges_on"), ["edges", "edges_pooled"], ["strokes", "edges_on"]),
        (("-i", "scores", "-i", "largest_*"), ["scores"], ["class", "probabilities"]),
        (("-i", "*", "-o", "scores"), ["features", "dense_w", "dense_b"], ["scores"]),
    ],
)
def test_patterns(shell, arguments, inputs, outputs):
    result = shell("extract", MODEL, *arguments, "--save", "part.onnx")
    if "largest_*" in arguments:
        assert result.exit_code == 5
        assert "no output depends on 'largest_*'" in result.stderr
        return
    assert result.exit_code == 0, result.stderr
    graph = onnx.load("part.onnx").graph
    assert sorted(value.name for value in graph.input) == sorted(inputs)
    assert [value.name for value in graph.output] == outputs


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-i", "class", "-o", "scores"), 5, "no output depends on 'class'\nhint: the outputs are: scores"),
        (("-i", "scores", "-o", "scores"), 5, "scores would be an input and an output"),
        (("-i", "score"), 5, "did you mean scores"),
        (("-o", "nix*"), 5, "no value 'nix*'"),
    ],
)
def test_what_cannot_be_cut(shell, arguments, code, words):
    result = shell("extract", MODEL, *arguments, "--save", "part.onnx")
    assert result.exit_code == code
    assert words in result.stderr
    assert not os.path.exists("part.onnx")


def test_where_it_is_written(shell):
    Path("model.onnx").write_bytes(MODEL.read_bytes())
    Path("folder.onnx").mkdir()
    for place, words in (
        ("model.onnx", "is the model itself"),
        ("folder.onnx", "is a folder"),
        ("nowhere/part.onnx", "cannot write nowhere/part.onnx"),
    ):
        result = shell("extract", "model.onnx", "-o", "scores", "--save", place)
        assert result.exit_code == 8
        assert words in result.stderr
    assert sorted(os.listdir()) == ["folder.onnx", "model.onnx"]
    assert Path("model.onnx").read_bytes() == MODEL.read_bytes()
    Path("part.onnx").write_text("replaced")
    assert shell("extract", "model.onnx", "-o", "scores", "--save", "part.onnx").exit_code == 0
    assert onnxeval.check("part.onnx") == []
    assert shell("extract", "model.onnx", "-o", "scores").exit_code == 2


def test_a_type_that_nothing_tells_is_told(shell, model):
    collatz = DIGITS.parent / "collatz" / "model.onnx"
    result = shell("extract", collatz, "-o", "last", "--save", "part.onnx")
    assert "note: nothing tells all of the type of last, which a model has to declare" in result.stderr


def test_a_model_from_text_to_text(shell):
    for source, target in (
        (MODEL, "a.onnxtxt"),
        ("a.onnxtxt", "b.json"),
        ("b.json", "c.textproto"),
        ("c.textproto", "d.onnx"),
    ):
        result = shell("convert", source, target)
        assert result.exit_code == 0, result.stderr
        assert result.stderr.endswith(f"saved the model to {target}\n")
    first, last = onnx.load(MODEL), onnx.load("d.onnx")
    assert [n.name for n in last.graph.node] == [n.name for n in first.graph.node]
    picture = np.load(DIGITS / "digit_7.npy")
    one, other = (onnxeval.load(path).run({"picture": picture}) for path in (MODEL, "d.onnx"))
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("m.onnx", "x.npz"), 8, "a model is written as .onnx, .onnxtxt"),
        (("m.onnx", "x.npy", "n.onnx"), 2, "A model is converted alone"),
        (("m.onnx", "m.onnx"), 8, "is the model itself"),
        (("x.npy", "n.onnx"), 3, "x.npy"),
    ],
)
def test_models_and_values_do_not_mix(shell, arguments, code, words):
    Path("m.onnx").write_bytes(MODEL.read_bytes())
    np.save("x.npy", np.zeros(2))
    result = shell("convert", *arguments)
    assert result.exit_code == code, result.stderr
    assert words in result.stderr
    assert sorted(os.listdir()) == ["m.onnx", "x.npy"]

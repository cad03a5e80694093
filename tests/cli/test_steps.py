"""`--carry` and `--steps`: state that goes from one step to the next."""

import json

import numpy as np
import onnx
import onnx.parser
import pytest

from onnxeval.carrying import pairs_of
from onnxeval.errors import InputError

INPUT_ERROR, NODE_ERROR, USAGE = 5, 6, 2
CACHE = """<ir_version: 10, opset_import: ["": 21]>
    g (float[1, 1] x, float[P, 1] "past.0", float[P, 1] "past.1")
      => (float[1, 1] y, float[T, 1] "present.0", float[T, 1] "present.1") {
        "present.0" = Concat <axis = 0> ("past.0", x)
        doubled = Add(x, x)
        "present.1" = Concat <axis = 0> ("past.1", doubled)
        sum = ReduceSum <keepdims = 1> ("present.0")
        one = Constant <value_ints = [1, 1]> ()
        y = Reshape(sum, one)
    }"""
COUNTER = '<ir_version: 10, opset_import: ["": 21]> g (int64[2] n) => (int64[2] m) { m = Add(n, n) }'


@pytest.fixture
def cache():
    onnx.save(onnx.parser.parse_model(CACHE), "cache.onnx")
    return "cache.onnx"


@pytest.fixture
def counter():
    onnx.save(onnx.parser.parse_model(COUNTER), "counter.onnx")
    return "counter.onnx"


def outputs_of(result):
    assert result.exit_code == 0, result.stderr
    return {entry["name"]: entry["data"] for entry in json.loads(result.stdout)["outputs"]}


ALL = ("-i", "x=[[3]]", "-i", "past.*=zeros:[0,1]", "--carry", "present.*=past.*")


def test_a_cache_grows(shell, cache):
    found = outputs_of(shell("run", cache, *ALL, "--steps", "4", "--format", "json"))
    assert found["present.0"] == [[3]] * 4
    assert found["present.1"] == [[6]] * 4
    assert found["y"] == [[12]]


def test_every_step_is_kept_when_asked(shell, cache):
    found = outputs_of(shell("run", cache, *ALL, "--steps", "3", "--every-step", "-o", "y", "--format", "json"))
    assert found == {"y[0]": [[3]], "y[1]": [[6]], "y[2]": [[9]]}
    assert shell("run", cache, *ALL, "--steps", "3", "--every-step", "-o", "y", "--save", "y.npz").exit_code == 0
    with np.load("y.npz") as saved:
        assert saved.files == ["y[0]", "y[1]", "y[2]"]


def test_the_verdict_is_on_the_last_step(shell, counter):
    arguments = ("-i", "[1, 3]", "--carry", "m=n", "--steps", "10", "--expect", "[1024, 3072]")
    assert shell("run", counter, *arguments).exit_code == 0
    assert shell("run", counter, *arguments, "--every-step").exit_code == 0


def test_errors_say_the_step(shell):
    onnx.save(
        onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["": 21]> g (int64[N] n) => (int64[M] m) '
            "{ i = Constant <value_ints = [3]> ()  t = Gather(n, i)  a = Constant <value_ints = [1]> ()"
            "  e = Constant <value_ints = [9]> ()  m = Slice(n, a, e) }"
        ),
        "shrinks.onnx",
    )
    result = shell(
        "run", "shrinks.onnx", "-i", "[1, 2, 3, 4, 5]", "-o", "m", "-o", "t", "--carry", "m=n", "--steps", "9"
    )
    assert result.exit_code == NODE_ERROR
    assert "step 2" in result.stderr


def test_an_output_that_is_no_next_input(shell):
    onnx.save(
        onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[M] y) { y = Concat <axis = 0> (x, x) }'
        ),
        "grows.onnx",
    )
    result = shell("run", "grows.onnx", "-i", "[1, 2]", "--carry", "y=x", "--steps", "2", "--save", "out.npz")
    assert result.exit_code == INPUT_ERROR
    assert "step 1" in result.stderr
    assert "float32[2]" in result.stderr


def test_wrong_use(shell, counter):
    for arguments, code, reason in (
        (("--carry", "m=n"), USAGE, "go together"),
        (("--steps", "3"), USAGE, "go together"),
        (("--carry", "mn", "--steps", "3"), INPUT_ERROR, "is not OUTPUT=INPUT"),
        (("--carry", "z=n", "--steps", "3"), INPUT_ERROR, "matches no output"),
        (("--carry", "m=z", "--steps", "3"), INPUT_ERROR, "no input of the model"),
    ):
        result = shell("run", counter, "-i", "[1, 3]", *arguments)
        assert result.exit_code == code
        assert reason in result.stderr


def test_patterns():
    outputs = ["present.0.key", "present.0.value", "present.1.key", "logits"]
    inputs = ["past.0.key", "past.0.value", "past.1.key", "ids"]
    assert pairs_of(["present.*=past.*"], outputs, inputs) == dict(zip(inputs[:3], outputs[:3], strict=True))
    assert pairs_of(["present.*.key=past.*.key"], outputs, inputs) == {
        "past.0.key": "present.0.key",
        "past.1.key": "present.1.key",
    }
    assert pairs_of(["a=b=c=d"], ["a=b"], ["c=d"]) == {"c=d": "a=b"}
    assert pairs_of(["*=*"], ["x"], ["x"]) == {"x": "x"}
    with pytest.raises(InputError, match=r"from 'present\.0\.key' and from 'logits'"):
        pairs_of(["present.0.key=ids", "logits=ids"], outputs, inputs)

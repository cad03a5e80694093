"""A model run again with the same types and shapes, for which its plan adapts, gives what it gave at first."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import parser

import onnxeval

SIZES = """<ir_version: 8, opset_import: ["" : 17]> g (float[N, M] x, int64 n) => (int64[1] size, int64 double) {
    zero = Constant <value = int64 {0}> ()
    axes = Constant <value = int64[1] {0}> ()
    shape = Shape (x)
    first = Gather (shape, zero)
    size = Unsqueeze (first, axes)
    twice = Add (n, n)
    double = Identity (twice)
}"""


def test_results_belong_to_the_caller() -> None:
    model = onnxeval.load(onnx.parser.parse_model(SIZES))
    for rows in (3, 3, 3, 4, 4, 4, 3):
        results = model.run({"x": np.zeros((rows, 2), np.float32), "n": np.array(rows)})
        assert {name: value.tolist() for name, value in results.items()} == {"size": [rows], "double": 2 * rows}
        for value in results.values():
            value[...] = 100


def test_feeds_belong_to_the_caller() -> None:
    model = onnxeval.load(onnx.parser.parse_model(SIZES))
    n, x = np.array(3), np.zeros((3, 2), np.float32)
    for number in (3, 4, 3, 3, 4, 4, 4, 3):
        n[...] = number
        assert model.run({"x": x, "n": n})["double"] == 2 * number


def test_what_failed_is_known_of_no_later_run() -> None:
    """Max of integers is newer than this opset, and Shape makes one that no check of the feeds can see."""
    text = """<ir_version: 8, opset_import: ["" : 8]> g (float[N] x) => (int64[1] y) { s = Shape (x) y = Max (s, s) }"""
    model = onnxeval.load(onnx.parser.parse_model(text))
    for _ in range(4):
        with pytest.raises(onnxeval.NodeError, match="int64"):
            model.run({"x": np.zeros(3, np.float32)})


def test_threads_share_what_is_known() -> None:
    """More kinds than are kept, so that some are forgotten while others are watched."""
    model = onnxeval.load(onnx.parser.parse_model(SIZES))

    def run(turn: int) -> bool:
        rows = turn * 7 % 13
        results = model.run({"x": np.zeros((rows, 2), np.float32), "n": np.array(rows)})
        return bool(results["size"] == [rows] and results["double"] == 2 * rows)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(400)))


def test_sizes_that_are_new_are_looked_at_each_time():
    """Inputs of one pattern, and then some that do not fit to each other, or not to what is declared."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N, M] x, float[M] y, int64[2] z) => (float[N, M] s, int64[2] t) { s = Add (x, y) t = Identity (z) }"""
    loaded = onnxeval.load(parser.parse_model(text))

    def run(rows, columns, others, last=2, **more):
        feeds = {"x": np.ones((rows, columns), np.float32), "y": np.ones(others, np.float32)}
        return loaded.run({**feeds, "z": np.zeros(last, np.int64), **more})

    for size in range(1, 12):
        assert run(2, size, size)["s"].shape == (2, size)
    with pytest.raises(onnxeval.InputError, match="M is 4 here and 3 in"):
        run(2, 3, 4)
    with pytest.raises(onnxeval.InputError, match="axis 0 differs"):
        run(2, 3, 3, last=3)
    with pytest.raises(onnxeval.InputError, match="the model declares float32"):
        run(2, 3, 3, y=np.ones(3))
    with pytest.raises(onnxeval.InputError, match='no input "s"'):
        run(2, 3, 3, s=np.ones(3, np.float32))
    assert not loaded.warnings


def test_results_that_are_not_as_declared_are_told_of_new_sizes_too():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N] x) => (float[N] y, float[3] z) { y = Concat <axis = 0> (x, x) z = Identity (x) }"""
    loaded = onnxeval.load(parser.parse_model(text))
    for size in range(4, 12):
        loaded.run({"x": np.ones(size, np.float32)})
    assert any('"y"' in each and "N is 11 in the inputs" in each for each in loaded.warnings)
    assert any('"z"' in each for each in loaded.warnings)

"""A model run again with the same types and shapes, for which its plan adapts, gives what it gave at first."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

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

"""What a model has to do, and a machine can."""

import time

import bounds
import numpy as np
import pytest
from loops import Loop
from onnx import TensorProto, helper, numpy_helper


def saved(path, nodes, inputs, outputs, weights):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    return path


def test_rows_taken_and_sizes_fed_count(tmp_path):
    """Of a table of 1000 rows seven are read; a product of 7x10 and 10x3."""
    model = saved(
        tmp_path / "m.onnx",
        [helper.make_node("Gather", ["table", "i"], ["x"]), helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("i", TensorProto.INT64, ["N"])],
        ["y"],
        {"table": np.zeros((1000, 10), np.float32), "w": np.zeros((10, 3), np.float32)},
    )
    work = bounds.work_of(model, [{"name": "i", "type": "int64[7]"}])
    assert work == {
        "float32": 7 * 10 * 3,
        "int8": 0,
        "bytes": 4 * (7 * 10 + 10 * 3) + 7 * 8 + 7 * 3 * 4,
        "unknown": 0,
    }


def test_products_of_codes_count_as_those_of_integers(tmp_path):
    codes = {"c": np.zeros((4, 5), np.int8), "d": np.zeros((5, 6), np.int8), "s": np.float32(1)}
    nodes = [
        helper.make_node("DequantizeLinear", ["c", "s"], ["a"]),
        helper.make_node("DequantizeLinear", ["d", "s"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["p"]),
        helper.make_node("MatMul", ["p", "x"], ["y"]),
    ]
    model = saved(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, [6, 2])], ["y"], codes)
    work = bounds.work_of(model, [{"name": "x", "type": "float32[6, 2]"}])
    assert (work["int8"], work["float32"]) == (4 * 5 * 6, 4 * 6 * 2)


def test_what_is_not_known_is_counted(tmp_path):
    nodes = [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT)]
    nodes += [helper.make_node("MatMul", ["f", "w"], ["y"])]
    weights = {"w": np.zeros((3, 3), np.float32)}
    model = saved(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, [3])], ["y"], weights)
    assert bounds.work_of(model, [{"name": "x", "type": "float32[3]"}])["unknown"] == 1


@pytest.mark.slow
def test_the_machine_multiplies_and_reads():
    peaks = bounds.measure(1)
    assert peaks["int8"] > 1e8
    assert peaks["float32"] > 1e8
    assert all(speed > 1e8 for speed in peaks["bandwidth"].values())


def test_a_busy_process_says_what_it_had():
    with Loop() as loop:
        time.sleep(0.3)
        first = loop.processors()
        assert 0 <= first <= 1.5

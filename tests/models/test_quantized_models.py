"""What onnxruntime's quantizers make of a small network, as they wrote it and as its optimiser rewrote it.

``pytest -m slow tests/models/test_quantized_models.py``; the steps of a run are those of onnxruntime without its
optimiser.
"""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxeval

ort = pytest.importorskip("onnxruntime")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the quantizers warn of all sorts of things

SHAPE = (2, 3, 12, 10)
LEVELS = {
    "as written": None,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
DRAW = np.random.default_rng(0)
PICTURES = [DRAW.standard_normal(SHAPE).astype(np.float32) for _ in range(5)]


def network() -> onnx.ModelProto:
    """The operators that have a quantized form of their own."""

    def weights(name, *shape):
        return numpy_helper.from_array((DRAW.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype("f"), name)

    def node(op_type, *names, **attributes):
        *inputs, output = names
        return helper.make_node(op_type, inputs, [output], name=output, **attributes)

    nodes = [
        node("Conv", "x", "w1", "b1", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("MaxPool", "r1", "p1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p1", "w2", "b2", "c2", pads=[1, 1, 1, 1]),
        node("LeakyRelu", "c2", "l2", alpha=0.2),
        node("Conv", "p1", "w3", "c3"),
        node("Sigmoid", "c3", "s3"),
        node("Add", "l2", "s3", "a4"),
        node("Mul", "a4", "l2", "m4"),
        node("Concat", "m4", "a4", "k5", axis=1),
        node("AveragePool", "k5", "v5", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
        node("GlobalAveragePool", "v5", "g6"),
        node("Flatten", "g6", "f6"),
        node("Gemm", "f6", "w7", "b7", "y7", transB=1),
        node("Softmax", "y7", "y"),
    ]
    initializers = [
        weights("w1", 16, 3, 3, 3),
        weights("b1", 16),
        weights("w2", 16, 16, 3, 3),
        weights("b2", 16),
        weights("w3", 16, 16, 1, 1),
        weights("w7", 10, 32),
        weights("b7", 10),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "net", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def optimised(path: Path, level: str) -> Path:
    if LEVELS[level] is None:
        return path
    saved = path.with_name(f"{level}.onnx")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = LEVELS[level]
    options.optimized_model_filepath = str(saved)
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return saved


def assert_same(path: Path, *, within: float) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    model = onnxeval.load(path)
    for picture in PICTURES:
        (wanted,) = session.run(None, {"x": picture})
        np.testing.assert_allclose(model.run({"x": picture})["y"], wanted, rtol=0, atol=within)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("activations", "weights"), [("QUInt8", "QInt8"), ("QInt8", "QInt8"), ("QUInt8", "QUInt8")])
@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
def test_static(form, activations, weights, per_channel, level, tmp_path) -> None:
    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = iter(PICTURES)

        def get_next(self):
            return next(({"x": picture} for picture in self.left), None)

    onnx.save(network(), tmp_path / "net.onnx")
    written = tmp_path / "quantized.onnx"
    q.quantize_static(
        tmp_path / "net.onnx",
        written,
        Reader(),
        quant_format=q.QuantFormat[form],
        activation_type=q.QuantType[activations],
        weight_type=q.QuantType[weights],
        per_channel=per_channel,
    )
    # The output is quantized in steps of 1/256, and what lies halfway between two codes may fall to either side.
    assert_same(optimised(written, level), within=1.5 / 256)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
def test_dynamic(weights, level, tmp_path) -> None:
    from onnxruntime import quantization as q

    onnx.save(network(), tmp_path / "net.onnx")
    written = tmp_path / "quantized.onnx"
    q.quantize_dynamic(tmp_path / "net.onnx", written, weight_type=q.QuantType[weights])
    assert_same(optimised(written, level), within=1e-3)

"""Windows of every form in channels of blocks: what onnxruntime saves of a convolution, a pool or an enlargement."""

import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxeval

ort = pytest.importorskip("onnxruntime")

SHAPE = (2, 16, 12, 10)
BLOCKS = "com.microsoft.nchwc"


def weights(name: str, *shape: int) -> TensorProto:
    values = np.random.default_rng(len(name)).standard_normal(shape) / np.prod(shape[1:]) ** 0.5
    return numpy_helper.from_array(values.astype(np.float32), name)


#: Where every network begins and ends, so that what lies between is laid out anew.
POINTWISE = weights("v", 16, 16, 1, 1)


def node(op_type: str, names: str, **attributes: object) -> onnx.NodeProto:
    *inputs, output = names.split(" ")
    return helper.make_node(op_type, ["" if name == "-" else name for name in inputs], [output], **attributes)


def laid_out(nodes: list, initializers: list, folder: Path, opset: int = 17) -> set[str]:
    """Hold what is saved against onnxruntime; the operators that work in blocks, which depends on the machine."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], [POINTWISE, *initializers])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "saved.onnx")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    picture = np.random.default_rng(7).standard_normal(SHAPE).astype(np.float32)
    (wanted,) = session.run(None, {"x": picture})
    saved = onnx.load(folder / "saved.onnx")
    given = onnxeval.load(folder / "saved.onnx").run({"x": picture})["y"]
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, rtol=1e-3, atol=1e-5)
    return {node.op_type for node in saved.graph.node if node.domain == BLOCKS}


WINDOWS = [
    {},
    {"pads": [1, 0, 2, 1]},
    {"strides": [2, 1]},
    {"dilations": [2, 3], "pads": [2, 2, 2, 2]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"auto_pad": "SAME_LOWER"},
    {"auto_pad": "VALID"},
    {"group": 2},
    {"group": 16},
]
BOUNDS = [numpy_helper.from_array(np.array(bound, np.float32), name) for name, bound in (("low", -0.2), ("high", 0.6))]
ACTIVATIONS = {
    "none": [],
    "Relu": [node("Relu", "s a")],
    "LeakyRelu": [node("LeakyRelu", "s a", alpha=0.1)],
    "Tanh": [node("Tanh", "s a")],
    "HardSigmoid": [node("HardSigmoid", "s a", alpha=0.3)],
    "Clip": [node("Clip", "s low high a")],
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("added", [False, True])
def test_convolutions(activation: str, biased: bool, added: bool, tmp_path: Path) -> None:
    for window in WINDOWS:
        w = weights("w", 16, 16 // window.get("group", 1), 3, 2)
        convolved = node("Conv", "x w b c" if biased else "x w c", **window)
        summed = [node("Conv", "c v r"), node("Add", "r c s")] if added else [node("Identity", "c s")]
        last = node("Conv", "a v y" if ACTIVATIONS[activation] else "s v y")
        nodes = [convolved, *summed, *ACTIVATIONS[activation], last]
        laid_out(nodes, [w, weights("b", 16), *BOUNDS], tmp_path)


POOLS = [
    {},
    {"pads": [1, 0, 1, 1]},
    {"strides": [2, 2], "ceil_mode": 1},
    {"auto_pad": "SAME_UPPER"},
    {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
]


@pytest.mark.parametrize("opset", [11, 17, 19])
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_pools(pool: dict, opset: int, tmp_path: Path) -> None:
    kinds = [("MaxPool", {}), ("MaxPool", {"dilations": [2, 1]})]
    kinds += [("AveragePool", {"count_include_pad": counted}) for counted in (0, 1)]
    seen: set[str] = set()
    for op_type, more in kinds:
        if "dilations" in more and "auto_pad" in pool:
            continue  # onnxruntime pads as if the window was dense
        between = node(op_type, "c p", kernel_shape=[3, 2], **pool, **more)
        seen |= laid_out([node("Conv", "x v c"), between, node("Conv", "p v y")], [], tmp_path, opset)
    assert not seen or "AveragePool" in seen


def test_enlargements(tmp_path: Path) -> None:
    scales = numpy_helper.from_array(np.array([1, 1, 2, 3], np.float32), "scales")
    ways = itertools.product(
        ({"mode": "nearest", "nearest_mode": "floor"}, {"mode": "linear"}),
        ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"),
    )
    seen: set[str] = set()
    for mode, transformation in ways:
        between = node("Resize", "c - scales p", coordinate_transformation_mode=transformation, **mode)
        seen |= laid_out([node("Conv", "x v c"), between, node("Conv", "p v y")], [scales], tmp_path)
    assert not seen or "Upsample" in seen

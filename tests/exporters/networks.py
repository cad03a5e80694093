"""Float networks to quantise and to optimise, written node by node: weights are drawn, inputs are declared open."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper


class Builder:
    """Collects nodes and drawn weights."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def weight(self, *shape: int, scale: float | None = None, offset: float = 0.0) -> str:
        name = f"w{len(self.weights)}"
        scale = 1 / np.sqrt(max(1, np.prod(shape[1:]))) if scale is None else scale
        array = offset + scale * self.generator.standard_normal(shape)
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def constant(self, values: object, dtype: type = np.int64) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def add(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        names = [f"v{len(self.nodes)}_{place}" for place in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, name=f"n{len(self.nodes)}", **attributes))
        return names[0]

    def model(self, inputs: dict[str, Sequence[int | str]], last: str, opset: int = 17) -> onnx.ModelProto:
        self.nodes.append(helper.make_node("Identity", [last], ["y"], name="last"))
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", values, [y], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def convolutional() -> onnx.ModelProto:
    """x[N, 3, 12, 12]: convolutions, batch normalisation, a residual sum, pools, a fully connected layer."""
    b = Builder()
    x = b.add("Conv", "x", b.weight(8, 3, 3, 3), b.weight(8), pads=[1, 1, 1, 1])
    stats = (b.weight(8, offset=1), b.weight(8), b.weight(8), b.constant(np.linspace(0.5, 2, 8), np.float32))
    x = b.add("Relu", b.add("BatchNormalization", x, *stats))
    branch = b.add("Relu", b.add("Conv", x, b.weight(8, 1, 3, 3), b.weight(8), pads=[1, 1, 1, 1], group=8))
    x = b.add("Add", b.add("Conv", branch, b.weight(8, 8, 1, 1)), x)
    x = b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.add("LeakyRelu", b.add("Concat", x, b.add("Sigmoid", x), axis=1), alpha=0.1)
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    return b.model({"x": ["N", 3, 12, 12]}, b.add("Softmax", b.add("Gemm", x, b.weight(16, 5), b.weight(5))))


def transformer() -> onnx.ModelProto:
    """x[N, S, 16]: one layer of attention and GELU, layer normalisation spelled out as exporters did."""
    b = Builder(1)

    def normalised(x: str) -> str:
        centred = b.add("Sub", x, b.add("ReduceMean", x, axes=[-1]))
        square = b.add("Pow", centred, b.constant(2.0, np.float32))
        deviation = b.add("Sqrt", b.add("Add", b.add("ReduceMean", square, axes=[-1]), b.constant(1e-5, np.float32)))
        scaled = b.add("Mul", b.add("Div", centred, deviation), b.weight(16, offset=1, scale=0.1))
        return b.add("Add", scaled, b.weight(16, scale=0.1))

    def linear(x: str, rows: int, columns: int) -> str:
        return b.add("Add", b.add("MatMul", x, b.weight(rows, columns, scale=0.25)), b.weight(columns, scale=0.1))

    def heads(x: str) -> str:
        return b.add("Transpose", b.add("Reshape", x, b.constant([0, 0, 4, 4])), perm=[0, 2, 1, 3])

    q, k, v = (heads(linear("x", 16, 16)) for _ in range(3))
    scores = b.add("Div", b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2])), b.constant(2.0, np.float32))
    mixed = b.add("Transpose", b.add("MatMul", b.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    x = normalised(b.add("Add", linear(b.add("Reshape", mixed, b.constant([0, 0, 16])), 16, 16), "x"))
    inner = linear(x, 16, 32)
    erf = b.add("Erf", b.add("Div", inner, b.constant(np.sqrt(2), np.float32)))
    gelu = b.add(
        "Mul", b.add("Mul", inner, b.add("Add", erf, b.constant(1.0, np.float32))), b.constant(0.5, np.float32)
    )
    return b.model({"x": ["N", "S", 16]}, normalised(b.add("Add", linear(gelu, 32, 16), x)))


def recurrent() -> onnx.ModelProto:
    """x[S, N, 6]: a bidirectional LSTM, a GRU behind it, a fully connected layer."""
    b = Builder(2)
    x = b.add(
        "LSTM", "x", b.weight(2, 20, 6), b.weight(2, 20, 5), b.weight(2, 40), hidden_size=5, direction="bidirectional"
    )
    x = b.add("Reshape", b.add("Transpose", x, perm=[0, 2, 1, 3]), b.constant([0, 0, -1]))
    x = b.add(
        "Squeeze",
        b.add("GRU", x, b.weight(1, 12, 10), b.weight(1, 12, 4), b.weight(1, 24), hidden_size=4),
        b.constant([1]),
    )
    return b.model({"x": ["S", "N", 6]}, b.add("Add", b.add("MatMul", x, b.weight(4, 3)), b.weight(3)))


#: Each network with the shape of an input for it.
NETWORKS = {
    "convolutional": (convolutional, (4, 3, 12, 12)),
    "transformer": (transformer, (2, 7, 16)),
    "recurrent": (recurrent, (5, 3, 6)),
}


def drawn(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)

"""Nodes on thousands of numbers drawn from seeds: every operator of float32 whose results are rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from precision.shapes import Input, normal, positive, uniform


@dataclass(frozen=True)
class Drawn:
    """An operator, how its inputs are drawn (None: absent), its attributes and how many outputs it has.

    The inputs from place ``held`` on are initializers: kernels prepare those.
    """

    op_type: str
    inputs: tuple[Input | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 21
    held: int | None = None

    def feeds(self) -> dict[str, np.ndarray]:
        draw = np.random.default_rng(list(str(self).encode()))
        return {f"x{i}": make(draw) for i, make in enumerate(self.inputs) if make is not None}

    def model(self) -> tuple[ModelProto, dict[str, np.ndarray]]:
        """The model and what is fed to it."""
        feeds = self.feeds()
        held = [f"x{i}" for i in range(len(self.inputs) if self.held is None else self.held, len(self.inputs))]
        weights = {name: feeds.pop(name) for name in held if name in feeds}
        node = helper.make_node(
            self.op_type,
            ["" if make is None else f"x{i}" for i, make in enumerate(self.inputs)],
            [f"y{i}" for i in range(self.outputs)],
            **self.attributes,
        )
        return one_graph([node], feeds, weights, list(node.output), self.opset), feeds

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.attributes.items())
        shapes = " ".join("-" if make is None else make.name for make in self.inputs)
        return f"{self.op_type}({given}) {shapes}{'' if self.held is None else ' held'}"


def one_graph(
    nodes: list[Any], feeds: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray], outputs: list[str], opset: int
) -> ModelProto:
    """A model of nodes with outputs of float32."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


#: Operators of one input and where it lies; each is drawn from that range.
UNARY = {
    "Abs": (-9, 9),
    "Acos": (-1, 1),
    "Acosh": (1, 90),
    "Asin": (-1, 1),
    "Asinh": (-90, 90),
    "Atan": (-9, 9),
    "Atanh": (-0.99, 0.99),
    "Ceil": (-99, 99),
    "Celu": (-9, 9),
    "Cos": (-30, 30),
    "Cosh": (-9, 9),
    "Elu": (-9, 9),
    "Erf": (-5, 5),
    "Exp": (-20, 5),
    "Floor": (-99, 99),
    "Gelu": (-6, 6),
    "HardSigmoid": (-6, 6),
    "HardSwish": (-6, 6),
    "LeakyRelu": (-9, 9),
    "Log": (1e-3, 99),
    "LogSoftmax": (-9, 9),
    "Mish": (-9, 9),
    "Neg": (-9, 9),
    "Reciprocal": (0.1, 9),
    "Relu": (-9, 9),
    "Round": (-99, 99),
    "Selu": (-9, 9),
    "Shrink": (-3, 3),
    "Sigmoid": (-20, 20),
    "Sign": (-9, 9),
    "Sin": (-30, 30),
    "Sinh": (-9, 9),
    "Softmax": (-9, 9),
    "Softplus": (-20, 20),
    "Softsign": (-9, 9),
    "Sqrt": (0, 99),
    "Tan": (-1.5, 1.5),
    "Tanh": (-9, 9),
    "ThresholdedRelu": (-9, 9),
}
#: Operators of two inputs, each broadcast in several ways.
BINARY: dict[str, tuple[Callable[..., Input], Callable[..., Input]]] = {
    "Add": (normal, normal),
    "Sub": (normal, normal),
    "Mul": (normal, normal),
    "Div": (normal, positive),
    "Pow": (positive, normal),
    "PRelu": (normal, normal),
}
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
VARIADIC = ("Max", "Mean", "Min", "Sum")


def integers(*values: int) -> Input:
    return Input(str(list(values)), lambda _: np.array(values, np.int64))


def below(count: int, *shape: int) -> Input:
    return Input(f"below {count} {list(shape)}", lambda draw: draw.integers(0, count, shape))


def element_wise() -> Iterator[Drawn]:
    for name, (low, high) in UNARY.items():
        yield Drawn(name, (uniform(low, high, 37, 151),))
    yield Drawn("Gelu", (uniform(-6, 6, 37, 151),), {"approximate": "tanh"})
    yield Drawn("Swish", (uniform(-6, 6, 37, 151),), opset=24)
    yield Drawn(
        "Clip", (normal(37, 151), Input("low", lambda _: np.float32(-0.3)), Input("high", lambda _: np.float32(1)))
    )
    for name, (first, second) in BINARY.items():
        for shapes in (((37, 151), (37, 151)), ((37, 151), (151,)), ((37, 151), (37, 1)), ((37, 151), (1,))):
            yield Drawn(name, (first(*shapes[0]), second(*shapes[1])))
    for name in VARIADIC:
        yield Drawn(name, (normal(37, 151), normal(151), normal(37, 1)))
    yield Drawn("Mod", (normal(37, 151), positive(37, 151)), {"fmod": 1})


def reductions() -> Iterator[Drawn]:
    for name in REDUCTIONS:
        make = positive if name in ("LogSum", "Prod") else normal
        shape = (3, 5, 7, 9) if name == "Prod" else (6, 17, 23, 41)
        for axes in ((3,), (1,), (0, 2), (2, 3), (0, 1, 2, 3)):
            yield Drawn(f"Reduce{name}", (make(*shape), integers(*axes)), opset=18)
    for axis in (0, 1, 2):
        yield Drawn("CumSum", (normal(9, 33, 57), Input(str(axis), lambda _, a=axis: np.int64(a))))
    yield Drawn("CumProd", (positive(99, 41), Input("0", lambda _: np.int64(0))), opset=26)
    yield Drawn("SoftmaxCrossEntropyLoss", (normal(203, 31), below(31, 203)))
    yield Drawn("NegativeLogLikelihoodLoss", (normal(203, 31), below(31, 203), positive(31)))


def products() -> Iterator[Drawn]:
    for rows, inner, columns in ((1, 1000, 300), (37, 151, 61), (64, 768, 96), (200, 33, 200), (7, 4096, 5)):
        for held in (None, 1):
            yield Drawn("MatMul", (normal(rows, inner), normal(inner, columns)), held=held)
        yield Drawn("Gemm", (normal(rows, inner), normal(columns, inner), normal(columns)), {"transB": 1}, held=1)
        yield Drawn("Gemm", (normal(inner, rows), normal(inner, columns)), {"transA": 1, "alpha": 0.7})
    yield Drawn("MatMul", (normal(4, 3, 29, 37), normal(3, 37, 41)))
    yield Drawn("MatMul", (normal(4, 3, 29, 37), normal(37)))
    yield Drawn("Einsum", (normal(5, 29, 37), normal(5, 37, 41)), {"equation": "bij,bjk->bik"})
    yield Drawn("Einsum", (normal(29, 37), normal(37, 41), normal(41, 9)), {"equation": "ij,jk,kl->il"})
    yield Drawn("Det", (normal(50, 5, 5),))


def convolutions() -> Iterator[Drawn]:
    for held in (None, 1):
        for x, weights, attributes in (
            ((1, 32, 37, 53), (48, 32, 3, 3), {"pads": [1] * 4}),
            ((2, 256, 13, 15), (64, 256, 3, 3), {"pads": [1] * 4}),
            ((1, 64, 19, 23), (100, 64, 1, 1), {}),
            ((1, 24, 37, 53), (40, 24, 3, 3), {"strides": [2, 2], "pads": [0, 1, 1, 0]}),
            ((1, 48, 21, 33), (48, 1, 3, 3), {"group": 48, "pads": [1] * 4}),
            ((1, 48, 21, 33), (48, 1, 5, 5), {"group": 48, "strides": [2, 2], "pads": [2] * 4}),
            ((1, 64, 21, 33), (64, 8, 3, 3), {"group": 8, "pads": [1] * 4}),
            ((1, 16, 41, 43), (24, 16, 3, 3), {"dilations": [4, 3], "pads": [4, 3, 4, 3]}),
            ((1, 3, 65, 77), (32, 3, 7, 7), {"strides": [2, 2], "pads": [3] * 4}),
            ((2, 16, 999), (24, 16, 5), {"dilations": [8], "pads": [16, 16]}),
            ((1, 8, 9, 13, 15), (12, 8, 3, 3, 3), {"pads": [1] * 6}),
        ):
            yield Drawn("Conv", (normal(*x), normal(*weights), normal(weights[0])), attributes, held=held)
        for x, weights, attributes in (
            ((1, 32, 19, 23), (32, 24, 2, 2), {"strides": [2, 2]}),
            ((1, 16, 19, 23), (16, 12, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
            ((1, 16, 19, 23), (16, 4, 3, 3), {"group": 4}),
            ((1, 16, 99), (16, 12, 4), {"strides": [2]}),
        ):
            yield Drawn("ConvTranspose", (normal(*x), normal(*weights)), attributes, held=held)
    yield Drawn("DeformConv", (normal(1, 8, 15, 17), normal(6, 8, 3, 3), normal(1, 18, 13, 15)), opset=22)
    yield Drawn("Col2Im", (normal(1, 36, 99), integers(11, 13), integers(3, 3)), opset=18)


def pools() -> Iterator[Drawn]:
    x = normal(1, 12, 37, 53)
    for attributes in ({"kernel_shape": [3, 3], "strides": [2, 2]}, {"kernel_shape": [5, 4], "pads": [1, 2, 1, 1]}):
        for name in ("AveragePool", "MaxPool", "LpPool"):
            yield Drawn(name, (x,), attributes, opset=19)
    yield Drawn("AveragePool", (x,), {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}, opset=19)
    for name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield Drawn(name, (x,))
    regions = Input(
        "boxes", lambda draw: np.sort(draw.uniform(0, 36, (9, 4)).astype(np.float32), axis=1)[:, [0, 1, 2, 3]]
    )
    for mode in ("avg", "max"):
        attributes = {"output_height": 5, "output_width": 4, "sampling_ratio": 2, "mode": mode}
        yield Drawn("RoiAlign", (x, regions, Input("zeros", lambda _: np.zeros(9, np.int64))), attributes)
    pooled = Input(
        "boxes", lambda draw: np.c_[np.zeros(9), np.sort(draw.integers(0, 36, (9, 4)), axis=1)].astype(np.float32)
    )
    yield Drawn("MaxRoiPool", (x, pooled), {"pooled_shape": [3, 3]})


def normalisations() -> Iterator[Drawn]:
    x, c = normal(4, 24, 17, 19), normal(24)
    shifted = Input("shifted", lambda draw: (draw.standard_normal((40, 300)) + 5).astype(np.float32))
    yield Drawn("BatchNormalization", (x, c, c, c, positive(24)))
    yield Drawn("InstanceNormalization", (x, c, c))
    yield Drawn("GroupNormalization", (x, c, c), {"num_groups": 6})
    for data in (normal(40, 300), shifted):
        yield Drawn("LayerNormalization", (data, normal(300), normal(300)), outputs=3)
        yield Drawn("RMSNormalization", (data, normal(300)), opset=23)
    yield Drawn("LayerNormalization", (normal(6, 20, 30), normal(20, 30)), {"axis": 1})
    yield Drawn("LRN", (x,), {"size": 5})
    for power in (1, 2):
        yield Drawn("LpNormalization", (normal(37, 151),), {"p": power})
    yield Drawn("MeanVarianceNormalization", (x,))
    for axis in (0, 1, 2):
        for name in ("Softmax", "LogSoftmax"):
            yield Drawn(name, (uniform(-9, 9, 9, 33, 57),), {"axis": axis})
    yield Drawn("Softmax", (normal(3, 5000),))


def recurrent() -> Iterator[Drawn]:
    for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction, count in (("forward", 1), ("bidirectional", 2)):
            scaled = (normal(count, gates * 48, 40, scale=0.15), normal(count, gates * 48, 48, scale=0.15))
            attributes = {"hidden_size": 48, "direction": direction}
            biases = normal(count, 2 * gates * 48, scale=0.2)
            outputs = 3 if name == "LSTM" else 2
            for held in (None, 1):
                yield Drawn(name, (normal(35, 3, 40), *scaled, biases), attributes, outputs, held=held)
    layer = (normal(35, 3, 40), normal(1, 144, 40, scale=0.15), normal(1, 144, 48, scale=0.15), normal(1, 288))
    yield Drawn("GRU", layer, {"hidden_size": 48, "linear_before_reset": 1}, 2, held=1)


def attentions() -> Iterator[Drawn]:
    four = [normal(2, 6, 53, 32) for _ in range(3)]
    yield Drawn("Attention", tuple(four), opset=23)
    yield Drawn("Attention", tuple(four), {"is_causal": 1}, opset=23)
    yield Drawn("Attention", (*four, normal(53, 53)), {"scale": 0.3}, opset=23)
    three = {"q_num_heads": 6, "kv_num_heads": 6}
    yield Drawn("Attention", tuple(normal(2, 53, 192) for _ in range(3)), three, opset=23)
    angles = uniform(-1, 1, 50, 16)
    yield Drawn("RotaryEmbedding", (normal(2, 6, 53, 32), angles, angles, below(50, 2, 53)), opset=23, held=1)


def pictures() -> Iterator[Drawn]:
    x = normal(1, 5, 23, 31)
    sizes = Input("sizes", lambda _: np.array([1, 5, 41, 67]))
    smaller = Input("smaller", lambda _: np.array([1, 5, 11, 17]))
    for mode in ("linear", "cubic", "nearest"):
        for place in ("half_pixel", "align_corners", "asymmetric"):
            for target in (sizes, smaller):
                how = {"mode": mode, "coordinate_transformation_mode": place}
                yield Drawn("Resize", (x, None, None, target), how)
        padding = {"mode": mode, "padding_mode": "border"}
        yield Drawn("GridSample", (x, uniform(-1.2, 1.2, 1, 29, 37, 2)), padding)
    yield Drawn("AffineGrid", (normal(2, 2, 3), integers(2, 5, 29, 37)), {"align_corners": 1}, opset=20)


def signals() -> Iterator[Drawn]:
    for length in (64, 100, 97):
        yield Drawn("DFT", (normal(3, length, 1),), {"axis": 1}, opset=17)
        yield Drawn("DFT", (normal(3, length, 2),), {"axis": 1, "inverse": 1}, opset=17)
    step = Input("step", lambda _: np.int64(16))
    yield Drawn("STFT", (normal(2, 900, 1), step, positive(64)), opset=17)
    for name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield Drawn(name, (Input("1001", lambda _: np.int64(1001)),))
    coded = Input("codes", lambda draw: draw.integers(-128, 128, (37, 151)).astype(np.int8))
    yield Drawn("DequantizeLinear", (coded, Input("scale", lambda _: np.float32(0.013))))
    yield Drawn(
        "Range",
        (
            Input("start", lambda _: np.float32(0.3)),
            Input("end", lambda _: np.float32(99)),
            Input("delta", lambda _: np.float32(0.1)),
        ),
    )


ALL: tuple[Drawn, ...] = tuple(
    drawn
    for family in (
        element_wise,
        reductions,
        products,
        convolutions,
        pools,
        normalisations,
        recurrent,
        attentions,
        pictures,
        signals,
    )
    for drawn in family()
)

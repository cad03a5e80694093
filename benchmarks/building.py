"""Networks written node by node, with weights drawn from a seed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """A graph that grows: `add` appends a node and gives the name of its first output.

    Weights are as large as keeps what flows at about the size of one, so that a difference anywhere shows at the end.
    """

    def __init__(self, name: str, opset: int = 17) -> None:
        self._name = name
        self._opset = opset
        self.draw = np.random.default_rng(list(name.encode()))
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, np.ndarray[Any, Any]] = {}

    def input(self, name: str, *shape: int) -> str:
        """A float32 input of this shape, and numbers to feed."""
        return self._given(name, self.draw.standard_normal(shape, np.float32))

    def indices(self, name: str, below: int, *shape: int) -> str:
        """An int64 input of this shape, and numbers from zero to feed."""
        return self._given(name, self.draw.integers(0, below, shape))

    def _given(self, name: str, value: np.ndarray[Any, Any]) -> str:
        self._inputs.append(
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        )
        self.feeds[name] = value
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """An initializer with this value."""
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int, inputs: int, gain: float = math.sqrt(2)) -> str:
        """Normally distributed weights of sums of so many ``inputs``; the gain of √2 makes up for a Relu."""
        return self.constant(self.draw.standard_normal(shape, np.float32) * (gain / math.sqrt(inputs)))

    def around(self, centre: float, *shape: int) -> str:
        """Biases, scales and their like: numbers that lie within a fifth of the centre's neighbourhood."""
        return self.constant(centre + self.draw.uniform(-0.2, 0.2, shape))

    def codes(self, *shape: int) -> str:
        """int8 weights of 7 bits: sums of two products then fit 16 bits on every processor."""
        spread = self.draw.standard_normal(shape) * 20
        return self.constant(np.clip(np.rint(spread), -64, 64), np.int8)

    def add(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Append a node."""
        name = f"v{len(self._nodes)}"
        names = [name, *(f"{name}.{i}" for i in range(1, outputs))]
        self._nodes.append(helper.make_node(op_type, inputs, names, f"{op_type}_{len(self._nodes)}", **attributes))
        return name

    def conv(
        self,
        x: str,
        channels: int,
        filters: int,
        kernel: tuple[int, ...],
        *,
        stride: int = 1,
        dilation: int = 1,
        group: int = 1,
        padded: bool = True,
        gain: float = math.sqrt(2),
    ) -> str:
        """A convolution with a bias; padded as keeps the size where the stride is one."""
        margins = [dilation * (taps - 1) // 2 * padded for taps in kernel]
        weight = self.weight(
            filters, channels // group, *kernel, inputs=channels // group * math.prod(kernel), gain=gain
        )
        rank = len(kernel)
        return self.add(
            "Conv",
            x,
            weight,
            self.around(0, filters),
            kernel_shape=kernel,
            strides=[stride] * rank,
            dilations=[dilation] * rank,
            group=group,
            pads=margins * 2,
        )

    def normalised(self, x: str, channels: int) -> str:
        """BatchNormalization that changes little."""
        return self.add(
            "BatchNormalization",
            x,
            self.around(1, channels),
            self.around(0, channels),
            self.around(0, channels),
            self.around(1, channels),
        )

    def linear(self, x: str, columns: int, rows: int, gain: float = 1.0) -> str:
        """A product with weights, and a bias."""
        product = self.add("MatMul", x, self.weight(columns, rows, inputs=columns, gain=gain))
        return self.add("Add", product, self.around(0, rows))

    def model(self, output: str) -> onnx.ModelProto:
        """The model with this output."""
        graph = helper.make_graph(
            self._nodes,
            self._name,
            self._inputs,
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            self._weights,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self._opset)],
            ir_version=10,
            producer_name="benchmarks/networks.py",
        )
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)

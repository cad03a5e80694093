"""Small networks in any float type, each with what it computes written out in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper


@dataclass
class Network:
    """``exact`` computes the output from an input and the weights, all in float64."""

    nodes: list[NodeProto]
    weights: dict[str, np.ndarray]
    shape: tuple[int, ...]
    exact: Callable[[np.ndarray, dict[str, np.ndarray]], np.ndarray]

    def model(self, dtype: np.dtype) -> onnx.ModelProto:
        """From x to y, weights rounded to ``dtype``; opset 22, the first where all of these take bfloat16."""
        element_type = helper.np_dtype_to_tensor_dtype(dtype)
        x, y = (helper.make_tensor_value_info(n, element_type, s) for n, s in (("x", self.shape), ("y", None)))
        tensors = [
            numpy_helper.from_array(array if array.dtype.kind == "i" else array.astype(dtype), name)
            for name, array in self.weights.items()
        ]
        graph = helper.make_graph(self.nodes, "g", [x], [y], tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

    def rounded(self, dtype: np.dtype) -> dict[str, np.ndarray]:
        """The weights that the model of ``dtype`` has, in float64."""
        return {n: a if a.dtype.kind == "i" else a.astype(dtype).astype(np.float64) for n, a in self.weights.items()}


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape) * scale


def node(op_type: str, inputs: str, outputs: str, **attributes: object) -> NodeProto:
    return helper.make_node(op_type, inputs.split(" "), outputs.split(" "), **attributes)


def convolutional() -> Network:
    """Conv, BatchNormalization, Relu, GlobalAveragePool, Gemm; 288 products in a sum."""
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c scale shift mean var", "n", epsilon=1e-3),
        node("Relu", "n", "r"),
        node("GlobalAveragePool", "r", "p"),
        node("Flatten", "p", "f"),
        node("Gemm", "f v d", "y", transB=1),
    ]
    weights = {
        "w": drawn(16, 32, 3, 3, scale=0.1),
        "b": drawn(16, seed=1),
        "scale": 1 + drawn(16, seed=2, scale=0.1),
        "shift": drawn(16, seed=3),
        "mean": drawn(16, seed=4),
        "var": 1 + drawn(16, seed=5) ** 2,
        "v": drawn(5, 16, scale=0.3),
        "d": drawn(5),
    }

    def exact(x: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
        padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
        patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        c = np.einsum("nchwij,ocij->nohw", patches, w["w"]) + w["b"][:, None, None]
        scale = w["scale"] / np.sqrt(w["var"] + np.float32(1e-3))
        n = (c - w["mean"][:, None, None]) * scale[:, None, None] + w["shift"][:, None, None]
        return np.maximum(n, 0).mean((2, 3)) @ w["v"].T + w["d"]

    return Network(nodes, weights, (2, 32, 6, 6), exact)


def attention() -> Network:
    """One layer of a transformer: LayerNormalization, four heads, Softmax, a residual sum, Gelu."""
    nodes = [
        node("LayerNormalization", "x g1 b1", "n"),
        *(node("MatMul", f"n w{part}", f"m{part}") for part in "qkv"),
        *(node("Reshape", f"m{part} split", f"s{part}") for part in "qkv"),
        node("Transpose", "sq", "q", perm=[0, 2, 1, 3]),
        node("Transpose", "sk", "k", perm=[0, 2, 3, 1]),
        node("Transpose", "sv", "v", perm=[0, 2, 1, 3]),
        node("MatMul", "q k", "raw"),
        node("Div", "raw root", "scores"),
        node("Softmax", "scores", "p"),
        node("MatMul", "p v", "mixed"),
        node("Transpose", "mixed", "back", perm=[0, 2, 1, 3]),
        node("Reshape", "back join", "joined"),
        node("MatMul", "joined wo", "o"),
        node("Add", "o x", "residual"),
        node("MatMul", "residual w1", "h"),
        node("Gelu", "h", "a"),
        node("MatMul", "a w2", "out"),
        node("Add", "out residual", "y"),
    ]
    width = 64
    weights = {
        "g1": 1 + drawn(width, scale=0.1),
        "b1": drawn(width, scale=0.1, seed=1),
        **{name: drawn(width, width, seed=place, scale=0.125) for place, name in enumerate(("wq", "wk", "wv", "wo"))},
        "w1": drawn(width, 256, scale=0.125),
        "w2": drawn(256, width, scale=0.0625),
        "root": np.array(4.0),
        "split": np.array([0, 0, 4, 16]),
        "join": np.array([0, 0, width]),
    }

    def exact(x: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
        deviation = np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))
        n = (x - x.mean(-1, keepdims=True)) / deviation * w["g1"] + w["b1"]
        q, k, v = ((n @ w[name]).reshape(*x.shape[:2], 4, 16).swapaxes(1, 2) for name in ("wq", "wk", "wv"))
        scores = np.exp(q @ k.swapaxes(2, 3) / 4)
        mixed = scores / scores.sum(-1, keepdims=True) @ v
        residual = mixed.swapaxes(1, 2).reshape(x.shape) @ w["wo"] + x
        h = residual @ w["w1"]
        return h * 0.5 * (1 + np.vectorize(math.erf)(h / np.sqrt(2))) @ w["w2"] + residual

    return Network(nodes, weights, (2, 9, width), exact)


def recurrent() -> Network:
    """An LSTM over 12 steps; its gates stand in the order i, o, f, c."""
    hidden, width = 24, 40
    nodes = [node("LSTM", "x w r b", "s", hidden_size=hidden), node("Squeeze", "s axis", "y")]
    weights = {
        "w": drawn(1, 4 * hidden, width, scale=0.15),
        "r": drawn(1, 4 * hidden, hidden, scale=0.2),
        "b": drawn(1, 8 * hidden, scale=0.3),
        "axis": np.array([1]),
    }

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    def exact(x: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
        h = c = np.zeros((x.shape[1], hidden))
        bias = w["b"][0, : 4 * hidden] + w["b"][0, 4 * hidden :]
        states = []
        for step in x:
            i, o, f, g = np.split(step @ w["w"][0].T + h @ w["r"][0].T + bias, 4, axis=-1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            states.append(h)
        return np.stack(states)

    return Network(nodes, weights, (12, 3, width), exact)


NETWORKS = {"convolutional": convolutional, "attention": attention, "recurrent": recurrent}

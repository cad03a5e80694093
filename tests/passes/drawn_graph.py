"""A graph in the making: nodes are added that the readable path runs, on values that are awkward now and then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, helper, numpy_helper

import onnxeval
from onnxeval.errors import OnnxEvalError

SIZES = (0, 1, 1, 2, 3, 3, 4, 5, 7, 8, 16, 17, 49, 64)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 1e-45, 88.8, -104.0)
HELD = (-0.0, 0.0, 1e-40, -1e-40, 88.8, -104.0)  # of constants: what a weight of NaN meets in padding is open


class Drawn:
    """A graph in the making: every value that there is, as computed by the readable path."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.integers(7, 23))
        self.nodes: list[NodeProto] = []
        self.values: dict[str, np.ndarray] = {}
        self.feeds: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.special = self.rng.random() < 0.25
        self.fails = False

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def numbers(self, shape: Sequence[int], dtype: Any = np.float32, special: Sequence[float] = HELD) -> np.ndarray:
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            return self.rng.integers(0 if dtype.kind == "u" else -5, 9, shape).astype(dtype)
        x = np.asarray(self.rng.standard_normal(shape) * self.pick((0.3, 1, 3)), dtype)
        if self.special and x.size and self.chance(0.5):
            with np.errstate(all="ignore"):
                x.reshape(-1)[self.rng.integers(0, x.size, 3)] = self.rng.choice(special, 3).astype(dtype)
        return x

    def constant(self, value: Any, dtype: Any = None) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = self.values[name] = np.asarray(value, dtype)
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def fed(self, value: np.ndarray) -> str:
        name = f"x{len(self.feeds)}"
        self.feeds[name] = self.values[name] = value
        return name

    def given(self, shape: Sequence[int], dtype: Any = np.float32, constant: float = 0.5) -> str:
        x = self.numbers(shape, dtype)
        return self.constant(x) if self.chance(constant) else self.fed(x)

    def any(self, keep: Callable[[np.ndarray], bool] = lambda x: True) -> str | None:
        """Some value that there is, late ones more often."""
        names = [name for name, x in self.values.items() if keep(x) and name not in self.constants]
        return names[max(int(self.rng.integers(len(names))), int(self.rng.integers(len(names))))] if names else None

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Add a node, where the readable path runs it; what fails is kept seldom, and is then the last."""
        made = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        node = helper.make_node(op, list(inputs), made, name=f"n{len(self.nodes)}", **attributes)
        reads = {name for name in (*inputs, *captured(node)) if name}
        alone = model_of([node], {name: self.values[name] for name in reads}, {}, made, self.opset)
        try:
            results = onnxeval.load(alone).run({name: self.values[name] for name in reads}, reference=True)
        except OnnxEvalError:
            if self.chance(0.1):
                self.fails = True
                self.nodes.append(node)
            raise
        for name, value in results.items():
            if not isinstance(value, np.ndarray) or value.size > 40_000:
                raise Unfit
            self.values[name] = value
        self.nodes.append(node)
        return made[0]

    def model(self) -> ModelProto:
        used = {name for node in self.nodes for name in (*node.input, *captured(node))}
        made = [name for node in self.nodes for name in node.output if name]
        last = [name for name in made if name not in used]
        more = [name for name in made if name in used and self.chance(0.1)]
        self.feeds = {name: x for name, x in self.feeds.items() if name in used}
        constants = {name: x for name, x in self.constants.items() if name in used}
        return model_of(self.nodes, self.feeds, constants, last + more, self.opset, self.values)


class Unfit(Exception):  # noqa: N818  # what happened
    """A draw that is not worth keeping."""


def captured(node: NodeProto) -> set[str]:
    found = set()
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            graph = attribute.g
            own = {v.name for v in graph.input} | {name for n in graph.node for name in n.output}
            own |= {t.name for t in graph.initializer}
            reads = {name for n in graph.node for name in (*n.input, *captured(n))} | {v.name for v in graph.output}
            found |= reads - own - {""}
    return found


def model_of(
    nodes: Sequence[NodeProto],
    feeds: dict[str, np.ndarray],
    constants: dict[str, np.ndarray],
    outputs: Sequence[str],
    opset: int,
    values: dict[str, np.ndarray] | None = None,
) -> ModelProto:
    def declared(name: str, x: np.ndarray | None) -> Any:
        if x is None:
            return helper.make_empty_tensor_value_info(name)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), [None] * x.ndim)

    graph = helper.make_graph(
        list(nodes),
        "g",
        [declared(name, x) for name, x in feeds.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.ascontiguousarray(x).reshape(x.shape), name) for name, x in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

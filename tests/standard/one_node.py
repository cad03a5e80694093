"""Models of one node, and examples of what a version of an operator makes of its inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, TypeProto, helper, numpy_helper

import onnxeval
from onnxeval.dtypes import ELEMENT_TYPES, STRING

Outputs = tuple[Any, ...]


@dataclass(frozen=True)
class Example:
    """A node of ``version`` and what it gives: outputs, a check of them, or the message of an error."""

    version: int
    inputs: Sequence[Any]
    wanted: Sequence[Any] | Callable[[Outputs], None] | str
    attributes: dict[str, Any] = field(default_factory=dict)


def gives(version: int, inputs: Sequence[Any], *wanted: Any, **attributes: Any) -> Example:
    """Arrays are exact in type and shape; a lone function checks the first two outputs."""
    return Example(version, inputs, wanted[0] if callable(wanted[0]) else wanted, attributes)


def refuses(version: int, inputs: Sequence[Any], message: str, **attributes: Any) -> Example:
    return Example(version, inputs, message, attributes)


def f32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def i64(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def strings(*values: str) -> np.ndarray:
    return np.array(values, STRING)


def held(dtype: np.dtype) -> TensorProto:
    """A tensor of one element of that type, as an attribute holds it."""
    one = np.array(["a"], STRING) if dtype == STRING else np.ones(1, np.float32).astype(dtype)
    return numpy_helper.from_array(one)


def run(
    domain: str, op_type: str, opset: int, inputs: Sequence[Any], n_outputs: int, attributes: dict[str, Any]
) -> Outputs:
    """Run a model of one node; None is an absent input, a type proto with an empty optional for a value."""
    names = ["" if value is None else f"input_{place}" for place, value in enumerate(inputs)]
    outputs = [f"output_{place}" for place in range(n_outputs)]
    given = [(name, value) for name, value in zip(names, inputs, strict=True) if name]
    node = helper.make_node(op_type, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_value_info(name, _type(value)) for name, value in given],
        [helper.make_value_info(name, TypeProto()) for name in outputs],
    )
    imports = [helper.make_opsetid(domain, opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    feeds = {name: None if isinstance(value, TypeProto) else value for name, value in given}
    return tuple(onnxeval.load(model).run(feeds, seed=1).values())


def _type(value: Any) -> TypeProto:
    if isinstance(value, TypeProto):
        return value
    return helper.make_tensor_type_proto(ELEMENT_TYPES[value.dtype], value.shape)

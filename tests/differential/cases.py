"""One node to run: its inputs and attributes, and the model around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, helper

from onnxeval.dtypes import name_of
from onnxeval.schema import Schema
from onnxeval.tensors import type_proto
from onnxeval.values import Value, type_of

#: Models are stamped with an opset that onnxruntime has kernels for.
OLDEST_OPSET = 7


@dataclass(frozen=True)
class Node:
    """A node of an operator's version; an absent input is None.

    ``wanted`` holds a flag for each output it lists: False leaves the name blank. ``shaped`` declares the shapes of
    the inputs, not only their types.
    """

    schema: Schema
    inputs: list[Value]
    attributes: dict[str, Any] = field(default_factory=dict)
    wanted: tuple[bool, ...] = (True,)
    shaped: bool = False

    @property
    def op_type(self) -> str:
        return self.schema.key.op_type

    @property
    def version(self) -> int:
        return self.schema.key.since_version

    def attribute(self, name: str) -> Any:
        """The attribute's value, else its default, else None; None too where this version has no such attribute."""
        declared = self.schema.attributes.get(name)
        return self.attributes.get(name, declared.default if declared else None)

    def input(self, place: int) -> Value:
        """An input, None where it is absent."""
        return self.inputs[place] if place < len(self.inputs) else None

    @property
    def feeds(self) -> dict[str, Value]:
        return {f"x{i}": value for i, value in enumerate(self.inputs) if value is not None}

    def model(self) -> ModelProto:
        domain, op_type, version = self.schema.key
        node = helper.make_node(
            op_type,
            ["" if value is None else f"x{i}" for i, value in enumerate(self.inputs)],
            [f"y{i}" if wanted else "" for i, wanted in enumerate(self.wanted)],
            domain=domain,
        )
        node.attribute.extend(
            helper.make_attribute(name, value, attr_type=self.schema.attributes[name].kind)
            for name, value in self.attributes.items()
        )
        types = {name: type_proto(type_of(value)) for name, value in self.feeds.items()}
        inputs = [helper.make_value_info(name, t if self.shaped else _rankless(t)) for name, t in types.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        opsets = [helper.make_opsetid(domain, version if domain else max(version, OLDEST_OPSET))]
        if domain:
            opsets.append(helper.make_opsetid("", 21))
        return helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=13)

    def __str__(self) -> str:
        lines = [f"{self.schema.key}  {self.attributes}  outputs {self.wanted}"]
        return "\n".join([*lines, *(f"  {name} = {shown(value)}" for name, value in self.feeds.items())])


def _rankless(proto: Any) -> Any:
    """The type without its shape."""
    if proto.HasField("tensor_type"):
        proto.tensor_type.ClearField("shape")
    return proto


def shown(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{name_of(value.dtype)}{list(value.shape)} {value.tolist()!r}"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)

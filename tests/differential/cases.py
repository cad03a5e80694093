"""One node to run: its inputs and attributes, and the model around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TypeProto, helper

from onnxeval.dtypes import name_of
from onnxeval.schema import Schema
from onnxeval.tensors import type_proto
from onnxeval.values import EmptyOptional, Value, type_of

#: Models are stamped with an opset that onnxruntime has kernels for.
OLDEST_OPSET = 7


@dataclass(frozen=True)
class Node:
    """A node of an operator's version; an absent input is None.

    ``wanted`` holds a flag for each output it lists: False leaves the name blank. ``shaped`` declares the shapes of
    the inputs, not only their types; ``declared`` is the type of the first input where its value does not tell.
    """

    schema: Schema
    inputs: list[Value]
    attributes: dict[str, Any] = field(default_factory=dict)
    wanted: tuple[bool, ...] = (True,)
    shaped: bool = False
    declared: TypeProto | None = None

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
    def values(self) -> dict[str, Value]:
        """The inputs that are there, by name."""
        return {f"x{i}": value for i, value in enumerate(self.inputs) if value is not None}

    @property
    def feeds(self) -> dict[str, Value]:
        """What engines are given: None is an optional that holds nothing."""
        return {name: None if isinstance(value, EmptyOptional) else value for name, value in self.values.items()}

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
        types = {n: type_proto(type_of(v)) for n, v in self.values.items() if self.declared is None or n != "x0"}
        if self.declared is not None:
            types["x0"] = self.declared
        inputs = [
            helper.make_value_info(name, types[name] if self.shaped else _rankless(types[name])) for name in self.values
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        opsets = [helper.make_opsetid(domain, version if domain else max(version, OLDEST_OPSET))]
        if domain:
            opsets.append(helper.make_opsetid("", 21))
        return helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=13)

    def __str__(self) -> str:
        lines = [f"{self.schema.key}  {self.attributes}  outputs {self.wanted}"]
        return "\n".join([*lines, *(f"  {name} = {shown(value)}" for name, value in self.values.items())])


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

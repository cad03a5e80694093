"""The API of onnx.backend.base over `Model`: ``onnxeval.backend.prepare(model).run([x])``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend, BackendRep

from onnxeval.model import Model, load
from onnxeval.schema import canonical_domain, newest_opset
from onnxeval.tensors import type_proto
from onnxeval.values import Value, type_of


class OnnxEvalRep(BackendRep):
    """A prepared model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Value, ...]:
        """The outputs in the graph's order. ``inputs`` is a dict by name, or the inputs in order, or a single one.

        Inputs in order may leave out those that have an initializer; keyword arguments go to `Model.run`.
        """
        return tuple(self.model.run(_by_name(self.model, inputs), **kwargs).values())


def _by_name(model: Model, inputs: Any) -> dict[str, Value]:
    if isinstance(inputs, Mapping):
        return dict(inputs)
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    required = [entry.name for entry in model.inputs if not entry.optional]
    names = required if len(values) <= len(required) else [entry.name for entry in model.inputs]
    if len(values) > len(names):
        raise ValueError(f"the model has {len(names)} inputs, {len(values)} are given")
    return dict(zip(names, values, strict=False))


class OnnxEvalBackend(Backend):
    """onnxeval behind onnx's backend interface; it runs on the CPU."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:  # noqa: ARG003  # base's API
        return cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.upper().partition(":")[0] == "CPU"

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> OnnxEvalRep:  # noqa: ARG003  # base's API
        """Load a model. Raises what `onnxeval.load` raises, and ValueError for a device that is not there."""
        if not cls.supports_device(device):
            raise ValueError(f"onnxeval runs on the CPU, not on {device!r}")
        return OnnxEvalRep(load(model))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Value, ...]:
        return cls.prepare(model, device).run(inputs, **kwargs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Sequence[Any],
        device: str = "CPU",
        outputs_info: Any = None,  # noqa: ARG003  # base's API
        **kwargs: Any,
    ) -> tuple[Value, ...]:
        """Run one node on its own; ``opset_version`` chooses the version of its domain, the newest unless given."""
        newest = newest_opset(canonical_domain(node.domain)) or newest_opset("")
        opset = kwargs.pop("opset_version", newest)
        names = [name for name in node.input if name]
        if len(inputs) != len(names):
            raise ValueError(f"the node reads {len(names)} inputs, {len(inputs)} are given")
        values = [np.asarray(value) if np.isscalar(value) else value for value in inputs]
        feeds = dict(zip(names, values, strict=True))
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [onnx.helper.make_value_info(name, type_proto(type_of(value))) for name, value in feeds.items()],
            [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return cls.prepare(model, device).run(feeds, **kwargs)


is_compatible = OnnxEvalBackend.is_compatible
prepare = OnnxEvalBackend.prepare
run_model = OnnxEvalBackend.run_model
run_node = OnnxEvalBackend.run_node
supports_device = OnnxEvalBackend.supports_device

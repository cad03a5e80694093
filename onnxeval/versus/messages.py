"""A model as other engines take it: values inside the graph are outputs of a copy in memory, data stays where it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto

from onnxeval.dtypes import ELEMENT_TYPES, Tensor
from onnxeval.external import Files
from onnxeval.loader import parse_model
from onnxeval.tensors import array_from, packed


class Message:
    """A model of its own, read from a path or from bytes, with ``outputs`` besides those that it declares."""

    def __init__(self, model: str | bytes, outputs: Iterable[str]) -> None:
        loaded = parse_model(model)
        self.proto: ModelProto = loaded.proto
        self._files = Files(loaded.folders)
        declared = {output.name for output in self.proto.graph.output}
        # without a type: engines infer it, and what the model says of values inside may be wrong
        self.proto.graph.output.extend(ValueInfoProto(name=name) for name in outputs if name not in declared)

    def fix(self, feeds: Mapping[str, Tensor]) -> None:
        """Make these feeds the defaults of their inputs."""
        kept = [tensor for tensor in self.proto.graph.initializer if tensor.name not in feeds]
        del self.proto.graph.initializer[:]
        self.proto.graph.initializer.extend(kept)
        for name, value in feeds.items():
            self.proto.graph.initializer.add(
                name=name, data_type=ELEMENT_TYPES[value.dtype], dims=value.shape, raw_data=packed(value.reshape(-1))
            )

    def gather_external(self) -> Path | None:
        """The folder below which all external data lies, which the model then names by their ways from there.

        So a link in the model's folder is followed as `onnxeval.external` allows. None where there is none.
        """
        paths: dict[Path, list[Any]] = {}
        for tensor in _external(self.proto.graph):
            entry = next(entry for entry in tensor.external_data if entry.key == "location")
            paths.setdefault(self._files.path(entry.value), []).append(entry)
        if not paths:
            return None
        folder = Path(os.path.commonpath([path.parent for path in paths]))
        for path, entries in paths.items():
            for entry in entries:
                entry.value = path.relative_to(folder).as_posix()
        return folder

    def take_external(self) -> None:
        """Read all external data into the model."""
        for tensor in _external(self.proto.graph):
            tensor.raw_data = packed(array_from(tensor, self._files).reshape(-1))
            tensor.ClearField("external_data")
            tensor.data_location = TensorProto.DEFAULT


def _external(graph: GraphProto) -> Iterator[TensorProto]:
    """The tensors of a graph, and of those inside it, whose data lies elsewhere."""
    for tensor in _tensors(graph):
        if tensor.data_location == TensorProto.EXTERNAL:
            yield tensor


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)

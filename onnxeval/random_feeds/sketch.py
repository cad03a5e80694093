"""A model without its weights, for a look at its types and shapes again and again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from onnxeval.dtypes import BY_ELEMENT_TYPE, STRING, Tensor
from onnxeval.files.protobuf import message_of
from onnxeval.sizes import bind_sizes

#: Weights of no more elements may be shapes, axes or scales: they are kept.
_KEPT = 1024


def sketch_of(model: ModelProto, fed: Iterable[str]) -> ModelProto:
    """A copy in which large weights are inputs of their types, and those that are fed are no weights at all."""
    graph = model.graph
    sketch = ModelProto(ir_version=model.ir_version)
    sketch.opset_import.extend(model.opset_import)
    sketch.functions.extend(model.functions)
    copy = sketch.graph
    copy.name = graph.name
    copy.node.extend(graph.node)
    copy.input.extend(graph.input)
    copy.output.extend(graph.output)
    copy.value_info.extend(graph.value_info)
    declared, given = {value.name for value in graph.input}, set(fed)
    for tensor in graph.initializer:
        if tensor.name in given:
            continue
        if math.prod(tensor.dims) <= _KEPT and tensor.data_location != TensorProto.EXTERNAL:
            copy.initializer.append(tensor)
        elif tensor.name not in declared:
            copy.input.append(_declaration(tensor.name, tensor.data_type, tensor.dims))
    for sparse in graph.sparse_initializer:
        if sparse.values.name not in declared:
            copy.input.append(_declaration(sparse.values.name, sparse.values.data_type, sparse.dims))
    return sketch


def _declaration(name: str, element_type: int, dims: Iterable[int]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, list(dims))


def pinned(sketch: ModelProto, sizes: Mapping[str, int], values: Mapping[str, Tensor]) -> ModelProto:
    """A copy with sizes for what is open and elements for inputs, as initializers."""
    copy = ModelProto()
    copy.CopyFrom(sketch)
    bind_sizes(copy.graph, sizes)
    for name, array in values.items():
        if array.dtype in BY_ELEMENT_TYPE.values() and array.dtype != STRING and array.size <= _KEPT:
            message = message_of(array, name)
            assert isinstance(message, TensorProto)
            copy.graph.initializer.append(message)
    return copy

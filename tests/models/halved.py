"""Models of float32 in another float type: weights, inputs and outputs, and casts around what stays float32."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from onnxeval.schema import find_schema, slot_at

NAMES = {TensorProto.FLOAT16: "tensor(float16)", TensorProto.BFLOAT16: "tensor(bfloat16)"}
DTYPES = {TensorProto.FLOAT16: np.dtype(np.float16), TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16)}

_NUMBERS = itertools.count()


def narrowed(tensor: TensorProto, kind: int) -> TensorProto:
    """A tensor of float32 in ``kind``, any other as it is; what is too large becomes the largest number."""
    if tensor.data_type != TensorProto.FLOAT:
        return tensor
    largest = float(ml_dtypes.finfo(DTYPES[kind]).max)
    array = np.clip(numpy_helper.to_array(tensor), -largest, largest)
    return numpy_helper.from_array(array.astype(DTYPES[kind]), tensor.name)


def rounded(model: onnx.ModelProto, kind: int) -> onnx.ModelProto:
    """The model with weights of float32 that ``kind`` has, too."""
    result = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in result.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(narrowed(tensor, kind)).astype(np.float32), tensor.name)
            )
    return result


def halved(model: onnx.ModelProto, kind: int) -> onnx.ModelProto:
    """The model in float16 or bfloat16, whose inputs and outputs are of that type, too."""
    result = onnx.ModelProto.FromString(model.SerializeToString())
    (opset,) = (entry.version for entry in result.opset_import if entry.domain in ("", "ai.onnx"))
    _halve(result.graph, kind, opset, _floats(onnx.shape_inference.infer_shapes(model).graph))
    return result


def _floats(graph: GraphProto) -> set[str]:
    """The values of float32, those of sub-graphs included."""
    found = {t.name for t in graph.initializer if t.data_type == TensorProto.FLOAT}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            found.add(value.name)
    for attribute in (a for node in graph.node for a in node.attribute if a.HasField("g")):
        found |= _floats(attribute.g)
    return found


def _halve(graph: GraphProto, kind: int, opset: int, floats: set[str]) -> None:
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = kind
    del graph.value_info[:]
    for tensor in graph.initializer:
        tensor.CopyFrom(narrowed(tensor, kind))
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes += _halve_node(node, kind, opset, floats)
    del graph.node[:]
    graph.node.extend(nodes)


def _halve_node(node: NodeProto, kind: int, opset: int, floats: set[str]) -> list[NodeProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            _halve(attribute.g, kind, opset, floats)
        elif attribute.HasField("t"):
            attribute.t.CopyFrom(narrowed(attribute.t, kind))
        elif attribute.name == "to" and node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
            attribute.i = kind
    schema = find_schema(node.domain, node.op_type, opset)
    assert schema is not None
    before, after = [], []
    for place, name in enumerate(node.input):
        slot = slot_at(schema.inputs, place)
        if name in floats and slot and NAMES[kind] not in slot.allowed:
            wide = f"{name}__wide_{next(_NUMBERS)}"
            before.append(helper.make_node("Cast", [name], [wide], to=TensorProto.FLOAT))
            node.input[place] = wide
    for place, name in enumerate(node.output):
        slot = slot_at(schema.outputs, place)
        if name in floats and slot and NAMES[kind] not in slot.allowed:
            wide = f"{name}__wide_{next(_NUMBERS)}"
            after.append(helper.make_node("Cast", [wide], [name], to=kind))
            node.output[place] = wide
    return [*before, node, *after]

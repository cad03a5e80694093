"""A model with float64 wherever it has float32: run by the readable kernels it tells what the right results are."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
#: Attributes that name an element type.
_NAME_A_TYPE = ("dtype", "output_datatype", "precision", "softmax_precision", "stash_type", "to")
#: Operators that compute in the precision of an attribute whose default is float32, and the attribute.
_OF_A_TYPE = {
    "BlackmanWindow": "output_datatype",
    "GroupNormalization": "stash_type",
    "HammingWindow": "output_datatype",
    "HannWindow": "output_datatype",
    "MelWeightMatrix": "output_datatype",
    "RMSNormalization": "stash_type",
}


def wide_model(model: ModelProto) -> ModelProto:
    """The model in float64."""
    made = ModelProto.FromString(model.SerializeToString())
    _widen_graph(made.graph)
    for function in made.functions:
        _widen_nodes(function.node)
    return made


def wide_value(value: Any) -> Any:
    """A value to feed, in float64 where it is float32."""
    if isinstance(value, list):
        return [wide_value(item) for item in value]
    return value.astype(np.float64) if getattr(value, "dtype", None) == np.float32 else value


def _widen_graph(graph: GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        _widen_type(value.type)
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    _widen_nodes(graph.node)


def _widen_type(proto: TypeProto) -> None:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type" and proto.tensor_type.elem_type == FLOAT:
        proto.tensor_type.elem_type = DOUBLE
    elif kind in ("sequence_type", "optional_type"):
        _widen_type(getattr(proto, kind).elem_type)


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def _widen_nodes(nodes: Any) -> None:
    widened: list[NodeProto] = []
    for node in nodes:
        for attribute in node.attribute:
            _widen_attribute(attribute)
        kind = _OF_A_TYPE.get(node.op_type)
        if kind is not None and not any(a.name == kind for a in node.attribute):
            node.attribute.append(helper.make_attribute(kind, DOUBLE))
        widened.extend(_layer_normalization(node) if node.op_type == "LayerNormalization" else [_plain(node)])
    del nodes[:]
    nodes.extend(widened)


def _widen_attribute(attribute: AttributeProto) -> None:
    if attribute.name in _NAME_A_TYPE and attribute.i == FLOAT:
        attribute.i = DOUBLE
    if attribute.HasField("t"):
        _widen_tensor(attribute.t)
    if attribute.HasField("g"):
        _widen_graph(attribute.g)


def _plain(node: NodeProto) -> NodeProto:
    """A Constant of float attributes as one of a tensor."""
    if node.op_type == "Constant" and node.attribute[0].name in ("value_float", "value_floats"):
        value = helper.get_attribute_value(node.attribute[0])
        return helper.make_node(
            "Constant", [], node.output, value=numpy_helper.from_array(np.asarray(value, np.float64))
        )
    return node


def _layer_normalization(node: NodeProto) -> list[NodeProto]:
    """What its text says it does, in steps: the operator itself knows no precision above float32."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    x, scale, *shift = node.input
    y, mean, deviation, *_ = (*node.output, "", "")
    name = f"{y}/"
    mean, deviation = mean or f"{name}mean", deviation or f"{name}deviation"
    epsilon = numpy_helper.from_array(np.asarray(given.get("epsilon", np.float32(1e-5)), np.float64))
    axis = numpy_helper.from_array(np.asarray([given.get("axis", -1)]))
    end = numpy_helper.from_array(np.asarray([2**62]))
    one = numpy_helper.from_array(np.asarray(1))
    make = helper.make_node
    nodes = [
        make("Constant", [], [f"{name}epsilon"], value=epsilon),
        make("Constant", [], [f"{name}axis"], value=axis),
        make("Constant", [], [f"{name}end"], value=end),
        make("Constant", [], [f"{name}zero"], value=numpy_helper.from_array(np.asarray(0))),
        make("Constant", [], [f"{name}one"], value=one),
        make("Shape", [x], [f"{name}shape"]),
        make("Size", [f"{name}shape"], [f"{name}rank"]),
        make("Range", [f"{name}zero", f"{name}rank", f"{name}one"], [f"{name}all"]),
        make("Slice", [f"{name}all", f"{name}axis", f"{name}end"], [f"{name}axes"]),
        make("ReduceSum", [x, f"{name}axes"], [f"{name}sum"]),
        make("Size", [x], [f"{name}size"]),
        make("Size", [f"{name}sum"], [f"{name}rows"]),
        make("Div", [f"{name}size", f"{name}rows"], [f"{name}whole"]),
        make("Cast", [f"{name}whole"], [f"{name}count"], to=DOUBLE),
        make("Div", [f"{name}sum", f"{name}count"], [mean]),
        make("Sub", [x, mean], [f"{name}centred"]),
        make("Mul", [f"{name}centred", f"{name}centred"], [f"{name}squares"]),
        make("ReduceSum", [f"{name}squares", f"{name}axes"], [f"{name}sum_of_squares"]),
        make("Div", [f"{name}sum_of_squares", f"{name}count"], [f"{name}variance"]),
        make("Add", [f"{name}variance", f"{name}epsilon"], [f"{name}raised"]),
        make("Sqrt", [f"{name}raised"], [f"{name}root"]),
        make("Reciprocal", [f"{name}root"], [deviation]),
        make("Mul", [f"{name}centred", deviation], [f"{name}standard"]),
        make("Mul", [f"{name}standard", scale], [f"{name}scaled" if shift and shift[0] else y]),
    ]
    if shift and shift[0]:
        nodes.append(make("Add", [f"{name}scaled", shift[0]], [y]))
    return nodes

"""What stands inside a node: the types its sub-graphs get from it, and the attributes a call puts into a body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto

from onnxeval.checks.known import UNKNOWN, Known, KnownTable
from onnxeval.checks.views import Node
from onnxeval.values import SequenceType, TensorType

Bindings = Mapping[str, AttributeProto]


# Sub-graphs


def formal_types(node: Node, inputs: Sequence[Known], table: KnownTable) -> list[Known]:
    """What the inputs of a node's sub-graph are known to be, in order: nothing of branches, which have none."""
    if node.domain or node.schema is None:
        return []
    if node.op_type == "Loop":  # shapes may change from one iteration to the next
        trip, condition = (table.of_type(TensorType(np.dtype(dtype))) for dtype in (np.int64, np.bool_))
        if len(inputs) > 1 and inputs[1].type is not None:
            condition = table.of_type(inputs[1].type)
        return [trip, condition, *(_shapeless(known, table) for known in inputs[2:])]
    if node.op_type == "Scan" and node.schema.key.since_version > 8:
        return _scan_slices(node, inputs, table)
    if node.op_type == "SequenceMap":
        elements = (k.type.element if isinstance(k.type, SequenceType) else k.type for k in inputs)
        return [table.of_type(element) for element in elements]
    return []


def _shapeless(known: Known, table: KnownTable) -> Known:
    return table.of_type(TensorType(known.type.dtype)) if isinstance(known.type, TensorType) else known


def _scan_slices(node: Node, inputs: Sequence[Known], table: KnownTable) -> list[Known]:
    """State as it is, of each scanned input a slice: its shape without the axis that is scanned."""
    count = next((a.i for a in node.attributes if a.name == "num_scan_inputs"), 0)
    axes: list[int] = next((a.ints[:] for a in node.attributes if a.name == "scan_input_axes"), [])
    states = min(max(len(inputs) - count, 0), len(inputs))
    slices = []
    for known, axis in zip(inputs[states:], axes or repeat(0), strict=False):
        shape = known.shape
        if isinstance(known.type, TensorType) and shape is not None and -len(shape) <= axis < len(shape):
            rest = [size for place, size in enumerate(shape) if place != axis % len(shape)]
            known = table.of_type(TensorType(known.type.dtype, tuple(rest)))
        slices.append(known)
    return [*inputs[:states], *slices]


def summarised(proto: NodeProto, outputs: Iterable[Sequence[Known]]) -> NodeProto:
    """A node whose sub-graphs have no nodes, but the output types that are known of them, in their order."""
    summary = NodeProto()
    summary.CopyFrom(proto)
    known = iter(outputs)
    for attribute in summary.attribute:
        if attribute.type == AttributeProto.GRAPH and attribute.HasField("g"):
            _summarise(attribute.g, next(known))
        elif attribute.type == AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                _summarise(graph, next(known))
    return summary


def _summarise(graph: GraphProto, outputs: Sequence[Known]) -> None:
    for field in ("node", "value_info", "sparse_initializer"):
        graph.ClearField(field)
    for value, known in zip(graph.output, outputs, strict=True):
        if known is not UNKNOWN:
            value.type.CopyFrom(known.proto)


# Functions


def refers(proto: NodeProto) -> bool:
    """Whether an attribute here, or in a sub-graph, refers to one of the function around."""
    return any(
        a.ref_attr_name or any(refers(inner) for graph in (a.g, *a.graphs) for inner in graph.node)
        for a in proto.attribute
    )


def bound(proto: NodeProto, bindings: Bindings) -> NodeProto:
    """A node with the attributes of a call in the place of references; what the call leaves unset vanishes."""
    copy = NodeProto()
    copy.CopyFrom(proto)
    kept = []
    for attribute in copy.attribute:
        if attribute.ref_attr_name:
            if (value := bindings.get(attribute.ref_attr_name)) is None:
                continue
            name = attribute.name
            attribute.CopyFrom(value)
            attribute.name = name
        kept.append(AttributeProto.FromString(attribute.SerializeToString()))
    copy.ClearField("attribute")
    copy.attribute.extend(kept)
    return copy

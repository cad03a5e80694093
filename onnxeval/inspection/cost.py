"""What running a model costs: MACs and memory of each node and of the whole, as far as its sizes are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from onnxeval.checks.known import Known
from onnxeval.checks.recording import Record, Recorded, branch_taken
from onnxeval.checks.views import Node, Scope
from onnxeval.dtypes import STRING, SUB_BYTE_BITS, DType
from onnxeval.inspection.macs import FORMULAS, UnknownSize, fixed
from onnxeval.values import TensorType


@dataclass(frozen=True, slots=True)
class NodeCost:
    """A node of the main graph: MACs, elements of the weights that it reads, bytes of what it makes.

    None where a size is not known. What stands in its sub-graphs or its function is counted in.
    """

    record: Record
    macs: int | None
    parameters: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """All nodes, and the bytes of inputs and results that are alive at once, at most; None where sizes are unknown."""

    nodes: tuple[NodeCost, ...]
    peak: int | None

    @property
    def macs(self) -> int:
        """The MACs of those nodes whose are known."""
        return sum(node.macs or 0 for node in self.nodes)

    @property
    def unknown(self) -> int:
        """The number of nodes about which something is not known."""
        return sum(node.macs is None or node.bytes is None for node in self.nodes)


def cost_of(recorded: Recorded) -> Cost:
    """The cost of the main graph's nodes, in the order in which they were walked, constants left out."""
    weights = _weights(recorded.model.graph)
    nodes = []
    for record in recorded.records:
        if _holds(record.node):
            continue
        parameters = sum(weights.get(name, 0) for name in dict.fromkeys(record.node.reads))
        nodes.append(NodeCost(record, macs_of(record), parameters, _bytes(record.outputs)))
    return Cost(tuple(nodes), _peak(recorded, weights))


def _weights(scope: Scope) -> dict[str, int]:
    """The elements of each value that the file holds: initializers, and what nodes give that only hold a tensor."""
    held = {node.outputs[0]: a.t for node in scope.bulky_nodes if _holds(node) for a in node.attributes}
    graph = scope.graph
    if graph is not None:
        held |= {tensor.name: tensor for tensor in graph.initializer}
        held |= {sparse.values.name: sparse for sparse in graph.sparse_initializer}
    return {name: math.prod(tensor.dims) for name, tensor in held.items()}


def _holds(node: Node) -> bool:
    return node.op_type == "Constant" and not node.domain and len(node.outputs) == 1


def macs_of(record: Record) -> int | None:
    """The MACs of a node with all that runs inside it.

    Of an If the dearer branch counts, or the one that is known to be taken; of a Loop and a Scan the body for each
    trip, once where their number is not known.
    """
    node = record.node
    formula = FORMULAS.get((node.domain, node.op_type))
    if formula is not None:
        try:
            return formula(record)
        except (UnknownSize, ArithmeticError, IndexError, TypeError, ValueError):
            return None  # ranks, attributes and sizes that do not fit the operator have no cost
    if node.subs:
        taken = branch_taken(node, record.inputs)
        inside = [_sum(record.within(sub)) for sub in ((taken,) if taken is not None else node.subs)]
        if None in inside:
            return None
        return max((macs or 0) for macs in inside) * _trips(record)
    if record.inner:
        return _sum(record.inner)
    return None if node.schema is None and node.kernel is None else 0


def _sum(records: Iterable[Record]) -> int | None:
    macs = [macs_of(record) for record in records]
    return None if None in macs else sum(m for m in macs if m is not None)


def _trips(record: Record) -> int:
    """How often the body of a loop runs."""
    node = record.node
    if node.op_type == "Loop" and record.inputs and (count := record.inputs[0].array) is not None:
        return max(int(count.reshape(-1)[0]), 0) if count.size else 0
    scanned = record.attributes.get("num_scan_inputs")
    if node.op_type == "Scan" and isinstance(scanned, int) and 0 < scanned <= len(record.inputs):
        shape = record.inputs[-scanned].shape
        axis = (record.attributes.get("scan_input_axes") or (0,))[0]
        if shape and -len(shape) <= axis < len(shape) and isinstance(size := shape[axis], int):
            return size
    return 1


def size_in_bytes(dtype: DType, count: int) -> int:
    """The bytes of so many elements as a file packs them; a string counts as a pointer."""
    if dtype == STRING:
        return count * np.dtype(np.intp).itemsize
    return -(-count * SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize) // 8)


def bytes_of(known: Known) -> int | None:
    """The bytes of a value; None where its type or a size is not known, or where it is no tensor."""
    if not isinstance(known.type, TensorType) or known.type.dtype is None:
        return None
    try:
        return size_in_bytes(known.type.dtype, math.prod(fixed(known.type.shape)))
    except UnknownSize:
        return None


def _bytes(values: Sequence[Known]) -> int | None:
    sizes = [bytes_of(known) for known in values]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _peak(recorded: Recorded, weights: dict[str, int]) -> int | None:
    """The most bytes that inputs and results take at once, each kept until its last reader has run."""
    scope, values = recorded.model.graph, recorded.values
    last: dict[str, int] = dict.fromkeys(scope.inputs, -1)
    for place, record in enumerate(recorded.records):
        last.update(dict.fromkeys((*record.node.outputs, *record.node.reads), place))
    last.update(dict.fromkeys(scope.outputs, len(recorded.records)))
    sizes: dict[str, int] = {}
    ends: dict[int, list[str]] = {}
    for name, place in last.items():
        if name and name not in weights and scope.makers.get(name) is not None:
            if (size := bytes_of(values[name])) is None:
                return None
            sizes[name] = size
            ends.setdefault(place, []).append(name)
    alive = most = sum(sizes.get(name, 0) for name in scope.inputs)
    for place, record in enumerate(recorded.records):
        alive += sum(sizes.get(name, 0) for name in record.node.outputs if name)
        most = max(most, alive)
        alive -= sum(sizes[name] for name in ends.get(place, ()))
    return most

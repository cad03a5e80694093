"""Strategies of sequences, optionals and control flow."""

from __future__ import annotations

from typing import Any

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, element_of, strategy
from onnx import TensorProto, helper, numpy_helper

from onnxeval.dtypes import ELEMENT_TYPES
from onnxeval.tensors import type_proto
from onnxeval.values import EmptyOptional, OptionalType, Sequence, SequenceType, TensorType, ValueType


def sequence(d: Drawing, dtype: np.dtype, shape: tuple[int, ...] | None = None, least: int = 0) -> Sequence:
    """A sequence of arrays, of one shape where it is given."""
    items = [d.array(dtype, d.shape(0, 3) if shape is None else shape) for _ in range(d.size(least, 3))]
    return Sequence(items, TensorType(dtype))


@strategy("SequenceConstruct")
def construct(d: Drawing) -> Node:
    return d.node(*(d.tensor(0, d.shape(0, 3)) for _ in range(d.integer(1, 3))))


@strategy("SequenceEmpty")
def empty(d: Drawing) -> Node:
    return d.node(**d.some(dtype=d.one_of(1, 7, 8, 9, 10, 11, 6)))


@strategy("SequenceLength")
def length(d: Drawing) -> Node:
    return d.node(sequence(d, d.dtype(0)))


@strategy("SequenceAt", "SequenceErase")
def at(d: Drawing) -> Node:
    values = sequence(d, d.dtype(0), least=1)
    position = np.array(d.integer(-len(values), len(values) - 1), d.dtype(1))
    return d.node(values, position if d.schema.key.op_type == "SequenceAt" or d.flag() else None)


@strategy("SequenceInsert", tied=("S", "T"))
def insert(d: Drawing) -> Node:
    values = sequence(d, d.dtype(0))
    position = np.array(d.integer(-len(values), len(values)), d.dtype(2)) if d.flag() else None
    return d.node(values, d.tensor(1, d.shape(0, 3)), position)


@strategy("ConcatFromSequence")
def concat(d: Drawing) -> Node:
    shape = d.shape(1, 3)
    stacked = d.integer(0, 1)
    rank = len(shape) + stacked
    return d.node(sequence(d, d.dtype(0), shape, 1), axis=d.integer(-rank, rank - 1), **d.some(new_axis=stacked))


@strategy("SplitToSequence")
def split(d: Drawing) -> Node:
    shape = list(d.shape(1, 3))
    options = d.some(axis=d.axis(len(shape)), keepdims=d.integer(0, 1))
    axis = options.get("axis", 0)
    form = d.integer(0, 2)
    if form == 0:
        return d.node(d.tensor(0, shape), **options)
    if form == 1:
        return d.node(d.tensor(0, shape), np.array(d.integer(1, 4), d.dtype(1)), **options)
    sizes = [d.size() for _ in range(d.integer(1, 3))]
    shape[axis] = sum(sizes)
    return d.node(d.tensor(0, shape), np.array(sizes, d.dtype(1)), **options)


@strategy("Optional")
def optional(d: Drawing) -> Node:
    value = held(d)
    if d.integer(0, 2):
        return d.node(value)
    return d.node(type=type_proto(rankless(value)))


@strategy("OptionalHasElement", "OptionalGetElement")
def optional_input(d: Drawing) -> Node:
    value = held(d)
    wrapped = type_proto(OptionalType(rankless(value))) if d.type_of(0).startswith("optional") else None
    if d.schema.key.op_type == "OptionalHasElement":
        form = d.integer(0, 3)
        if form == 0 and wrapped is not None:
            return d.node(EmptyOptional(rankless(value)), declared=wrapped)
        if form == 1 and d.version >= 18:
            return d.node()
    return d.node(value, declared=wrapped)


def rankless(value: Any) -> ValueType:
    """The type of a tensor or a sequence, no ranks told."""
    return SequenceType(value.element_type) if isinstance(value, Sequence) else TensorType(value.dtype)


def held(d: Drawing, slot: int = 0) -> Any:
    """A tensor or a sequence, what an optional of the slot's type may hold."""
    return sequence(d, d.dtype(slot)) if "seq(" in d.type_of(slot) else d.tensor(slot, d.shape(0, 3))


def info(name: str, dtype: np.dtype | type, shape: tuple[int, ...] | None = None) -> Any:
    return helper.make_tensor_value_info(name, ELEMENT_TYPES[np.dtype(dtype)], shape)


@strategy("SequenceMap")
def sequence_map(d: Drawing) -> Node:
    dtype = element_of(d.type_of(0))
    body = helper.make_graph(
        [helper.make_node("Shape", ["item"], ["sizes"]), helper.make_node("Identity", ["item"], ["same"])],
        "body",
        [info("item", dtype)],
        [info("sizes", np.int64), info("same", dtype)],
    )
    return d.node(sequence(d, dtype), wanted=(True, True), body=body)


@strategy("If")
def branches(d: Drawing) -> Node:
    dtype = np.dtype(d.one_of(np.float32, np.int64, bool) if d.version >= 11 else np.float32)
    shape = d.shape(0, 3)
    graphs = []
    for name in ("then", "else"):
        value = numpy_helper.from_array(d.array(dtype, d.shape(0, 3) if d.version >= 11 else shape), name)
        node = helper.make_node("Constant", [], [name], value=value)
        graphs.append(helper.make_graph([node], name, [], [info(name, dtype)]))
    condition = np.array(d.flag()).reshape(d.one_of((), (1,)))
    return d.node(condition, then_branch=graphs[0], else_branch=graphs[1])


@strategy("Loop", palettes=("plain",))
def loop(d: Drawing) -> Node:
    """A value that is carried, a counter, and the counter of each trip as a scan output."""
    limit = d.integer(0, 4)
    value = held(d, 2) if d.version >= 16 else d.tensor(2, d.shape(0, 3))

    def carried(name: str) -> Any:
        return helper.make_value_info(name, type_proto(rankless(value)))

    nodes = [
        helper.make_node("Identity", ["carried"], ["carried out"]),
        helper.make_node("Add", ["count", "one"], ["count out"]),
        helper.make_node("Cast", ["count"], ["number"], to=TensorProto.FLOAT),  # Less-7 takes floats alone
        helper.make_node("Less", ["number", "bound"], ["go on"]),
        helper.make_node("Identity", ["count"], ["row"]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [info("trip", np.int64, ()), info("condition", bool, ()), carried("carried"), info("count", np.int64)],
        [info("go on", bool), carried("carried out"), info("count out", np.int64), info("row", np.int64)],
        [
            helper.make_tensor("bound", TensorProto.FLOAT, (), [limit]),
            helper.make_tensor("one", TensorProto.INT64, (), [1]),
        ],
    )
    trips = np.array(d.integer(0, 4), np.int64) if d.flag() else None
    condition = np.array(d.integer(0, 3) > 0) if d.flag() or trips is None else None
    return d.node(trips, condition, value, np.array(0, np.int64), wanted=(True,) * 3, body=body)


@strategy("Scan", palettes=("plain",), ulps=4, scaled=True)
def scan(d: Drawing) -> Node:
    """A running sum and its steps, and a second input passed through."""
    if d.version == 8:
        return scan_with_batches(d)
    length = d.size(1)
    row, other = d.shape(0, 2), d.shape(0, 2)
    axes = [d.integer(0, len(shape)) for shape in (row, other)]
    out_axes = [d.integer(0, len(shape)) for shape in (row, other)]
    options = d.some(
        scan_input_directions=[d.integer(0, 1), d.integer(0, 1)],
        scan_output_directions=[d.integer(0, 1), d.integer(0, 1)],
    )
    if d.flag():
        options |= {"scan_input_axes": axes, "scan_output_axes": out_axes}
    else:
        axes = [0, 0]
    inputs = [
        d.array(np.float32, (*shape[:axis], length, *shape[axis:]))
        for shape, axis in zip((row, other), axes, strict=True)
    ]
    state = d.array(np.float32, row)
    return d.node(state, *inputs, wanted=(True,) * 3, body=running_sum(), num_scan_inputs=2, **options)


def scan_with_batches(d: Drawing) -> Node:
    batch, length = d.integer(1, 2), d.integer(1, 3)
    row, other = d.shape(0, 2), d.shape(0, 2)
    lengths = d.integers((batch,), 1, length) if d.flag() else None
    options = d.some(directions=[d.integer(0, 1), d.integer(0, 1)])
    state = d.array(np.float32, (batch, *row))
    inputs = [d.array(np.float32, (batch, length, *shape)) for shape in (row, other)]
    return d.node(lengths, state, *inputs, wanted=(True,) * 3, body=running_sum(), num_scan_inputs=2, **options)


def running_sum() -> Any:
    return helper.make_graph(
        [
            helper.make_node("Add", ["sum", "row"], ["sum out"]),
            helper.make_node("Identity", ["sum out"], ["step"]),
            helper.make_node("Identity", ["other"], ["same"]),
        ],
        "body",
        [info(name, np.float32) for name in ("sum", "row", "other")],
        [info(name, np.float32) for name in ("sum out", "step", "same")],
    )

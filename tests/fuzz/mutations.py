"""Break a model or what it is fed, one change at a time, the same for the same `random.Random`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.defs import OpSchema

from onnxeval.dtypes import BY_ELEMENT_TYPE, STRING
from onnxeval.schema import all_schemas, find_schema
from onnxeval.values import Sequence

INTS = (0, 1, -1, 2, 3, 5, -2, 7, 13, 100, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 3e38, -3e38, float("nan"), float("inf"), -float("inf"))
STRINGS = ("", "x", "NOTSET", "linear", "é", "a\nb", "ij,jk->ik", "...", "[", "%s{}", "sum", "Relu", "x" * 300)
KINDS = AttributeProto.AttributeType

Feeds = dict[str, Any]


def mutate(model: ModelProto, feeds: Feeds, chance: Random) -> tuple[ModelProto, Feeds]:
    """A copy of both with one to three changes."""
    copy = ModelProto()
    copy.CopyFrom(model)
    feeds = dict(feeds)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        chance.choice(CHANGES)(copy, feeds, chance)
    return copy, feeds


# What there is to change


def graphs_of(model: ModelProto) -> Iterator[GraphProto]:
    """The graph and all those nested in it and in functions."""
    yield model.graph
    for node in [*model.graph.node, *(node for function in model.functions for node in function.node)]:
        yield from _graphs_in(node)


def _graphs_in(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            yield graph
            for inner in graph.node:
                yield from _graphs_in(inner)


def nodes_of(model: ModelProto) -> list[NodeProto]:
    nodes = [node for graph in graphs_of(model) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    return nodes or [model.graph.node.add()]


def tensors_of(model: ModelProto) -> list[TensorProto]:
    tensors = [tensor for graph in graphs_of(model) for tensor in graph.initializer]
    for node in nodes_of(model):
        tensors += [a.t for a in node.attribute if a.HasField("t")]
    return tensors


def schema_of(node: NodeProto, model: ModelProto) -> OpSchema | None:
    version = next((entry.version for entry in model.opset_import if entry.domain == node.domain), 28)
    schema = find_schema(node.domain, node.op_type, version)
    return schema.definition if schema is not None else None


# Attributes


def set_attribute(node: NodeProto, name: str, kind: int, chance: Random, rank: int = 4) -> None:
    """Give a node an attribute of that kind with a value of chance."""
    for place, attribute in enumerate(node.attribute):
        if attribute.name == name:
            del node.attribute[place]
            break
    attribute = node.attribute.add(name=name, type=kind)
    count = chance.choice((0, 1, 2, 3, rank, 2 * rank))
    match kind:
        case KINDS.INT:
            attribute.i = an_int(chance)
        case KINDS.FLOAT:
            attribute.f = chance.choice(FLOATS)
        case KINDS.STRING:
            attribute.s = chance.choice(STRINGS).encode()
        case KINDS.INTS:
            attribute.ints.extend(an_int(chance) for _ in range(count))
        case KINDS.FLOATS:
            attribute.floats.extend(chance.choice(FLOATS) for _ in range(count))
        case KINDS.STRINGS:
            attribute.strings.extend(chance.choice(STRINGS).encode() for _ in range(count))
        case KINDS.TENSOR:
            attribute.t.CopyFrom(numpy_helper.from_array(an_array(chance)))


def an_int(chance: Random) -> int:
    return chance.randrange(-3, 6) if chance.random() < 0.7 else chance.choice(INTS)


def an_array(chance: Random, dtype: np.dtype | None = None, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Small numbers mostly; sometimes extremes."""
    if dtype is None:
        dtype = chance.choice(list(BY_ELEMENT_TYPE.values()))
    if shape is None:
        shape = tuple(chance.choice((0, 1, 1, 2, 2, 3, 4, 5)) for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4, 5))))
    count = int(np.prod(shape))
    if dtype == STRING:
        array = np.empty(count, object)
        array[:] = [chance.choice(STRINGS) for _ in range(count)]
        return array.reshape(shape)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        numbers = [min(max(an_int(chance), info.min), info.max) for _ in range(count)]
        return np.array(numbers, dtype).reshape(shape)
    wide = [chance.choice(FLOATS) if chance.random() < 0.1 else chance.randrange(-8, 9) / 2 for _ in range(count)]
    with np.errstate(all="ignore"):
        return np.array(wide, np.float64).astype(dtype).reshape(shape)


def new_attribute(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    """Another value, of the right kind, for an attribute that the operator has."""
    node = chance.choice(nodes_of(model))
    schema = schema_of(node, model)
    if schema is None or not schema.attributes:
        return
    attribute = chance.choice(sorted(schema.attributes.values(), key=lambda a: a.name))
    set_attribute(node, attribute.name, int(attribute.type.value), chance)


def broken_attribute(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    """Gone, doubled, renamed, of another type, or with one number changed."""
    nodes = [node for node in nodes_of(model) if node.attribute]
    if not nodes:
        return
    node = chance.choice(nodes)
    place = chance.randrange(len(node.attribute))
    attribute = node.attribute[place]
    match chance.randrange(6):
        case 0:
            del node.attribute[place]
        case 1:
            node.attribute.add().CopyFrom(attribute)
        case 2:
            attribute.name = chance.choice(("x", "", "axis", "axes", "to", "body"))
        case 3:
            attribute.type = chance.randrange(0, 15) if chance.random() < 0.8 else KINDS.GRAPH
        case 4:
            set_attribute(node, attribute.name, chance.randrange(1, 9), chance)
        case 5 if attribute.ints:
            attribute.ints[chance.randrange(len(attribute.ints))] = an_int(chance)
        case 5 if attribute.floats:
            attribute.floats[chance.randrange(len(attribute.floats))] = chance.choice(FLOATS)
        case _:
            attribute.i = an_int(chance)


# Slots and names


def broken_slot(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    """An input or output of a node blank, gone, doubled, swapped or renamed."""
    node = chance.choice(nodes_of(model))
    names = node.input if chance.random() < 0.8 else node.output
    if not names:
        names.append("x")
        return
    place, other = chance.randrange(len(names)), chance.randrange(len(names))
    match chance.randrange(6):
        case 0:
            names[place] = ""
        case 1:
            del names[place]
        case 2:
            names.append(names[place])
        case 3:
            names[place], names[other] = names[other], names[place]
        case 4:
            names[place] = names[other]
        case 5:
            names[place] = chance.choice(all_names(model))


def all_names(model: ModelProto) -> list[str]:
    return ["nothing", *(value.name for value in model.graph.input), *(n for o in nodes_of(model) for n in o.output)]


def other_operator(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    node = chance.choice(nodes_of(model))
    key = chance.choice(all_schemas()).key
    node.op_type, node.domain = key.op_type, key.domain
    if not any(entry.domain == key.domain for entry in model.opset_import):
        model.opset_import.add(domain=key.domain, version=key.since_version)


def broken_graph(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    """A node, input, output or initializer of some graph or function gone, doubled or moved."""
    graph = chance.choice([*graphs_of(model), *model.functions])
    fields = (graph.node, graph.input, graph.output)
    field = chance.choice((*fields, graph.initializer) if isinstance(graph, GraphProto) else fields)
    if not field:
        return
    place = chance.randrange(len(field))
    if chance.random() < 0.6:
        del field[place]
    elif isinstance(field[place], str):
        field.append(field[place])
    else:
        field.add().CopyFrom(field[place])


def other_opset(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    for entry in [*model.opset_import, *(entry for f in model.functions for entry in f.opset_import)]:
        entry.version = chance.randrange(1, 29) if entry.domain in ("", "ai.onnx") else chance.randrange(1, 6)


# Types and numbers


def broken_tensor(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    """Dims, dtype or elements of an initializer or a tensor attribute."""
    tensors = tensors_of(model)
    if not tensors:
        return
    tensor = chance.choice(tensors)
    match chance.randrange(4):
        case 0:
            tensor.data_type = chance.randrange(0, 30)
        case 1 if tensor.dims:
            tensor.dims[chance.randrange(len(tensor.dims))] = an_int(chance)
        case 2:
            tensor.dims.append(an_int(chance))
        case _:
            name = tensor.name
            try:
                dtype = BY_ELEMENT_TYPE.get(tensor.data_type)
                tensor.CopyFrom(numpy_helper.from_array(an_array(chance, dtype if chance.random() < 0.7 else None)))
            except (TypeError, ValueError):
                return
            tensor.name = name


def broken_type(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    """The declared type of an input or output of some graph: another or none."""
    graph = chance.choice(list(graphs_of(model)))
    values = [*graph.input, *graph.output]
    if not values:
        return
    value = chance.choice(values)
    if chance.random() < 0.4:
        value.ClearField("type")
    elif value.type.HasField("tensor_type") and chance.random() < 0.5:
        value.type.tensor_type.elem_type = chance.randrange(0, 30)
    else:
        value.type.tensor_type.shape.dim.add(dim_value=an_int(chance))


def other_feed(model: ModelProto, feeds: Feeds, chance: Random) -> None:
    """Another value for an input, which the model no longer declares a type for."""
    if not feeds:
        return
    name = chance.choice(sorted(feeds))
    for value in model.graph.input:
        if value.name == name:
            value.ClearField("type")
    feeds[name] = chance.choice(FEED_CHANGES)(feeds[name], chance)


def _another_array(value: Any, chance: Random) -> Any:
    return an_array(chance, value.dtype if isinstance(value, np.ndarray) else None)


def _another_dtype(value: Any, chance: Random) -> Any:
    if not isinstance(value, np.ndarray):
        return an_array(chance)
    return an_array(chance, None, value.shape) if value.size < 5000 else value


def _other_numbers(value: Any, chance: Random) -> Any:
    if not isinstance(value, np.ndarray) or value.size > 5000:
        return an_array(chance)
    return an_array(chance, value.dtype, value.shape)


def _one_number(value: Any, chance: Random) -> Any:
    if not isinstance(value, np.ndarray) or not value.size:
        return an_array(chance)
    changed = value.copy()
    changed[tuple(chance.randrange(size) for size in value.shape)] = an_array(chance, value.dtype, ())
    return changed


def _another_shape(value: Any, chance: Random) -> Any:
    """Rank 0, empty, an axis more, fewer, longer or shorter."""
    if not isinstance(value, np.ndarray):
        return an_array(chance)
    axis = chance.randrange(value.ndim) if value.ndim else 0
    match chance.randrange(6):
        case 0 if value.size:
            return value.reshape(-1)[0].reshape(()) if value.dtype != STRING else value.reshape(-1)[:1].reshape(())
        case 1 if value.ndim:
            return value.take([], axis=axis)
        case 2:
            return value[None]
        case 3 if value.ndim and value.shape[axis]:
            return value.take(0, axis=axis)
        case 4 if value.ndim:
            return np.concatenate([value, value], axis=axis)
        case 5 if value.ndim:
            return value.take(range(max(value.shape[axis] - 1, 0)), axis=axis)
    return value


def _another_kind(value: Any, chance: Random) -> Any:
    """A sequence, a map or nothing for a tensor; a tensor for those."""
    if not isinstance(value, np.ndarray):
        return an_array(chance)
    match chance.randrange(4):
        case 0:
            return Sequence([value])
        case 1:
            return Sequence([value, an_array(chance, value.dtype)])
        case 2:
            return {an_int(chance): 1.5, an_int(chance): 2.5}
        case _:
            return Sequence()


FEED_CHANGES: tuple[Callable[[Any, Random], Any], ...] = (
    _another_array,
    _another_dtype,
    _other_numbers,
    _one_number,
    _one_number,
    _another_shape,
    _another_shape,
    _another_kind,
)

Change = Callable[[ModelProto, Feeds, Random], None]
CHANGES: tuple[Change, ...] = (
    new_attribute,
    new_attribute,
    new_attribute,
    broken_attribute,
    broken_slot,
    broken_slot,
    other_operator,
    broken_graph,
    other_opset,
    broken_tensor,
    broken_type,
    other_feed,
    other_feed,
    other_feed,
    other_feed,
)

"""A node of any version of any operator, its inputs and attributes drawn from all that the schema's types allow."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
from fuzz.mutations import KINDS, Feeds, an_array, set_attribute
from onnx import ModelProto, TensorProto, TypeProto, helper
from onnx.defs import OpSchema

from onnxeval.dtypes import BY_NAME
from onnxeval.files.protobuf import message_of
from onnxeval.schema import Schema, slot_at
from onnxeval.tensors import type_proto
from onnxeval.values import EmptyOptional, Sequence, type_of


def wild_node(schema: Schema, chance: Random) -> tuple[ModelProto, Feeds]:
    """A model of one node of that version, mostly of the right types, and something to feed it."""
    most = min(schema.max_inputs, schema.min_inputs + 3)
    given = most if chance.random() < 0.4 else chance.randint(schema.min_inputs, most)
    types: dict[str, str] = {}
    shape = tuple(chance.choice((1, 2, 2, 3, 4)) for _ in range(chance.choice((0, 1, 2, 3, 3, 4, 4, 5))))
    feeds: Feeds = {}
    names = []
    for place in range(given):
        slot = slot_at(schema.inputs, place)
        assert slot is not None
        if slot.optional and chance.random() < 0.3:
            names.append("")
            continue
        text = types.setdefault(slot.variable or str(place), chance.choice(sorted(slot.allowed)))
        if chance.random() < 0.03:
            text = "tensor(float)"
        names.append(f"x{place}")
        feeds[names[-1]] = _value(text, shape, chance)
    outputs = chance.randint(schema.min_outputs, min(schema.max_outputs, schema.min_outputs + 4))
    node = helper.make_node(schema.key.op_type, names, [f"y{place}" for place in range(outputs)])
    node.domain = schema.key.domain
    for attribute in schema.attributes.values():
        if attribute.kind in (KINDS.GRAPH, KINDS.GRAPHS):
            node.attribute.append(helper.make_attribute(attribute.name, _body(chance)))
        elif attribute.required or chance.random() < 0.5:
            _set(node, schema, attribute.name, attribute.kind, chance, len(shape))
    graph = helper.make_graph(
        [node],
        "wild",
        [helper.make_value_info(name, _declared(feeds[name], chance)) for name in feeds],
        [helper.make_value_info(name, TypeProto()) for name in node.output],
    )
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and chance.random() < 0.3:
            tensor = message_of(value, name)
            assert isinstance(tensor, TensorProto)
            graph.initializer.append(tensor)
    imports = [helper.make_opsetid(schema.key.domain, schema.key.since_version)]
    if schema.key.domain:
        imports.append(helper.make_opsetid("", 21))
    return helper.make_model(graph, opset_imports=imports, ir_version=10), feeds


def _declared(value: Any, chance: Random) -> TypeProto:
    return type_proto(type_of(value)) if chance.random() < 0.5 else TypeProto()


def _set(node: Any, schema: Schema, name: str, kind: int, chance: Random, rank: int) -> None:
    set_attribute(node, name, kind, chance, chance.choice((rank, max(rank - 2, 0))))
    attribute = next(a for a in node.attribute if a.name == name)
    definition: OpSchema = schema.definition
    if kind == KINDS.STRING and chance.random() < 0.9:
        words = re.findall(r"[`'\"]([A-Za-z_]+)[`'\"]|\b([A-Z]{2,}[A-Z_]*)\b", definition.attributes[name].description)
        choices = [a or b for a, b in words]
        if schema.attributes[name].default:
            choices.append(schema.attributes[name].default)
        if choices:
            attribute.s = chance.choice(choices).encode()
    elif kind == KINDS.INTS and chance.random() < 0.6:
        attribute.ints[:] = [chance.randrange(0, 4) for _ in attribute.ints]
    elif kind == KINDS.INT and name in ("to", "dtype", "output_dtype") and chance.random() < 0.8:
        attribute.i = chance.randrange(0, 29)


def _body(chance: Random) -> Any:
    """A graph of a few inputs that gives them back."""
    count = chance.choice((0, 1, 2, 3))
    inputs = [helper.make_value_info(f"i{place}", TypeProto()) for place in range(count)]
    nodes = [helper.make_node("Identity", [f"i{place}"], [f"o{place}"]) for place in range(count)]
    outputs = [helper.make_value_info(f"o{place}", TypeProto()) for place in range(count)]
    if not count or chance.random() < 0.2:
        nodes.append(helper.make_node("Constant", [], ["true"], value_ints=[1]))
        outputs.insert(0, helper.make_value_info("true", TypeProto()))
    return helper.make_graph(nodes, "body", inputs, outputs)


def _value(text: str, shape: tuple[int, ...], chance: Random) -> Any:
    """A value of a type as the schemas write it."""
    if text.startswith("optional("):
        return EmptyOptional() if chance.random() < 0.3 else _value(text[9:-1], shape, chance)
    if text.startswith("seq("):
        return Sequence(_value(text[4:-1], shape, chance) for _ in range(chance.choice((0, 1, 2, 3))))
    if text.startswith("map("):
        key, _, value = text[4:-1].partition(",")
        keys = ["a", "b", "c"] if key == "string" else [1, 2, 5]
        return {k: an_array(chance, BY_NAME[value.strip()[7:-1]], ()).item() for k in keys[: chance.choice((0, 1, 3))]}
    dtype = BY_NAME[text.removeprefix("tensor(").removesuffix(")")]
    if chance.random() < 0.6:
        return an_array(chance, dtype, shape)
    if dtype in (np.int64, np.int32) and chance.random() < 0.5:
        length = chance.choice((len(shape), 2 * len(shape), 1, 2))
        return np.array([chance.randrange(-1, 5) for _ in range(length)], dtype)
    return an_array(chance, dtype, None if chance.random() < 0.5 else (chance.choice((1, *shape)),))

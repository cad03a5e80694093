"""A part of a model as a model of its own: what lies between some of its values and others."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from onnxeval.checks.known import Known
from onnxeval.checks.recording import record
from onnxeval.errors import InputError, ModelError
from onnxeval.external import Files
from onnxeval.functions import index_functions
from onnxeval.graph import constants_of, known_names, needed_nodes, order_graph, undefined_message
from onnxeval.loader import Loaded, load_model
from onnxeval.saving import embed
from onnxeval.schema import canonical_domain

#: What a part has of the model around it as it is there.
_OF_MODELS = frozenset(field.name for field in ModelProto.DESCRIPTOR.fields) - {
    "functions",
    "graph",
    "opset_import",
    "training_info",
}


class Part(NamedTuple):
    """A part of a model. Its data may be in ``files``: `onnxeval.saving.save_model` writes both.

    ``unused`` are those of the values that it was to begin at which its outputs do not depend on, ``untold`` its
    inputs and outputs of whose types nothing tells all.
    """

    model: ModelProto
    files: Files
    unused: tuple[str, ...]
    untold: tuple[str, ...]


def extract(
    model: str | os.PathLike[str] | bytes | ModelProto,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
) -> ModelProto:
    """The part of a model that computes ``outputs`` from ``inputs``, any values of its top-level graph.

    ``outputs`` are those of the model where none are named. Inputs of the model that they depend on otherwise stay
    inputs. Names, types, shapes, the functions and imports that are needed stay as they are; all data is in the result.

    Raises InputError for a name that no value has, for an input that no output depends on, and where the type of an
    input is not known; ModelError for what is no model.
    """
    part = part_of(load_model(model), inputs, outputs)
    if part.unused:
        raise InputError(f"no output depends on {', '.join(part.unused)}")
    embed(part.model, part.files)
    return part.model


def part_of(loaded: Loaded, inputs: Sequence[str] = (), outputs: Sequence[str] | None = None) -> Part:
    """As `extract`, data left where it is; an input that no output depends on is left out."""
    graph = loaded.proto.graph
    order = order_graph(graph)
    ends = list(dict.fromkeys([value.name for value in graph.output] if outputs is None else outputs))
    cuts = dict.fromkeys(inputs)
    known = set(known_names(graph.node, [*(value.name for value in graph.input), *constants_of(graph)]))
    for name in [*cuts, *ends]:
        if name not in known:
            raise InputError(f"the model has no value: {undefined_message(name, known)}")
    if both := [name for name in ends if name in cuts]:
        raise InputError(f"{', '.join(both)} would be an input and an output, with nothing in between")
    places, wanted = needed_nodes(order, ends, cuts)
    if undefined := [name for name in order.captures if name in wanted]:
        raise ModelError(undefined_message(undefined[0], known))
    types = _Types(loaded)
    begin = [name for name in cuts if name in wanted]
    whole = [value for value in graph.input if value.name in wanted and value.name not in cuts]
    part = GraphProto(
        node=_without_cuts([graph.node[place] for place in places], cuts, known),
        initializer=[tensor for tensor in graph.initializer if tensor.name in wanted and tensor.name not in cuts],
        sparse_initializer=[
            sparse
            for sparse in graph.sparse_initializer
            if sparse.values.name in wanted and sparse.values.name not in cuts
        ],
        input=[*(types.of_input(name) for name in begin), *whole],
        output=[types.of_output(name) for name in ends],
    )
    made = {name for node in part.node for name in node.output}.difference(ends)
    part.value_info.extend(value for value in graph.value_info if value.name in made)
    left = {*made, *ends, *(value.name for value in part.input), *constants_of(part)}
    part.quantization_annotation.extend(
        each
        for each in graph.quantization_annotation
        if {each.tensor_name, *(entry.value for entry in each.quant_parameter_tensor_names)} <= left
    )
    _copy(graph, part, ("name", "doc_string", "metadata_props"))
    unused = tuple(name for name in cuts if name not in wanted)
    untold = tuple(value.name for value in (*part.input, *part.output) if not _is_whole(value.type))
    return Part(_around(loaded.proto, part), Files(loaded.folders, loaded.held), unused, untold)


def _without_cuts(nodes: Sequence[NodeProto], cuts: Collection[str], known: Collection[str]) -> Iterator[NodeProto]:
    """The nodes; what one that is needed for something else makes of a value that is given gets another name."""
    for node in nodes:
        if cuts and any(name in cuts for name in node.output):
            copy = NodeProto()
            copy.CopyFrom(node)
            for place, name in enumerate(node.output):
                if name in cuts:
                    copy.output[place] = _free_name(name, known)
            yield copy
        else:
            yield node


def _free_name(name: str, known: Collection[str]) -> str:
    free = f"{name}_computed"
    while free in known:
        free += "_"
    return free


def _around(model: ModelProto, graph: GraphProto) -> ModelProto:
    """A model of this graph, with the functions and imports that its nodes need."""
    whole = ModelProto(graph=graph)
    functions = index_functions(model)
    called: dict[tuple[str, str, str], FunctionProto] = {}
    domains = {""}
    todo: list[Iterable[NodeProto]] = [graph.node]
    while todo:
        for node in _all_nodes(todo.pop()):
            key = (canonical_domain(node.domain), node.op_type, node.overload)
            domains.add(key[0])
            if key in functions and key not in called:
                called[key] = functions[key]
                todo.append(functions[key].node)
    whole.functions.extend(function for key, function in functions.items() if key in called)
    needed = [entry for entry in model.opset_import if canonical_domain(entry.domain) in domains]
    whole.opset_import.extend(needed or model.opset_import)  # there has to be one
    _copy(model, whole, _OF_MODELS)
    return whole


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_nodes(attribute.g.node)
            for graph in attribute.graphs:
                yield from _all_nodes(graph.node)


def _copy(source: Any, target: Any, fields: Collection[str]) -> None:
    for field, value in source.ListFields():
        if field.name not in fields:
            continue
        if hasattr(value, "MergeFrom"):  # a message, or a list
            getattr(target, field.name).MergeFrom(value)
        else:
            setattr(target, field.name, value)


class _Types:
    """What is declared of the values of a model's graph, and what follows where that is not all."""

    def __init__(self, loaded: Loaded) -> None:
        graph = loaded.proto.graph
        self._loaded = loaded
        self._inputs: dict[str, ValueInfoProto] = {value.name: value for value in graph.input}
        self._declared: dict[str, ValueInfoProto] = {
            value.name: value for value in (*graph.value_info, *graph.input, *graph.output)
        }

    @cached_property
    def _known(self) -> Mapping[str, Known]:
        return record(self._loaded).values

    def of_input(self, name: str) -> ValueInfoProto:
        """Of a value that is to be given: what follows counts more than what is declared and never looked at."""
        if name in self._inputs:
            return self._inputs[name]
        known = self._known[name]
        if known.name:
            return ValueInfoProto(name=name, type=known.proto)
        if name in self._declared:
            return self._declared[name]
        raise InputError(
            f'nothing tells the type of the value "{name}", which an input has to declare',
            hint="a value_info in the model would tell it",
        )

    def of_output(self, name: str) -> ValueInfoProto:
        """Of a value that is asked for: as it is declared, else what follows."""
        declared = self._declared.get(name, ValueInfoProto(name=name))
        if _is_whole(declared.type) or not (known := self._known[name]).name:
            return declared
        return ValueInfoProto(name=name, type=known.proto)


def _is_whole(declared: TypeProto) -> bool:
    """Whether a type says all that it can: of a tensor the element type and the rank."""
    kind = declared.WhichOneof("value")
    tensor = declared.tensor_type
    return kind is not None and (kind != "tensor_type" or bool(tensor.elem_type and tensor.HasField("shape")))

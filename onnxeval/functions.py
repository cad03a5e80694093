"""Model-local functions and the function bodies of schemas: what a call asks of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto

from onnxeval.errors import ModelError
from onnxeval.schema import Schema, canonical_domain
from onnxeval.tensors import type_proto
from onnxeval.values import ValueType


def function_name(function: FunctionProto) -> str:
    """``domain.name:overload``, without what is empty."""
    name = f"{function.domain}.{function.name}" if function.domain else function.name
    return f"{name}:{function.overload}" if function.overload else name


def index_functions(model: ModelProto) -> dict[tuple[str, str, str], FunctionProto]:
    """A model's functions by (domain, name, overload). Raises ModelError for one that is defined twice."""
    functions: dict[tuple[str, str, str], FunctionProto] = {}
    for function in model.functions:
        key = (canonical_domain(function.domain), function.name, function.overload)
        if key in functions:
            raise ModelError(f"function {function_name(function)} is defined twice")
        functions[key] = function
    return functions


def call_references(
    function: FunctionProto, node: NodeProto, given: Iterable[AttributeProto]
) -> dict[str, AttributeProto]:
    """The attributes that a call gives its function, defaults put in.

    Raises ModelError for an attribute that the function does not have, and for more inputs or outputs than it has.
    """
    name = function_name(function)
    for what, listed, declared in (("input", node.input, function.input), ("output", node.output, function.output)):
        if len(listed) > len(declared):
            raise ModelError(f"function {name} has {len(declared)} {what}s, {len(listed)} given")
    references = {attribute.name: attribute for attribute in function.attribute_proto}
    known = {*references, *function.attribute}
    for attribute in given:
        if attribute.name not in known:
            raise ModelError(f'function {name} has no attribute "{attribute.name}"')
        references[attribute.name] = attribute
    return references


def only_listed(body: FunctionProto, node: NodeProto) -> FunctionProto:
    """The body of a schema with only the outputs that the node lists: it need not make the optional others."""
    listed = list(node.output) + [""] * (len(body.output) - len(node.output))
    body.output[:] = [name if given else "" for name, given in zip(body.output, listed, strict=True)]
    return body


def function_body(schema: Schema, opset: int) -> FunctionProto | None:
    """The schema's fixed function body for an opset; None where it has none."""
    if not schema.definition.has_function:
        return None
    data = schema.definition.get_function_with_opset_version(_body_version(schema, opset, typed=False))
    return FunctionProto.FromString(data) if data else None


def has_typed_function_body(schema: Schema) -> bool:
    """Whether the schema builds a function body from a node and its input types."""
    return bool(schema.definition.has_context_dependent_function)


def typed_function_body(
    schema: Schema, opset: int, node: NodeProto, types: Sequence[ValueType | None]
) -> FunctionProto | None:
    """The body that the schema builds for this node and these input types; None where it builds none."""
    protos = [type_proto(value_type).SerializeToString() for value_type in types]
    version = _body_version(schema, opset, typed=True)
    data = schema.definition.get_context_dependent_function_with_opset_version(
        version, node.SerializeToString(), protos
    )
    return FunctionProto.FromString(data) if data else None


def _body_version(schema: Schema, opset: int, *, typed: bool) -> int:
    definition = schema.definition
    there = definition.context_dependent_function_opset_versions if typed else definition.function_opset_versions
    return int(max((version for version in there if version <= opset), default=min(there)))

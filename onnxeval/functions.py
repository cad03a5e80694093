"""Model-local functions and the function bodies of schemas: what a call asks of them."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto

from onnxeval.errors import ModelError
from onnxeval.schema import canonical_domain


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

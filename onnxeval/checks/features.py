"""Rules on what a model uses against the version of the file format that it says it follows, and on unknown fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import AttributeProto, TensorProto

from onnxeval.checks.declared import declared_alike, element_types, kinds
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Scope
from onnxeval.checks.whole import Model
from onnxeval.dtypes import BY_ELEMENT_TYPE, name_of

#: The IR version that brought an element type, where it is not the first.
_IR_OF_TYPE: dict[int, int] = {
    TensorProto.BFLOAT16: 4,
    TensorProto.FLOAT8E4M3FN: 9,
    TensorProto.FLOAT8E4M3FNUZ: 9,
    TensorProto.FLOAT8E5M2: 9,
    TensorProto.FLOAT8E5M2FNUZ: 9,
    TensorProto.UINT4: 10,
    TensorProto.INT4: 10,
    TensorProto.FLOAT4E2M1: 11,
    TensorProto.FLOAT8E8M0: 12,
    TensorProto.UINT2: 13,
    TensorProto.INT2: 13,
    TensorProto.FLOAT6E2M3: 14,
    TensorProto.FLOAT6E3M2: 14,
}
_IR_OF_KIND = {"sparse_tensor_type": (8, "the type of a sparse tensor"), "optional_type": (8, "an optional type")}
_NEWEST = max(_IR_OF_TYPE.values())

_Use = tuple[int, str, str]  # the IR version that a feature came with, the feature, where it is used


@rule("proto/early-feature", "warning", Model)
def early_feature(model: Model) -> Faults:
    """The model uses what came with a later IR version than the one that it says it follows.

    Why: a reader of that version may ignore the part, or refuse the file.

    Mend: set `ir_version` to the version that the message names, or a newer one; nothing else changes.

    Example:
        g (float[2] x) => (int4[2] y) { y = Cast<to = 22>(x) }
        >>> model.ir_version = 8
    """
    ir_version = model.proto.ir_version
    if not 0 < ir_version < _NEWEST:
        return
    told: set[str] = set()
    for needed, feature, where in _uses(model, ir_version):
        if needed > ir_version and feature not in told:
            told.add(feature)
            message = f"{feature} came with IR version {needed}, the model says {ir_version}"
            yield Fault(where, message, f"set ir_version to {needed} or more")


def _uses(model: Model, ir_version: int) -> Iterator[_Use]:
    proto = model.proto
    if proto.training_info:
        yield 7, "training_info", "model"
    if proto.functions:
        yield 8, "a function of the model's own", model.functions[0].where
    if proto.configuration:
        yield 11, "a device configuration", "model"
    for function in model.functions:
        if function.proto.attribute_proto:
            yield 9, "a default of a function's attribute", function.where
        if function.proto.overload:
            yield 10, "an overload", function.where
        if function.proto.metadata_props:
            yield 10, "metadata of parts of the model", function.where
    for scope in model.scopes():
        yield from _uses_in(scope, ir_version)


def _uses_in(scope: Scope, ir_version: int) -> Iterator[_Use]:
    if (graph := scope.graph) is not None:
        if graph.quantization_annotation:
            yield 5, "a quantization annotation", scope.where
        if graph.sparse_initializer:
            yield 6, "a sparse initializer", f"{scope.where}/sparse_initializer[0]"
        if graph.metadata_props:
            yield 10, "metadata of parts of the model", scope.where
        late = {n for n in {t.data_type for t in graph.initializer} if _IR_OF_TYPE.get(n, 0) > ir_version}
        for tensor in graph.initializer if late else ():
            yield from _use_of_type(tensor.data_type, f'{scope.where}/initializer "{tensor.name}"')
    for value in map(next, declared_alike(scope)):
        for number in element_types(value.proto.type):
            yield from _use_of_type(number, value.where)
        for kind in kinds(value.proto.type):
            if kind in _IR_OF_KIND:
                yield *_IR_OF_KIND[kind], value.where
    for node in scope.nodes if ir_version < 11 else ():
        if ir_version < 10 and node.proto.metadata_props:
            yield 10, "metadata of parts of the model", node.where
        if ir_version < 10 and node.proto.overload:
            yield 10, "an overload", node.where
        if node.proto.device_configurations:
            yield 11, "a device configuration", node.where
    for node in scope.bulky_nodes:
        for attribute in node.attributes:
            if attribute.type == AttributeProto.TENSOR:
                yield from _use_of_type(attribute.t.data_type, f'{node.where} attribute "{attribute.name}"')
            elif attribute.type == AttributeProto.SPARSE_TENSOR:
                yield 6, "a sparse tensor", f'{node.where} attribute "{attribute.name}"'


def _use_of_type(number: int, where: str) -> Iterator[_Use]:
    if number in _IR_OF_TYPE:
        yield _IR_OF_TYPE[number], name_of(BY_ELEMENT_TYPE[number]), where


@rule("proto/unknown-field", "warning", Model)
def unknown_field(model: Model) -> Faults:
    """The file holds fields that ONNX, as far as the installed package knows it, does not have.

    Why: it was written by a newer onnx, by somebody's own version of the format, or is no ONNX model at all; or its
    bytes were damaged. What the fields say is lost to every reader that does not know them.

    Mend: upgrade the onnx package, or export the file again.

    Example:
        >>> model.MergeFromString(bytes([0xF8, 0x7F, 1]))
    """
    for where, message in _messages(model):
        if numbers := sorted({field.field_number for field in UnknownFieldSet(message)}):
            shown = ", ".join(map(str, numbers[:5])) + (" and more" if len(numbers) > 5 else "")
            yield Fault(where, f"a {type(message).__name__} has no field {shown}")


def _messages(model: Model) -> Iterator[tuple[str, Any]]:
    yield "model", model.proto
    for place, entry in enumerate(model.proto.opset_import):
        yield f"model/opset_import[{place}]", entry
    for function in model.functions:
        yield function.where, function.proto
    for scope in model.scopes():
        if scope.graph is not None:
            yield scope.where, scope.graph

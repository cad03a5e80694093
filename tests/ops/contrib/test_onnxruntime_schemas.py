"""Kernels against what the installed onnxruntime says of its operators: attributes, inputs, outputs and types."""

import inspect
from typing import Any

import onnx
import pytest
from onnx import AttributeProto

from onnxeval.checks.types import slots_of
from onnxeval.custom import custom_schema
from onnxeval.ops.contrib._refused import why_refused
from onnxeval.registry import OpKey, Registry, signature_of
from onnxeval.schema import slot_at

state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")

DOMAINS = ("com.microsoft", "com.microsoft.nchwc")
KERNELS = Registry.standard()
SCHEMAS = sorted((s for s in state.get_all_operator_schema() if s.domain in DOMAINS), key=lambda s: (s.domain, s.name))
SERVED = [s for s in SCHEMAS if OpKey(s.domain, s.name, s.since_version) in KERNELS]

#: Where a kernel is told apart from the schema, and why.
DIFFERENT_OUTPUTS = {
    "CausalConvWithState": "the third is of an extension for one device, whose attributes are refused",
}
CURVES = ("ParametricSoftplus", "ScaledTanh")
DIFFERENT_ATTRIBUTES = {
    **dict.fromkeys(
        [("Upsample", "scales"), ("Crop", "border"), *((op, n) for op in CURVES for n in ("alpha", "beta"))],
        "the schema has no default, and onnxruntime's kernel refuses a node without it",
    ),
    ("DequantizeLinear", "block_size"): "the quantizer writes it where it writes blocks, and the schema forgets it",
    ("QuantizeLinear", "block_size"): "the quantizer writes it where it writes blocks, and the schema forgets it",
}
#: Operators that take more than the schema: those of the standard that they repeat do.
WIDER = {"ExpandDims", "FusedGemm", "GatherND", "Unique"}
#: Operators that take less: weights in formats of one device; a grid of coordinates in whole numbers or strings.
NARROWER = {"GridSample", "QMoE"}
#: Inputs in threes, the first of each a tensor, the others its scale and zero point.
UNTYPED = {"QLinearConcat"}


def label(schema: Any) -> str:
    return f"{schema.domain}.{schema.name}"


def kernel_of(schema: Any) -> Any:
    return KERNELS[OpKey(schema.domain, schema.name, schema.since_version)]


def default_of(attribute: Any) -> Any:
    if not attribute._default_value:
        return None
    value = onnx.helper.get_attribute_value(AttributeProto.FromString(attribute._default_value))
    return value.decode() if isinstance(value, bytes) else tuple(value) if isinstance(value, list) else value


def test_every_operator_runs_or_is_refused_by_name() -> None:
    for schema in SCHEMAS:
        runs, refused = schema in SERVED, bool(why_refused(schema.domain, schema.name))
        assert runs != refused, f"{label(schema)} runs: {runs}, refused: {refused}"


@pytest.mark.parametrize("schema", SERVED, ids=label)
def test_attributes(schema: Any) -> None:
    ours, defaults = custom_schema(kernel_of(schema)).attributes, signature_of(kernel_of(schema)).attributes
    excused = {name for op_type, name in DIFFERENT_ATTRIBUTES if op_type == schema.name}
    assert ours.keys() - excused == schema.attributes.keys() - excused
    for name in schema.attributes.keys() - excused:
        theirs = schema.attributes[name]
        assert ours[name].kind == getattr(AttributeProto, theirs.type.name), name
        assert ours[name].required == theirs.required, name
        if (wanted := default_of(theirs)) is not None:
            given = defaults[name]
            assert given is not inspect.Parameter.empty
            assert given == (pytest.approx(wanted, rel=1e-6) if isinstance(wanted, float) else wanted), name


@pytest.mark.parametrize("schema", SERVED, ids=label)
def test_inputs_and_outputs(schema: Any) -> None:
    ours = custom_schema(kernel_of(schema))
    options = [parameter.option.name for parameter in schema.inputs]
    assert ours.variadic == ("Variadic" in options)
    if schema.name not in UNTYPED:
        assert len(ours.inputs) == len(options) - options.count("Variadic")
        needed = {name for name, option in zip(ours.inputs, options, strict=False) if option == "Single"}
        assert ours.required == needed
    if schema.name not in DIFFERENT_OUTPUTS and not any(p.option.name == "Variadic" for p in schema.outputs):
        assert ours.outputs == len(schema.outputs)


@pytest.mark.parametrize("schema", [s for s in SERVED if s.name not in UNTYPED], ids=label)
def test_types(schema: Any) -> None:
    slots = slots_of(kernel_of(schema))
    by_variable: dict[str, set[str]] = {}
    for place, parameter in enumerate(schema.inputs):
        slot = slot_at(slots, place)
        assert slot is not None
        if schema.name not in NARROWER:
            assert set(parameter.types) <= slot.allowed, parameter.name
        if schema.name not in WIDER:
            assert slot.allowed <= set(parameter.types), parameter.name
        by_variable.setdefault(slot.variable, set()).add(parameter.typeStr)
    for variable, theirs in by_variable.items():
        assert len(theirs) == 1, f"{variable} ties {theirs} together"
    if schema.name not in NARROWER:
        assert len(by_variable) == len(set().union(*by_variable.values())), "inputs of one type may differ"


#: What onnxruntime has under ai.onnx and the standard has not.
UNDER_AI_ONNX = [
    "Affine",
    "Crop",
    "DynamicSlice",
    "ImageScaler",
    "ParametricSoftplus",
    "Scale",
    "ScaledTanh",
    "SimplifiedLayerNormalization",
]


@pytest.mark.parametrize("name", UNDER_AI_ONNX)
def test_operators_under_ai_onnx(name: str) -> None:
    (schema,) = (s for s in state.get_all_operator_schema() if (s.domain, s.name, s.since_version) == ("", name, 1))
    test_attributes(schema)
    assert len(custom_schema(kernel_of(schema)).inputs) == len(schema.inputs)
    for slot, parameter in zip(slots_of(kernel_of(schema)), schema.inputs, strict=True):
        assert set(parameter.types) <= slot.allowed

"""Where an attribute chooses the type of an output, a version gives exactly the types that its schema lists."""

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto
from standard.one_node import f32, held, i64, run

import onnxeval
from onnxeval.dtypes import BY_NAME, ELEMENT_TYPES, NAMES
from onnxeval.schema import Schema, all_schemas
from onnxeval.values import Sequence

_MEL = [i64(4), i64(16), i64(8000), f32(0), f32(4000)]
_SHAPE = {"shape": [2]}

#: Operator -> the attribute that holds an element type, inputs, other attributes.
CHOICES = {
    "Bernoulli": ("dtype", [f32([0.5])], {}),
    "BlackmanWindow": ("output_datatype", [i64(4)], {}),
    "Cast": ("to", [f32([1])], {}),
    "DequantizeLinear": ("output_dtype", [np.array([1], np.uint8), f32(1)], {}),
    "EyeLike": ("dtype", [f32([[1]])], {}),
    "HammingWindow": ("output_datatype", [i64(4)], {}),
    "HannWindow": ("output_datatype", [i64(4)], {}),
    "MelWeightMatrix": ("output_datatype", _MEL, {}),
    "Multinomial": ("dtype", [f32([[1, 1]])], {}),
    "QuantizeLinear": ("output_dtype", [f32([1]), f32(1)], {}),
    "RandomNormal": ("dtype", [], _SHAPE),
    "RandomNormalLike": ("dtype", [f32([1])], {}),
    "RandomUniform": ("dtype", [], _SHAPE),
    "RandomUniformLike": ("dtype", [f32([1])], {}),
    "SequenceEmpty": ("dtype", [], {}),
}
SCHEMAS = [schema for schema in all_schemas() if CHOICES.get(schema.key.op_type, ("",))[0] in schema.attributes]


def allowed(schema: Schema) -> set[str]:
    return {name for name in BY_NAME if {f"tensor({name})", f"seq(tensor({name}))"} & schema.outputs[0].allowed}


def test_the_table_has_every_operator_with_such_an_attribute() -> None:
    named = {"to", "dtype", "output_dtype", "output_datatype"}
    like = {"BitCast"}  # the width of the input's type leaves few
    assert {s.key.op_type for s in all_schemas() if named & set(s.attributes)} - like == set(CHOICES)


@pytest.mark.parametrize("dtype", BY_NAME.values(), ids=BY_NAME)
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.label)
def test_exactly_the_listed_types_are_given(schema: Schema, dtype: np.dtype) -> None:
    domain, op_type, version = schema.key
    name, inputs, others = CHOICES[op_type]
    chosen = ELEMENT_TYPES[dtype]
    if schema.attributes[name].kind == AttributeProto.STRING:
        chosen = TensorProto.DataType.Name(chosen)
    attributes = {name: chosen, **others}
    if NAMES[dtype] not in allowed(schema):
        with pytest.raises(onnxeval.OnnxEvalError):
            run(domain, op_type, version, inputs, 1, attributes)
        return
    [got] = run(domain, op_type, version, inputs, 1, attributes)
    assert (got.element_type if isinstance(got, Sequence) else got).dtype == dtype


@pytest.mark.parametrize("dtype", BY_NAME.values(), ids=BY_NAME)
@pytest.mark.parametrize(
    "schema", [s for s in all_schemas() if s.key.op_type == "ConstantOfShape"], ids=lambda s: s.label
)
def test_a_shape_is_filled_with_the_listed_types(schema: Schema, dtype: np.dtype) -> None:
    version, attributes = schema.key.since_version, {"value": held(dtype)}
    if NAMES[dtype] not in allowed(schema):
        with pytest.raises(onnxeval.OnnxEvalError, match="allowed"):
            run("", "ConstantOfShape", version, [i64([2])], 1, attributes)
        return
    [got] = run("", "ConstantOfShape", version, [i64([2])], 1, attributes)
    assert (got.dtype, got.shape) == (dtype, (2,))


@pytest.mark.parametrize("dtype", BY_NAME.values(), ids=BY_NAME)
def test_a_constant_is_what_the_model_holds(dtype: np.dtype) -> None:
    """Of any type: the shipped models of opset 6 hold integers, though the schema of that time lists floats alone."""
    for schema in (s for s in all_schemas() if s.key.op_type == "Constant"):
        [got] = run("", "Constant", schema.key.since_version, [], 1, {"value": held(dtype)})
        assert got.dtype == dtype

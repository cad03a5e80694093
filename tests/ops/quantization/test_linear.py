"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear against loops over the elements."""

import itertools

import numpy as np
import pytest
from onnx import TensorProto

from onnxeval import dtypes
from onnxeval.ops._cast import convert
from onnxeval.registry import OpKey, Registry

RNG = np.random.default_rng(11)
INTEGERS = [np.dtype(t) for t in (np.uint8, np.int8, np.uint16, np.int16)]
INTEGERS += [dtypes.UINT4, dtypes.INT4, dtypes.UINT2, dtypes.INT2]
FLOAT8 = [dtypes.FLOAT8E4M3FN, dtypes.FLOAT8E4M3FNUZ, dtypes.FLOAT8E5M2, dtypes.FLOAT8E5M2FNUZ]
SMALL_FLOATS = [*FLOAT8, dtypes.FLOAT6E2M3, dtypes.FLOAT6E3M2, dtypes.FLOAT4E2M1]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def kernel(op_type, version):
    return Registry.standard()[OpKey("", op_type, version)]


def quantize(x, scale, zero_point=None, *, version=28, axis=1, **attributes):
    return kernel("QuantizeLinear", version)(x, scale, zero_point, axis=axis, **attributes)


def dequantize(x, scale, zero_point=None, *, version=28, axis=1, **attributes):
    return kernel("DequantizeLinear", version)(x, scale, zero_point, axis=axis, **attributes)


def place_of_scale(place, scale, axis, block_size):
    """Where the scale of one element stands, by the three granularities of the text."""
    if scale.ndim == 0:
        return ()
    if scale.ndim == len(place) and block_size:
        return tuple(i // block_size if at == axis else i for at, i in enumerate(place))
    return (place[axis],)


GRANULARITIES = [
    ((2, 7, 3), (), 1, 0),
    ((2, 7, 3), (7,), 1, 0),
    ((2, 7, 3), (2,), -3, 0),
    ((2, 7, 3), (2, 4, 3), 1, 2),  # the last block is shorter
    ((2, 7, 3), (2, 7, 1), 2, 3),
    ((2, 7, 3), (2, 1, 3), 1, 9),
    ((7,), (7,), 0, 0),
    ((7,), (3,), -1, 3),
    ((), (), 1, 0),
    ((0, 3), (3,), 1, 0),
    ((2, 0), (2, 0), 1, 4),
]


@pytest.mark.parametrize(("shape", "scales", "axis", "block_size"), GRANULARITIES)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_quantize_to_integers(shape, scales, axis, block_size, target):
    lowest, highest = dtypes.integer_range(target)
    x = (RNG.normal(0, 1, shape) * highest).astype(np.float32)
    scale = RNG.uniform(0.25, 2, scales).astype(np.float32)
    zero_point = RNG.integers(lowest, highest + 1, scales).astype(target)
    for zero in (zero_point, None):
        output_dtype = dtypes.ELEMENT_TYPES[target]
        got = quantize(x, scale, zero, axis=axis, block_size=block_size, output_dtype=output_dtype)
        assert got.dtype == target
        assert got.shape == x.shape
        for place in np.ndindex(shape):
            at = place_of_scale(place, scale, axis % len(shape) if shape else 0, block_size)
            offset = 0 if zero is None else int(zero[at])
            wanted = min(max(round(float(x[place] / scale[at])) + offset, lowest), highest)
            assert int(got[place]) == wanted


def test_rounding_comes_before_the_zero_point():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
    got = quantize(x, np.float32(1), np.uint8(1), axis=0)  # round(0.5) + 1 is 1, round(0.5 + 1) would be 2
    assert got.tolist() == [1, 3, 3, 1, 0]


def test_saturation_of_infinities_and_nan():
    x = np.array([np.inf, -np.inf, 1e30, -1e30, np.nan], np.float32)
    for target in INTEGERS:
        lowest, highest = dtypes.integer_range(target)
        got = quantize(x, np.float32(1e-30), np.array(1, target), axis=0)
        assert [int(v) for v in got] == [highest, lowest, highest, lowest, 0]


@pytest.mark.parametrize("target", SMALL_FLOATS, ids=dtypes.name_of)
@pytest.mark.parametrize("saturate", [0, 1])
def test_quantize_to_small_floats(target, saturate):
    x = np.concatenate([RNG.normal(0, 100, 50), [1e9, -1e9, 0, np.inf, -np.inf]]).astype(np.float32)
    scale = np.array(0.75, np.float32)
    wanted = convert(x / scale, target, saturate=bool(saturate))
    got = quantize(x, scale, axis=0, saturate=saturate, output_dtype=dtypes.ELEMENT_TYPES[target])
    assert got.dtype == target
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))
    one = np.array(1, target)
    shifted = quantize(x, scale, one, axis=0, saturate=saturate)
    wanted = convert(x / scale + np.float32(1), target, saturate=bool(saturate))
    np.testing.assert_array_equal(shifted.view(np.uint8), wanted.view(np.uint8))


def test_the_scale_sets_the_precision_of_the_division():
    x = np.array([2.5005 * 3], np.float32)  # just above 2.5, which float16 and bfloat16 cannot tell from it
    three = np.array(3)
    zero = np.array(0, np.int8)
    assert quantize(x, three.astype(np.float32), zero, axis=0).tolist() == [3]
    assert quantize(x, three.astype(np.float16), zero, axis=0).tolist() == [2]
    assert quantize(x, three.astype(dtypes.BFLOAT16), zero, axis=0).tolist() == [2]
    assert quantize(x, three.astype(np.float16), zero, axis=0, precision=TensorProto.FLOAT).tolist() == [3]
    assert quantize(x, three.astype(np.float32), zero, axis=0, precision=TensorProto.BFLOAT16).tolist() == [2]


def test_scales_that_are_powers_of_two_and_integers():
    power = np.array(2.0).astype(dtypes.FLOAT8E8M0)
    assert quantize(np.array([5, -3, 7], np.float32), power, np.array(0, np.int8), axis=0).tolist() == [2, -2, 4]
    assert quantize(np.array([5, -3, 8], np.int32), np.array(2, np.int32), np.array(0, np.int8)).tolist() == [2, -2, 4]
    assert quantize(np.array([300, 5], np.int32), np.float32(2), version=13, axis=0).tolist() == [150, 2]


def test_output_types():
    x, one = np.ones(2, np.float32), np.array(1, np.float32)
    assert quantize(x, one, version=13, axis=0).dtype == np.uint8
    assert kernel("QuantizeLinear", 10)(x, one, None).dtype == np.uint8
    assert quantize(x, one, np.array(0, np.int16), output_dtype=TensorProto.INT16).dtype == np.int16
    with pytest.raises(ValueError, match="output_dtype is uint8, the zero point int8"):
        quantize(x, one, np.array(0, np.int8), output_dtype=TensorProto.UINT8)
    for name in ("FLOAT", "INT32", "BOOL", "FLOAT16", "FLOAT8E8M0", "STRING"):
        with pytest.raises(ValueError, match="not a quantized type"):
            quantize(x, one, output_dtype=TensorProto.DataType.Value(name))


X = np.zeros((2, 3), np.float32)
ONES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("scale", "zero_point", "attributes", "message"),
    [
        (ONES[0, :2], None, {}, "scale has 2 elements, axis 1 of the tensor 3"),
        (ONES[0], np.zeros(2, np.uint8), {}, "zero point is of shape"),
        (ONES[0], np.zeros((1, 3), np.uint8), {}, "zero point is of shape"),
        (ONES, None, {}, "block_size 0"),
        (ONES, None, {"block_size": 2}, r"blocks of 2 make \[2, 2\]"),
        (ONES[:1], None, {"block_size": 3}, r"blocks of 3 make \[2, 1\]"),
        (ONES, None, {"block_size": -1}, "block_size -1"),
        (ONES[0], None, {"axis": 2}, "axis 2"),
    ],
)
def test_shapes_that_do_not_fit(scale, zero_point, attributes, message):
    with pytest.raises(ValueError, match=message):
        quantize(X, scale, zero_point, **attributes)
    if zero_point is None:
        with pytest.raises(ValueError, match=message):
            dequantize(X.astype(np.uint8), scale, **attributes)


def test_version_10_has_one_scale():
    for op_type, x in (("QuantizeLinear", X), ("DequantizeLinear", X.astype(np.int8))):
        with pytest.raises(ValueError, match="expected a scalar"):
            kernel(op_type, 10)(x, ONES[0], None)
        assert kernel(op_type, 10)(x, ONES[0, :1], None).shape == (2, 3)


def test_a_huge_block_takes_no_memory():
    got = quantize(X, ONES[:, :1], axis=1, block_size=2**62)
    assert got.shape == (2, 3)


@pytest.mark.parametrize(("shape", "scales", "axis", "block_size"), GRANULARITIES)
@pytest.mark.parametrize("source", [*INTEGERS, np.dtype(np.int32), *SMALL_FLOATS], ids=dtypes.name_of)
def test_dequantize(shape, scales, axis, block_size, source):
    small = (0, 2) if source.itemsize == 1 and source not in INTEGERS[:2] else (0, 100)
    x = RNG.integers(*small, shape).astype(source)
    scale = RNG.uniform(0.25, 2, scales).astype(np.float32)
    zero_point = None if source == np.int32 else RNG.integers(*small, scales).astype(source)
    got = dequantize(x, scale, zero_point, axis=axis, block_size=block_size)
    assert got.dtype == np.float32
    assert got.shape == x.shape
    for place in np.ndindex(shape):
        at = place_of_scale(place, scale, axis % len(shape) if shape else 0, block_size)
        offset = 0.0 if zero_point is None else float(zero_point[at])
        assert got[place] == np.float32(float(x[place]) - offset) * scale[at]


def test_dequantize_the_ends_without_wrapping():
    for source in INTEGERS:
        low, high = dtypes.integer_range(source)
        got = dequantize(np.array([low, high]).astype(source), np.float32(1), np.array(high).astype(source), axis=0)
        assert got.tolist() == [low - high, 0]


@pytest.mark.parametrize("scale_type", [np.float32, np.float16, dtypes.BFLOAT16])
@pytest.mark.parametrize("output", [None, np.dtype(np.float32), np.dtype(np.float16), dtypes.BFLOAT16])
def test_the_output_type_of_dequantize(scale_type, output):
    x = np.array([3, -100, 127], np.int8)
    scale = np.array(0.1).astype(scale_type)
    got = dequantize(x, scale, axis=0, output_dtype=dtypes.ELEMENT_TYPES[output] if output else 0)
    wanted = convert(x.astype(np.float64) * float(scale), output or np.dtype(scale_type))
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.astype(float), wanted.astype(float))


def test_dequantize_by_powers_of_two():
    scale = np.array([0.5, 4]).astype(dtypes.FLOAT8E8M0)
    x = np.array([[6, 1.5], [-0.5, 4]]).astype(dtypes.FLOAT4E2M1)
    assert dequantize(x, scale, output_dtype=TensorProto.FLOAT).tolist() == [[3, 6], [-0.25, 16]]
    with pytest.raises(ValueError, match="needs an output_dtype"):
        dequantize(x, scale)


def test_int32_has_no_zero_point():
    x = np.array([2**24 + 2, -5], np.int32)
    assert dequantize(x, np.float32(2), np.int32(0), axis=0).tolist() == [2**25 + 4, -10]
    with pytest.raises(ValueError, match="no zero point"):
        dequantize(x, np.float32(2), np.array(1, np.int32), axis=0)


@pytest.mark.parametrize(
    "values", [[0, 2, -3, -2.5, 1.34, 0.5], [-1, -2.1, -1.3, -2.5, -3.34, -4], [1, 2.1, 1.3, 2.5, 3.34, 4]]
)
def test_dynamic_quantize(values):
    x = np.array(values, np.float32).reshape(2, 3)
    y, scale, zero_point = kernel("DynamicQuantizeLinear", 11)(x)
    low, high = min(0, x.min()), max(0, x.max())
    step = np.float32((np.float32(high) - np.float32(low)) / np.float32(255))
    zero = round(float(np.clip(np.float32(0) - np.float32(low) / step, 0, 255)))
    assert (scale.dtype, scale.shape, scale.item()) == (np.float32, (), step)
    assert (zero_point.dtype, zero_point.shape, zero_point.item()) == (np.uint8, (), zero)
    assert y.dtype == np.uint8
    assert y.tolist() == [[min(max(round(float(v / step)) + zero, 0), 255) for v in row] for row in x]


@pytest.mark.parametrize("x", [np.zeros((2, 2), np.float32), np.zeros((0,), np.float32)])
def test_dynamic_quantize_of_nothing_but_zeros(x):
    y, scale, zero_point = kernel("DynamicQuantizeLinear", 11)(x)
    assert y.shape == x.shape
    assert not y.any()
    assert (scale.item(), zero_point.item()) == (0, 0)


@pytest.mark.parametrize("target", [np.uint8, np.int8, np.uint16, np.int16])
def test_against_onnxruntime(target):
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import helper

    def run(op_type, inputs, **attributes):
        node = helper.make_node(op_type, list("abc"), ["y"], **attributes)
        types = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in inputs]
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info(n, t, a.shape) for n, t, a in zip("abc", types, inputs, strict=True)],
            [helper.make_tensor_value_info("y", types[2] if op_type[0] == "Q" else types[1], None)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, dict(zip("abc", inputs, strict=True)))[0]

    for (shape, scales, axis, block_size), _ in itertools.product(GRANULARITIES[:6], range(2)):
        x = (RNG.normal(0, 1, shape) * 300).astype(np.float32)
        scale = RNG.uniform(0.25, 2, scales).astype(np.float32)
        zero = RNG.integers(0, 100, scales).astype(target)
        attributes = {"axis": axis, "block_size": block_size}
        y = quantize(x, scale, zero, version=21, **attributes)
        np.testing.assert_array_equal(y, run("QuantizeLinear", [x, scale, zero], **attributes))
        np.testing.assert_array_equal(
            dequantize(y, scale, zero, version=21, **attributes),
            run("DequantizeLinear", [y, scale, zero], **attributes),
        )

"""Cast, CastLike and BitCast: versions, attributes, bits. What numbers become is tested in tests/ops/test_cast.py."""

import numpy as np
import pytest
from onnx import TensorProto

from onnxeval import dtypes
from onnxeval.ops._cast import convert
from onnxeval.registry import OpKey, Registry

WIDE = [np.int64, np.uint64, np.float64, np.complex64]


def kernel(op_type, version):
    return Registry.standard()[OpKey("", op_type, version)]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name", ["FLOAT", "FLOAT16", "DOUBLE", "BOOL", "INT8", "UINT64"])
def test_version_1_names_its_type(name):
    x = np.array([0, 1.5, 2.75], np.float32)
    wanted = dtypes.dtype_of(TensorProto.DataType.Value(name))
    got = kernel("Cast", 1)(x, to=name)
    assert got.dtype == wanted
    np.testing.assert_array_equal(got, kernel("Cast", 6)(x, to=TensorProto.DataType.Value(name)))


@pytest.mark.parametrize("name", ["float", "FLOAT32", "", "UNDEFINED"])
def test_version_1_with_an_unknown_name(name):
    with pytest.raises(ValueError, match="element types"):
        kernel("Cast", 1)(np.zeros(1, np.float32), to=name)


@pytest.mark.parametrize("to", [0, 99])
def test_unknown_element_type(to):
    with pytest.raises(ValueError, match=str(to)):
        kernel("Cast", 13)(np.zeros(1, np.float32), to=to)


def test_saturate_and_round_mode():
    x = np.array([1e6, 1.25], np.float32)
    fp8, e8m0 = TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E8M0
    assert kernel("Cast", 19)(x, to=fp8, saturate=1).astype(float).tolist() == [448, 1.25]
    assert np.isnan(kernel("Cast", 19)(x, to=fp8, saturate=0).astype(float)).tolist() == [True, False]
    for mode, wanted in {"up": 2, "down": 1, "nearest": 1}.items():
        assert kernel("Cast", 24)(x, to=e8m0, saturate=1, round_mode=mode).astype(float)[1] == wanted


@pytest.mark.parametrize("version", [15, 19, 21, 23, 24, 25])
def test_cast_like(version):
    got = kernel("CastLike", version)(np.array([[1.9, -1.9]]), np.zeros((0, 3), np.int8))
    assert got.dtype == np.int8
    assert got.tolist() == [[1, -1]]


def test_the_same_type_is_not_copied():
    x = np.arange(3)
    assert kernel("Cast", 28)(x, to=TensorProto.INT64, saturate=1, round_mode="up") is x


@pytest.mark.parametrize("source", WIDE)
@pytest.mark.parametrize("target", WIDE)
def test_bit_cast_of_8_bytes(source, target):
    bits = np.array([[0, 1], [2**63 + 5, 0x7FF8000000000001]], np.uint64)
    x = bits.view(source)
    got = kernel("BitCast", 26)(x, to=dtypes.ELEMENT_TYPES[np.dtype(target)])
    assert got.dtype == target
    assert got.tobytes() == bits.tobytes()
    assert np.shares_memory(got, x)


def test_bit_cast_of_small_types():
    nibbles = np.arange(16, dtype=np.uint8).astype(dtypes.UINT4)
    assert kernel("BitCast", 26)(nibbles, to=TensorProto.INT4).astype(int).tolist() == [*range(8), *range(-8, 0)]
    halves = kernel("BitCast", 26)(nibbles, to=TensorProto.FLOAT4E2M1).astype(float)
    assert halves.tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
    negative = np.array([-1, -8], np.int8).astype(dtypes.INT4)
    assert kernel("BitCast", 26)(negative, to=TensorProto.UINT4).astype(int).tolist() == [15, 8]
    pairs = np.array([-1, -2]).astype(dtypes.INT2)
    assert kernel("BitCast", 26)(pairs, to=TensorProto.UINT2).astype(int).tolist() == [3, 2]
    assert kernel("BitCast", 26)(np.array([0x3F80], np.uint16), to=TensorProto.BFLOAT16).astype(float) == 1
    assert kernel("BitCast", 26)(np.array(True), to=TensorProto.UINT8).tolist() == 1


def test_bit_cast_of_a_strided_tensor():
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    got = kernel("BitCast", 26)(x, to=TensorProto.INT32)
    np.testing.assert_array_equal(got, np.ascontiguousarray(x).view(np.int32))


def test_bit_cast_refuses():
    with pytest.raises(ValueError, match="float32 has 32 bits an element, int64 has 64"):
        kernel("BitCast", 26)(np.zeros(2, np.float32), to=TensorProto.INT64)
    with pytest.raises(ValueError, match="int4 has 4 bits"):
        kernel("BitCast", 26)(np.zeros(2, dtypes.INT4), to=TensorProto.INT8)
    with pytest.raises(TypeError, match="strings"):
        kernel("BitCast", 26)(np.array(["a"], object), to=TensorProto.INT64)
    with pytest.raises(TypeError, match="strings"):
        kernel("BitCast", 26)(np.zeros(1), to=TensorProto.STRING)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.int64, np.uint64, np.float16, np.float64])
def test_arrays_whose_byte_order_was_changed_keep_their_numbers(dtype):
    """Their dtype equals NumPy's own and is another object, as it is in arrays that were unpickled."""
    swapped = np.array([0, 1, 300, 1000], np.dtype(dtype).newbyteorder("S"))
    x = swapped.astype(swapped.dtype.newbyteorder("S"))
    assert x.dtype == dtype
    for target in map(np.dtype, (np.float32, np.int32, dtypes.BFLOAT16, np.bool_, object)):
        assert convert(x, target).tolist() == convert(np.array([0, 1, 300, 1000], dtype), target).tolist()

"""Constant and ConstantOfShape."""

import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import OpKey, Registry

NONE = dict.fromkeys(
    ["sparse_value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"]
)


def kernel(op_type, version):
    return Registry.standard()[OpKey("", op_type, version)]


@pytest.mark.parametrize("version", [1, 9, 11, 12, 25])
def test_a_dense_value_is_the_output(version):
    value = np.array([[1, 2]], ml_dtypes.bfloat16)
    assert kernel("Constant", version)(value=value) is value


@pytest.mark.parametrize(
    ("name", "given", "dtype", "shape"),
    [
        ("value_float", 0.5, np.float32, ()),
        ("value_floats", (0.5, 1.5), np.float32, (2,)),
        ("value_floats", (), np.float32, (0,)),
        ("value_int", -(2**63), np.int64, ()),
        ("value_ints", (2**63 - 1, 0), np.int64, (2,)),
        ("value_ints", (), np.int64, (0,)),
        ("value_string", "é", object, ()),
        ("value_strings", ("a", "bc"), object, (2,)),
        ("value_strings", (), object, (0,)),
    ],
)
def test_numbers_and_strings(name, given, dtype, shape):
    got = kernel("Constant", 12)(value=None, **{**NONE, name: given})
    assert (got.dtype, got.shape) == (dtype, shape)
    assert got.tolist() == (list(given) if isinstance(given, tuple) else given)


def test_sparse_values_come_as_dense_ones():
    dense = np.eye(3)
    assert kernel("Constant", 11)(value=None, sparse_value=dense) is dense


def test_constant_refuses():
    with pytest.raises(ValueError, match="not none"):
        kernel("Constant", 25)(value=None, **NONE)
    with pytest.raises(ValueError, match="not value_int and value_ints"):
        kernel("Constant", 25)(value=None, **{**NONE, "value_int": 0, "value_ints": ()})


@pytest.mark.parametrize("fill", [None, np.array([3], np.int8), np.array(1.5, ml_dtypes.bfloat16), np.array([[True]])])
@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (2, 0, 3)])
def test_constant_of_shape(fill, shape):
    got = kernel("ConstantOfShape", 25)(np.array(shape, np.int64), value=fill, allocate=np.empty)
    assert got.shape == shape
    assert got.dtype == (np.float32 if fill is None else fill.dtype)
    assert np.all(got == (0 if fill is None else fill.item()))


def test_constant_of_shape_refuses():
    for shape in ([-1], [[2, 3]], 2):
        with pytest.raises(ValueError, match="is not a list of sizes"):
            kernel("ConstantOfShape", 9)(np.array(shape, np.int64), value=None, allocate=np.empty)
    with pytest.raises(ValueError, match="expected one element"):
        kernel("ConstantOfShape", 9)(np.array([1]), value=np.array([1, 2]), allocate=np.empty)

    def refuse(shape, dtype):
        raise MemoryError(shape)

    with pytest.raises(MemoryError):
        kernel("ConstantOfShape", 9)(np.array([2**40, 2**20]), value=None, allocate=refuse)

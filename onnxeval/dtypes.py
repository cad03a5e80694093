"""ONNX element types and the NumPy dtypes that hold them.

`ml_dtypes` supplies what NumPy lacks: bfloat16, the float8, float6 and float4 types, and integers of 4 and
2 bits. Strings are object arrays of ``str``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
from onnx import TensorProto

DType: TypeAlias = np.dtype[Any]
Tensor: TypeAlias = npt.NDArray[Any]

BFLOAT16: DType = np.dtype(ml_dtypes.bfloat16)
FLOAT8E4M3FN: DType = np.dtype(ml_dtypes.float8_e4m3fn)
FLOAT8E4M3FNUZ: DType = np.dtype(ml_dtypes.float8_e4m3fnuz)
FLOAT8E5M2: DType = np.dtype(ml_dtypes.float8_e5m2)
FLOAT8E5M2FNUZ: DType = np.dtype(ml_dtypes.float8_e5m2fnuz)
FLOAT8E8M0: DType = np.dtype(ml_dtypes.float8_e8m0fnu)
FLOAT6E2M3: DType = np.dtype(ml_dtypes.float6_e2m3fn)
FLOAT6E3M2: DType = np.dtype(ml_dtypes.float6_e3m2fn)
FLOAT4E2M1: DType = np.dtype(ml_dtypes.float4_e2m1fn)
INT4: DType = np.dtype(ml_dtypes.int4)
UINT4: DType = np.dtype(ml_dtypes.uint4)
INT2: DType = np.dtype(ml_dtypes.int2)
UINT2: DType = np.dtype(ml_dtypes.uint2)
STRING: DType = np.dtype(object)

#: ONNX's element type -> the NumPy dtype that holds it.
BY_ELEMENT_TYPE: MappingProxyType[int, DType] = MappingProxyType(
    {
        TensorProto.FLOAT: np.dtype(np.float32),
        TensorProto.UINT8: np.dtype(np.uint8),
        TensorProto.INT8: np.dtype(np.int8),
        TensorProto.UINT16: np.dtype(np.uint16),
        TensorProto.INT16: np.dtype(np.int16),
        TensorProto.INT32: np.dtype(np.int32),
        TensorProto.INT64: np.dtype(np.int64),
        TensorProto.STRING: STRING,
        TensorProto.BOOL: np.dtype(np.bool_),
        TensorProto.FLOAT16: np.dtype(np.float16),
        TensorProto.DOUBLE: np.dtype(np.float64),
        TensorProto.UINT32: np.dtype(np.uint32),
        TensorProto.UINT64: np.dtype(np.uint64),
        TensorProto.COMPLEX64: np.dtype(np.complex64),
        TensorProto.COMPLEX128: np.dtype(np.complex128),
        TensorProto.BFLOAT16: BFLOAT16,
        TensorProto.FLOAT8E4M3FN: FLOAT8E4M3FN,
        TensorProto.FLOAT8E4M3FNUZ: FLOAT8E4M3FNUZ,
        TensorProto.FLOAT8E5M2: FLOAT8E5M2,
        TensorProto.FLOAT8E5M2FNUZ: FLOAT8E5M2FNUZ,
        TensorProto.UINT4: UINT4,
        TensorProto.INT4: INT4,
        TensorProto.FLOAT4E2M1: FLOAT4E2M1,
        TensorProto.FLOAT8E8M0: FLOAT8E8M0,
        TensorProto.UINT2: UINT2,
        TensorProto.INT2: INT2,
        TensorProto.FLOAT6E2M3: FLOAT6E2M3,
        TensorProto.FLOAT6E3M2: FLOAT6E3M2,
    }
)
ELEMENT_TYPES: MappingProxyType[DType, int] = MappingProxyType({d: e for e, d in BY_ELEMENT_TYPE.items()})

#: dtype -> its name in the text form of the standard's type strings: ``tensor(NAME)``.
NAMES: MappingProxyType[DType, str] = MappingProxyType(
    {dtype: TensorProto.DataType.Name(element_type).lower() for element_type, dtype in BY_ELEMENT_TYPE.items()}
)
BY_NAME: MappingProxyType[str, DType] = MappingProxyType({name: dtype for dtype, name in NAMES.items()})

#: Bits an element takes in a TensorProto's raw data, where that is less than a byte.
SUB_BYTE_BITS: MappingProxyType[DType, int] = MappingProxyType(
    {UINT4: 4, INT4: 4, FLOAT4E2M1: 4, UINT2: 2, INT2: 2, FLOAT6E2M3: 6, FLOAT6E3M2: 6}
)

_SIGNED = frozenset({*map(np.dtype, (np.int8, np.int16, np.int32, np.int64)), INT4, INT2})
_UNSIGNED = frozenset({*map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64)), UINT4, UINT2})
_NARROW_FLOATS = frozenset(
    {
        BFLOAT16,
        FLOAT8E4M3FN,
        FLOAT8E4M3FNUZ,
        FLOAT8E5M2,
        FLOAT8E5M2FNUZ,
        FLOAT8E8M0,
        FLOAT6E2M3,
        FLOAT6E3M2,
        FLOAT4E2M1,
    }
)
_FLOATS = frozenset({*map(np.dtype, (np.float16, np.float32, np.float64)), *_NARROW_FLOATS})


def dtype_of(element_type: int) -> DType:
    """The NumPy dtype of an ONNX element type (``TensorProto.DataType``).

    Raises ValueError where the number is UNDEFINED or unknown.
    """
    try:
        return BY_ELEMENT_TYPE[element_type]
    except KeyError:
        what = "undefined" if element_type == TensorProto.UNDEFINED else "unknown"
        raise ValueError(f"element type {element_type} is {what}") from None


def name_of(dtype: DType) -> str:
    """What people call a dtype: NumPy's and ml_dtypes' names, and ``string`` for object arrays."""
    return "string" if dtype == STRING else NAMES.get(dtype, dtype.name) if dtype in _NARROW_FLOATS else dtype.name


def is_signed(dtype: DType) -> bool:
    """Whether this is a signed integer type."""
    return dtype in _SIGNED


def is_integer(dtype: DType) -> bool:
    """Whether this is an integer type, signed or not (bool is none)."""
    return dtype in _SIGNED or dtype in _UNSIGNED


def is_float(dtype: DType) -> bool:
    """Whether this is a floating-point type of any width."""
    return dtype in _FLOATS


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    info: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]  # ml_dtypes leaves it untyped
    return int(info.min), int(info.max)


def comparable(array: Tensor) -> Tensor:
    """The same numbers in a type that NumPy computes with: the narrow types of ml_dtypes become wider ones."""
    if array.dtype.isbuiltin != 2:
        return array
    if is_integer(array.dtype):
        return array.astype(np.int16)
    return array.astype(np.float32) if is_float(array.dtype) else array

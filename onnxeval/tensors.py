"""Values as ONNX's protobuf messages hold them: TensorProto and its like to values, TypeProto to types and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from onnx import MapProto, OptionalProto, SequenceProto, SparseTensorProto, TensorProto, TypeProto

from onnxeval.dtypes import (
    BY_ELEMENT_TYPE,
    ELEMENT_TYPES,
    STRING,
    SUB_BYTE_BITS,
    DType,
    Tensor,
    dtype_of,
    is_signed,
    name_of,
)
from onnxeval.errors import ModelError
from onnxeval.external import NO_FILES, Files
from onnxeval.values import (
    Dimension,
    EmptyOptional,
    MapType,
    OptionalType,
    Sequence,
    SequenceType,
    TensorType,
    Value,
    ValueType,
)

#: The repeated field that holds the elements of each element type when raw_data does not.
_FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.COMPLEX64: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.COMPLEX128: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
    TensorProto.STRING: "string_data",
}
_REPEATED = ("float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data")


def array_from(tensor: TensorProto, files: Files = NO_FILES) -> Tensor:
    """The elements of a TensorProto as an array that nobody may write to.

    ``files`` hold its external data; without any, that is refused. Raises ModelError where the message contradicts
    itself; nothing is allocated before the data is known to be there.
    """
    what = f'tensor "{tensor.name}"' if tensor.name else "a tensor"
    try:
        array = _elements(tensor, files)
    except (ValueError, OSError) as error:
        raise ModelError(f"{what}: {error}") from error
    array.flags.writeable = False
    return array


def _elements(tensor: TensorProto, files: Files) -> Tensor:
    dtype = dtype_of(tensor.data_type)
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise ValueError(f"dims {list(shape)} hold a negative size")
    count = math.prod(shape)
    if tensor.data_location == TensorProto.EXTERNAL:
        return from_bytes(_external_bytes(tensor, dtype, count, files), dtype, count).reshape(shape)
    if tensor.HasField("segment"):
        raise ValueError("its data is stored in segments, which the standard does not use")
    field = _FIELDS.get(tensor.data_type, "int32_data")
    filled = [name for name in _REPEATED if getattr(tensor, name)]
    raw = tensor.raw_data  # a copy
    if raw or (not filled and tensor.HasField("raw_data")):
        filled.append("raw_data")
    if len(filled) > 1:
        raise ValueError(f"its data stands in several fields: {', '.join(filled)}")
    if filled and filled[0] not in (field, "raw_data"):
        raise ValueError(f"its data stands in {filled[0]}, {name_of(dtype)} belongs in {field} or raw_data")
    if filled == ["raw_data"]:
        if dtype == STRING:
            raise ValueError("strings cannot stand in raw_data")
        return from_bytes(np.frombuffer(raw, np.uint8), dtype, count).reshape(shape)
    return _from_field(getattr(tensor, field), dtype, count).reshape(shape)


def from_bytes(raw: Tensor, dtype: DType, count: int) -> Tensor:
    """Little-endian elements, sub-byte ones packed low bits first."""
    bits = SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize)
    expected = (count * bits + 7) // 8
    if raw.size != expected:
        raise ValueError(f"{count} elements of {name_of(dtype)} take {expected} bytes, the data has {raw.size}")
    if dtype in SUB_BYTE_BITS:
        return _unpack(raw, dtype, count)
    array: Tensor = raw.view(dtype)
    return array if np.little_endian or dtype.itemsize == 1 else array.byteswap()


def packed(flat: Tensor) -> bytes:
    """Little-endian bytes, elements below a byte packed low bits first."""
    bits = SUB_BYTE_BITS.get(flat.dtype)
    if bits is None:
        return (flat if np.little_endian or flat.dtype.itemsize == 1 else flat.byteswap()).tobytes()
    one_each = np.unpackbits(flat.view(np.uint8)[:, None], axis=1, count=bits, bitorder="little")
    return np.packbits(one_each.ravel(), bitorder="little").tobytes()


def _unpack(raw: Tensor, dtype: DType, count: int) -> Tensor:
    bits = SUB_BYTE_BITS[dtype]
    if 8 % bits == 0:
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        codes = ((raw[:, None] >> shifts) & np.uint8(2**bits - 1)).ravel()[:count]
    else:
        stream = np.unpackbits(raw, bitorder="little")[: count * bits].reshape(count, bits)
        codes = np.packbits(stream, axis=1, bitorder="little").ravel()
    return _sign_extended(codes, dtype, bits).view(dtype)


def _sign_extended(codes: Tensor, dtype: DType, bits: int) -> Tensor:
    if not is_signed(dtype):
        return codes
    sign = np.uint8(1 << (bits - 1))
    return (codes ^ sign) - sign


def _from_field(field: Any, dtype: DType, count: int) -> Tensor:
    bits = SUB_BYTE_BITS.get(dtype, 8)
    per_entry = 2 if dtype.kind == "c" else 1
    expected = -(-count * bits // 8) if bits in (2, 4) else count * per_entry
    if len(field) != expected:
        raise ValueError(f"{count} elements of {name_of(dtype)} take {expected} entries, the data has {len(field)}")
    if dtype == STRING:
        return _strings(field)
    if dtype.kind == "c":
        return np.array(field, np.float32 if dtype.itemsize == 8 else np.float64).view(dtype)
    if dtype in SUB_BYTE_BITS:
        codes = np.array(field, np.int64).astype(np.uint8)
        return _unpack(codes, dtype, count) if bits in (2, 4) else (codes & np.uint8(63)).view(dtype)
    if dtype.kind in "iub" or dtype.itemsize >= 4:
        wide = np.array(field, np.uint64 if dtype.itemsize == 8 and dtype.kind == "u" else None)
        return wide.astype(dtype)
    # float16, bfloat16 and float8 stand as bit patterns
    return np.array(field, np.int64).astype(f"u{dtype.itemsize}").view(dtype)


def _strings(field: Iterable[bytes]) -> Tensor:
    texts = []
    for place, data in enumerate(field):
        try:
            texts.append(data.decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"string {place} is not UTF-8: {data[:20]!r} ({error.reason})") from None
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def _external_bytes(tensor: TensorProto, dtype: DType, count: int, files: Files) -> Tensor:
    if dtype == STRING:
        raise ValueError("strings cannot be stored as external data")
    bits = SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize)
    return files.read({entry.key: entry.value for entry in tensor.external_data}, (count * bits + 7) // 8)


def external_bytes(tensor: TensorProto, files: Files) -> Tensor:
    """The bytes of its external data. Raises ModelError where they are not there, or not as many as it takes."""
    try:
        return _external_bytes(tensor, dtype_of(tensor.data_type), math.prod(tensor.dims), files)
    except (ValueError, OSError) as error:
        raise ModelError(f'tensor "{tensor.name}": {error}') from error


def dense_from(sparse: SparseTensorProto, files: Files = NO_FILES) -> Tensor:
    """A sparse tensor with every element written out. Raises ModelError where it contradicts itself."""
    values = array_from(sparse.values, files)
    indices = array_from(sparse.indices, files)
    shape = tuple(sparse.dims)
    what = f'sparse tensor "{sparse.values.name}"'
    if any(size < 0 for size in shape):
        raise ModelError(f"{what}: dims {list(shape)} hold a negative size")
    count = len(values) if values.ndim == 1 else -1
    if indices.dtype != np.int64 or indices.shape not in ((count,), (count, len(shape))):
        raise ModelError(
            f"{what}: values {list(values.shape)} and indices {name_of(indices.dtype)}{list(indices.shape)} do not "
            f"fit dims {list(shape)}: expected int64 indices [NNZ] or [NNZ, {len(shape)}]"
        )
    bounds = (math.prod(shape),) if indices.ndim == 1 else shape
    table = indices.reshape(count, len(bounds))
    outside = (table < 0) | (table >= np.array([min(b, 2**63 - 1) for b in bounds], np.int64))
    if outside.any():
        row = int(np.argwhere(outside)[0, 0])
        raise ModelError(f"{what}: index {table[row].tolist()} is outside dims {list(shape)}")
    dense = _zeros(what, shape, values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(table.T)] = values
    dense.flags.writeable = False
    return dense


def _zeros(what: str, shape: tuple[int, ...], dtype: DType) -> Tensor:
    try:
        return np.full(shape, "", dtype) if dtype == STRING else np.zeros(shape, dtype)
    except (MemoryError, ValueError) as error:
        raise ModelError(f"{what}: dims {list(shape)} of {name_of(dtype)} do not fit in memory") from error


def sequence_from(sequence: SequenceProto) -> Sequence:
    """A SequenceProto's elements. Raises ModelError where they contradict their type."""
    readers: dict[int, tuple[str, Callable[[Any], Value]]] = {
        SequenceProto.TENSOR: ("tensor_values", array_from),
        SequenceProto.SPARSE_TENSOR: ("sparse_tensor_values", dense_from),
        SequenceProto.SEQUENCE: ("sequence_values", sequence_from),
        SequenceProto.MAP: ("map_values", map_from),
        SequenceProto.OPTIONAL: ("optional_values", optional_from),
    }
    if sequence.elem_type not in readers:
        if sequence.elem_type == SequenceProto.UNDEFINED:
            return Sequence()
        raise ModelError(f'sequence "{sequence.name}": element type {sequence.elem_type} is unknown')
    field, read = readers[sequence.elem_type]
    return Sequence([read(item) for item in getattr(sequence, field)])


def optional_from(optional: OptionalProto) -> Value:
    """What an OptionalProto holds, or an EmptyOptional."""
    readers: dict[int, tuple[str, Callable[[Any], Value]]] = {
        OptionalProto.TENSOR: ("tensor_value", array_from),
        OptionalProto.SPARSE_TENSOR: ("sparse_tensor_value", dense_from),
        OptionalProto.SEQUENCE: ("sequence_value", sequence_from),
        OptionalProto.MAP: ("map_value", map_from),
        OptionalProto.OPTIONAL: ("optional_value", optional_from),
    }
    if optional.elem_type not in readers:
        return EmptyOptional()
    field, read = readers[optional.elem_type]
    return read(getattr(optional, field)) if optional.HasField(field) else EmptyOptional()


def map_from(proto: MapProto) -> dict[Any, Any]:
    """A MapProto as a dict. Raises ModelError where keys and values are not as many."""
    if proto.key_type == TensorProto.STRING:
        keys = _strings(proto.string_keys).tolist()
    else:
        keys = list(proto.keys)
    values = sequence_from(proto.values)
    items: list[Any] = list(values)
    if len(items) == 1 and len(keys) != 1 and isinstance(items[0], np.ndarray):
        items = items[0].tolist()
    if len(keys) != len(items):
        raise ModelError(f'map "{proto.name}" has {len(keys)} keys and {len(items)} values')
    plain = (item.item() if isinstance(item, np.ndarray) and item.ndim == 0 else item for item in items)
    return dict(zip(keys, plain, strict=True))


def type_from(proto: TypeProto) -> ValueType | None:
    """The type a TypeProto declares; None where it declares none. Raises ModelError for unknown element types."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        shape = tuple(_dimension(d) for d in tensor.shape.dim) if tensor.HasField("shape") else None
        return TensorType(_dtype(tensor.elem_type), shape)
    if kind == "sequence_type":
        return SequenceType(type_from(proto.sequence_type.elem_type))
    if kind == "optional_type":
        return OptionalType(type_from(proto.optional_type.elem_type))
    if kind == "map_type":
        key = _dtype(proto.map_type.key_type)
        return MapType(key if key is not None else np.dtype(np.int64), type_from(proto.map_type.value_type))
    return None


def _dtype(element_type: int) -> DType | None:
    if element_type == TensorProto.UNDEFINED:
        return None
    if element_type not in BY_ELEMENT_TYPE:
        raise ModelError(f"a type declares the unknown element type {element_type}")
    return BY_ELEMENT_TYPE[element_type]


#: What exporters write for a size they do not know; it is no name.
UNKNOWN_SIZES = frozenset({"", "?", "-1", "None"})


def _dimension(dim: Any) -> Dimension:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return None if dim.dim_param in UNKNOWN_SIZES else dim.dim_param


def type_proto(value_type: ValueType | None) -> TypeProto:
    """The TypeProto of a type; what is unknown stays unset."""
    proto = TypeProto()
    match value_type:
        case TensorType(dtype, shape):
            proto.tensor_type.elem_type = ELEMENT_TYPES[dtype] if dtype is not None else TensorProto.UNDEFINED
            if shape is not None:
                proto.tensor_type.shape.SetInParent()
                for size in shape:
                    dim = proto.tensor_type.shape.dim.add()
                    if isinstance(size, int):
                        dim.dim_value = size
                    elif size:
                        dim.dim_param = size
        case SequenceType(element):
            proto.sequence_type.elem_type.CopyFrom(type_proto(element))
        case OptionalType(element):
            proto.optional_type.elem_type.CopyFrom(type_proto(element))
        case MapType(key, value):
            proto.map_type.key_type = ELEMENT_TYPES[key]
            proto.map_type.value_type.CopyFrom(type_proto(value))
    return proto

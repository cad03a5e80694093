"""Safetensors: the size of a header in 8 bytes, a header in JSON that tells of each tensor, then their bytes.

Element types that the format has no name for are kept as their codes, one to a byte, and complex128 as pairs of F64;
the header's metadata say under `onnxeval.types` what they are.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onnxeval.dtypes import (
    BFLOAT16,
    FLOAT4E2M1,
    FLOAT6E2M3,
    FLOAT6E3M2,
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    FLOAT8E8M0,
    NAMES,
    STRING,
    SUB_BYTE_BITS,
    DType,
    Tensor,
    name_of,
)
from onnxeval.errors import OutputError
from onnxeval.tensors import from_bytes
from onnxeval.values import Value, ValueType, describe

from .npy import refuse_stray_bits
from .source import Reading, Source
from .typetext import dtype_named
from .writing import Target, Typed

_DTYPES: dict[str, DType] = {
    "BOOL": np.dtype(bool),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype(np.uint16),
    "I16": np.dtype(np.int16),
    "F16": np.dtype(np.float16),
    "BF16": BFLOAT16,
    "U32": np.dtype(np.uint32),
    "I32": np.dtype(np.int32),
    "F32": np.dtype(np.float32),
    "U64": np.dtype(np.uint64),
    "I64": np.dtype(np.int64),
    "F64": np.dtype(np.float64),
    "C64": np.dtype(np.complex64),
    "F8_E4M3": FLOAT8E4M3FN,
    "F8_E4M3FNUZ": FLOAT8E4M3FNUZ,
    "F8_E5M2": FLOAT8E5M2,
    "F8_E5M2FNUZ": FLOAT8E5M2FNUZ,
    "F8_E8M0": FLOAT8E8M0,
    "F6_E2M3": FLOAT6E2M3,
    "F6_E3M2": FLOAT6E3M2,
    "F4": FLOAT4E2M1,
}
#: Types narrower than a byte are read, but written as codes: the format demands that they fill whole bytes.
_WRITTEN = {dtype: name for name, dtype in _DTYPES.items() if dtype not in SUB_BYTE_BITS}
_METADATA, _TYPES = "__metadata__", "onnxeval.types"
_LONGEST_HEADER = 100_000_000


class Safetensors(Source):
    """Tensors under names."""

    def __init__(self, path: Path, reading: Reading) -> None:
        super().__init__(str(path), reading)
        self._path = path
        with self.failures(), path.open("rb") as file:
            self._header, self._start = _header(file)
            metadata = self._header.pop(_METADATA, {})
            types = json.loads(metadata.get(_TYPES, "{}")) if isinstance(metadata, dict) else {}
            self._types = types if isinstance(types, dict) else {}
            _refuse_gaps(self._header, os.fstat(file.fileno()).st_size - self._start)

    def names(self) -> list[str]:
        return list(self._header)

    def value_of(self, name: str) -> str:
        return f"{self.label}:{name}"

    def _read(self, name: str, _wanted: ValueType | None) -> Value:
        dtype, shape, begin, end = self._header[name]
        with self._path.open("rb") as file:
            file.seek(self._start + begin)
            raw = np.fromfile(file, np.uint8, end - begin)
        array = from_bytes(raw, dtype, math.prod(shape)).reshape(shape)
        return array if name not in self._types else _as_type(array, dtype_named(self._types[name]))


def _header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header with (dtype, shape, begin, end) for each tensor, and where the tensors start."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _LONGEST_HEADER):
        raise ValueError(f"not a safetensors file, or a truncated one: a header of {length:,} bytes in {size:,}")
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("the header is no JSON object")
    return {name: entry if name == _METADATA else _entry(name, entry) for name, entry in header.items()}, 8 + length


def _entry(name: str, entry: Any) -> tuple[DType, list[int], int, int]:
    dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry, dict) and isinstance(entry.get("dtype"), str) else None
    if dtype is None:
        raise ValueError(f"{name}: the dtype of {json.dumps(entry)} is unknown")
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"{name}: no shape and offsets in {json.dumps(entry)}")
    begin, end = offsets
    expected = -(-math.prod(shape) * SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize) // 8)
    if end - begin != expected:
        raise ValueError(
            f"{name}: {name_of(dtype)}{shape} takes {expected:,} bytes, the header gives it {end - begin:,}"
        )
    return dtype, shape, begin, end


def _are_sizes(sizes: Any) -> bool:
    return isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)


def _refuse_gaps(header: Mapping[str, Any], size: int) -> None:
    """The tensors have to fill the rest of the file, each byte once."""
    reached = 0
    for name, (_, _, begin, end) in sorted(header.items(), key=lambda item: item[1][2:]):
        if begin != reached:
            raise ValueError(f"{name}: starts at byte {begin:,} of the data, {reached:,} is where the last one ended")
        reached = end
    if reached != size:
        more = "more data follows" if reached < size else "the file is truncated"
        raise ValueError(f"{more}: the tensors take {reached:,} bytes, {size:,} are there")


def _as_type(array: Tensor, dtype: DType) -> Tensor:
    """The elements that were kept as codes, or as pairs of numbers."""
    if dtype.kind == "c" and array.dtype == np.empty(0, dtype).real.dtype and array.shape[-1:] == (2,):
        return array.view(dtype).reshape(array.shape[:-1])
    if array.dtype != np.uint8 or dtype not in SUB_BYTE_BITS:
        raise ValueError(f"{name_of(array.dtype)} elements are no codes of {name_of(dtype)}")
    refuse_stray_bits(array, dtype)
    return array.view(dtype)


class SafetensorsTarget(Target):
    """Every output under its name, those of the widest elements first, so that each is aligned."""

    def write(self, file: BinaryIO, values: Mapping[str, Typed], notes: list[str]) -> None:
        types: dict[str, str] = {}
        arrays = {name: _storable(self.path, name, value, types, notes) for name, (value, _) in values.items()}
        order = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
        offsets, reached = {}, 0
        for name in order:
            offsets[name] = [reached, reached := reached + arrays[name].nbytes]
        header: dict[str, Any] = {_METADATA: {_TYPES: json.dumps(types)}} if types else {}
        for name, array in arrays.items():
            entry = {"dtype": _WRITTEN[array.dtype], "shape": list(array.shape), "data_offsets": offsets[name]}
            header[name] = entry
        text = json.dumps(header, ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            array = arrays[name]
            file.write((array if np.little_endian else array.byteswap()).tobytes())


def _storable(path: Path, name: str, value: Value, types: dict[str, str], notes: list[str]) -> Tensor:
    if not isinstance(value, np.ndarray) or value.dtype == STRING or value.dtype not in NAMES or name == _METADATA:
        raise OutputError(
            f"{path}: {name} is {describe(value)}, a .safetensors file holds tensors of numbers",
            hint="save to a .json file or a folder instead",
        )
    if value.dtype in _WRITTEN:
        return value
    types[name] = name_of(value.dtype)
    if value.dtype.kind == "c":
        how, stored = "pairs of F64", np.stack([value.real, value.imag], axis=-1)
    else:
        how, stored = "its codes in U8", np.asarray(value, order="C").view(np.uint8)
    notes.append(f"{name} is {types[name]}, which .safetensors cannot name: saved as {how} (onnxeval reads them back)")
    return stored

"""NumPy's formats: `.npy` holds one array, `.npz` arrays under names. Neither knows ONNX's narrow types or strings."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from onnxeval.dtypes import NAMES, STRING, SUB_BYTE_BITS, DType, Tensor, integer_range, is_signed, name_of
from onnxeval.values import OptionalType, TensorType, Value, ValueType

from .source import Reading, Source

#: Opens the bytes of a file, anew for each value.
Opener = Callable[[], BinaryIO]


class NpyFile(Source):
    """One array in NumPy's own format."""

    def __init__(self, label: str, reading: Reading, open_file: Opener) -> None:
        super().__init__(label, reading)
        self._open = open_file

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        with self._open() as file:
            return as_declared(read_array(file), wanted)


class NpzFile(Source):
    """Arrays under names in a zip archive."""

    def __init__(self, label: str, reading: Reading, open_file: Opener) -> None:
        super().__init__(label, reading)
        self._open = open_file

    def names(self) -> list[str]:
        with self.failures(), self._open() as file, zipfile.ZipFile(file) as archive:
            return [member.removesuffix(".npy") for member in archive.namelist()]

    def value_of(self, name: str) -> str:
        return f"{self.label}:{name}"

    def _read(self, name: str, wanted: ValueType | None) -> Value:
        with self._open() as file, zipfile.ZipFile(file) as archive:
            member = f"{name}.npy"
            if member not in archive.namelist():
                raise ValueError("not an array")
            with archive.open(member) as data:
                return as_declared(read_array(data), wanted)


def read_array(file: Any) -> Tensor:
    """An array in NumPy's format, never a pickled one. Raises ValueError where it is broken or something follows it."""
    try:
        array = np.lib.format.read_array(file, allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise ValueError("holds pickled objects, which are never read; save text as x.astype(np.str_)") from error
    if file.read(1):
        raise ValueError("more data follows the array")
    return array


def as_declared(array: Tensor, declared: ValueType | None) -> Tensor:
    """What a file could not say, put back from the declared type; no number changes.

    Text becomes an object array of ``str``, raw bytes (bfloat16, float8, int4 ...) get the declared dtype, and the byte
    order becomes this machine's. Raises ValueError where the elements are of no type that ONNX knows.
    """
    if array.dtype.kind in "SU":
        return _as_text(array)
    if array.dtype.kind == "V" and array.dtype.names is None:
        return _as_raw(array, declared)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype not in NAMES:
        raise ValueError(f"holds {array.dtype}, which is no ONNX element type")
    return array


def _as_text(array: Tensor) -> Tensor:
    texts = array.astype(object)
    if array.dtype.kind == "S":
        decoded: Any = np.frompyfunc(bytes.decode, 1, 1)(texts)
        return decoded if isinstance(decoded, np.ndarray) else np.array(decoded, object)
    return texts


def _as_raw(array: Tensor, declared: ValueType | None) -> Tensor:
    if isinstance(declared, OptionalType):
        declared = declared.element
    dtype: DType | None = declared.dtype if isinstance(declared, TensorType) else None
    size = array.dtype.itemsize
    if dtype is None or dtype == STRING or dtype.itemsize != size:
        wanted = name_of(dtype) if dtype is not None else "nothing"
        raise ValueError(f"holds raw elements of {size} bytes, the model declares {wanted}")
    codes = np.ascontiguousarray(array)
    if dtype in SUB_BYTE_BITS:
        _refuse_stray_bits(codes.view(np.uint8), dtype)
    return codes.view(dtype)


def _refuse_stray_bits(codes: Tensor, dtype: DType) -> None:
    """A type narrower than a byte is stored one a byte: zeros must fill the rest, or the sign of a negative integer."""
    stray = codes >= 1 << SUB_BYTE_BITS[dtype]
    if is_signed(dtype):
        stray &= codes.view(np.int8) < integer_range(dtype)[0]
        stray |= codes.view(np.int8) >= 1 << SUB_BYTE_BITS[dtype]
    if stray.any():
        raise ValueError(f"holds the byte {codes[stray][0]}, which is no {name_of(dtype)}")

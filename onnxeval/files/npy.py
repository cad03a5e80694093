"""NumPy's formats: `.npy` holds one array, `.npz` arrays under names. Neither knows ONNX's narrow types or strings.

Elements of a type that NumPy has no name for are written as a structure whose only field is called as the type:
``[("bfloat16", "<u2")]``. Others are read too: raw bytes, as NumPy writes arrays of ml_dtypes, take the declared type.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onnxeval.dtypes import (
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    NAMES,
    STRING,
    SUB_BYTE_BITS,
    DType,
    Tensor,
    integer_range,
    is_signed,
    name_of,
)
from onnxeval.errors import OutputError
from onnxeval.values import OptionalType, TensorType, Value, ValueType, describe

from .source import Opener, Reading, Source, opener
from .typetext import DTYPES
from .writing import Target, Typed


class NpyFile(Source):
    """One array in NumPy's own format."""

    def __init__(self, place: Path | str, reading: Reading, open_file: Opener | None = None) -> None:
        super().__init__(str(place), reading)
        self._open = open_file or opener(place)

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        with self._open() as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            return as_declared(read_array(file, size), wanted)


class NpzFile(Source):
    """Arrays under names in a zip archive.

    One of the model zoo's first years holds only `inputs` and `outputs`: arrays with a row for each of the model's.
    """

    def __init__(self, place: Path | str, reading: Reading, open_file: Opener | None = None) -> None:
        super().__init__(str(place), reading)
        self._open = open_file or opener(place)
        with self.failures(), self._open() as file, zipfile.ZipFile(file) as archive:
            self._members = [member.removesuffix(".npy") for member in archive.namelist()]
        named = set(self._members)
        self._numbered = f"{reading.stem}s" in named <= {"inputs", "outputs"} and not named & set(reading.names)

    def names(self) -> list[str]:
        return list(self.reading.names[: len(self._rows())]) if self._numbered else self._members

    def value_of(self, name: str) -> str:
        return "" if self._numbered else f"{self.label}:{name}"

    def member(self, name: str) -> Source:
        return NpzMember(self, name, self._members)

    def _read(self, name: str, wanted: ValueType | None) -> Value:
        array = self._rows()[self.reading.names.index(name)] if self._numbered else self.array(name)
        return as_declared(array, wanted)

    def _rows(self) -> Tensor:
        with self.failures():
            rows = self.array(f"{self.reading.stem}s")
            if not rows.ndim or len(rows) > len(self.reading.names):
                raise ValueError(
                    f"{self.reading.stem}s{list(rows.shape)} are no rows for {len(self.reading.names)} names"
                )
            return rows

    def array(self, name: str) -> Tensor:
        """The array under a name as it is."""
        with self._open() as file, zipfile.ZipFile(file) as archive:
            member = f"{name}.npy"
            if member not in archive.namelist():
                raise ValueError("not an array")
            info = archive.getinfo(member)
            refuse_bomb(info.compress_size, info.file_size)
            with archive.open(member) as data:
                return read_array(data, info.file_size)


class NpzMember(Source):
    """The array under one name."""

    def __init__(self, archive: NpzFile, name: str, members: list[str]) -> None:
        super().__init__(f"{archive.label}:{name}", archive.reading)
        if name not in members:
            raise archive.error(f"there is no {name!r} in it", f"it holds: {', '.join(members) or 'nothing'}")
        self._archive, self._name = archive, name

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        return as_declared(self._archive.array(self._name), wanted)


_LARGE, _DENSE = 2**30, 100


def refuse_bomb(compressed: int, expanded: int) -> None:
    """Raise ValueError for few bytes that would become very many: nobody's tensors compress like that."""
    if expanded > _LARGE and expanded > _DENSE * compressed:
        raise ValueError(f"refused: its {compressed:,} bytes expand to {expanded:,}, as those of a decompression bomb")


#: How NumPy writes arrays of float8_e5m2, and cannot read them; as raw bytes it can.
_BAD_DESCR, _RAW_DESCR = b"{'descr': '<f1'", b"{'descr': '|V1'"
_HEADER = 128


def read_array(file: Any, size: int) -> Tensor:
    """The array in a file of so many bytes, never a pickled one.

    Raises ValueError where it is broken or something follows it, before memory is taken for what is not there.
    """
    if _BAD_DESCR in file.read(_HEADER):
        file.seek(0)
        file = io.BytesIO(file.read().replace(_BAD_DESCR, _RAW_DESCR, 1))
    file.seek(0)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("holds pickled objects, which are never read; save text as x.astype(np.str_)")
    needed, left = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed != left:
        more = "more data follows the array" if needed < left else "the file is truncated"
        raise ValueError(f"{more}: its elements take {needed:,} bytes, {left:,} are there")
    file.seek(0)
    array: Tensor = np.lib.format.read_array(file, allow_pickle=False)
    return array


def as_declared(array: Tensor, declared: ValueType | None) -> Tensor:
    """What a file could not say, put back from the declared type; no number changes.

    Text becomes an object array of ``str``, raw bytes (bfloat16, float8, int4 ...) get the declared dtype, and the byte
    order becomes this machine's. Raises ValueError where the elements are of no type that ONNX knows.
    """
    if array.dtype.kind in "SU":
        return _as_text(array)
    if array.dtype.kind == "V":
        return _as_named(array) if array.dtype.names is not None else _as_raw(array, declared)
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


#: What older onnx packages called the only field of an element that NumPy has no type for.
_OLD_NAMES = {
    "e4m3fn": FLOAT8E4M3FN,
    "e4m3fnuz": FLOAT8E4M3FNUZ,
    "e5m2": FLOAT8E5M2,
    "e5m2fnuz": FLOAT8E5M2FNUZ,
}


def _as_named(array: Tensor) -> Tensor:
    """The elements of a structured array whose only field is called as their type, as `storable` writes it."""
    fields = array.dtype.names or ()
    dtype = {**DTYPES, **_OLD_NAMES}.get(fields[0]) if len(fields) == 1 else None
    if dtype is None or dtype.isbuiltin != 2 or dtype.itemsize != array.dtype.itemsize:
        raise ValueError(f"holds {array.dtype}, which is no ONNX element type")
    codes = np.asarray(array[fields[0]], order="C")
    return _coded(codes.astype(codes.dtype.newbyteorder("="), copy=False), dtype)


def _as_raw(array: Tensor, declared: ValueType | None) -> Tensor:
    if isinstance(declared, OptionalType):
        declared = declared.element
    dtype: DType | None = declared.dtype if isinstance(declared, TensorType) else None
    size = array.dtype.itemsize
    if dtype is None or dtype == STRING or dtype.itemsize != size:
        wanted = name_of(dtype) if dtype is not None else "nothing"
        raise ValueError(f"holds raw elements of {size} bytes without a type, the model declares {wanted}")
    return _coded(np.asarray(array, order="C"), dtype)


def _coded(codes: Tensor, dtype: DType) -> Tensor:
    if dtype in SUB_BYTE_BITS:
        refuse_stray_bits(codes.view(np.uint8), dtype)
    return codes.view(dtype)


def refuse_stray_bits(codes: Tensor, dtype: DType) -> None:
    """A type narrower than a byte is stored one a byte: zeros must fill the rest, or the sign of a negative integer."""
    stray = codes >= 1 << SUB_BYTE_BITS[dtype]
    if is_signed(dtype):
        stray &= codes.view(np.int8) < integer_range(dtype)[0]
        stray |= codes.view(np.int8) >= 1 << SUB_BYTE_BITS[dtype]
    if stray.any():
        raise ValueError(f"holds the byte {codes[stray][0]}, which is no {name_of(dtype)}")


class Npy(Target):
    """The only output, as one array."""

    what = "a .npy file"

    def write(self, file: BinaryIO, values: Mapping[str, Typed], notes: list[str]) -> None:
        name, (value, _) = self.only(values)
        array = storable(self.path, name, value, notes)
        np.lib.format.write_array(file, array, allow_pickle=False)


class Npz(Target):
    """Every output under its name."""

    def write(self, file: BinaryIO, values: Mapping[str, Typed], notes: list[str]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for name, (value, _) in values.items():
                array = storable(self.path, name, value, notes)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


def is_lost(array: Tensor) -> bool:
    """Whether NumPy's format would lose the type or a part of the elements."""
    if array.dtype == STRING:
        return any(text.endswith("\0") for text in array.flat)
    return array.dtype.isbuiltin == 2


def storable(path: Path, name: str, value: Value, notes: list[str]) -> Tensor:
    """What a .npy file or an entry of a .npz file stores. Raises OutputError where that would lose something."""
    hint = "save to a .json file or a folder instead"
    if not isinstance(value, np.ndarray):
        raise OutputError(f"{path}: {name} is {describe(value)}, NumPy's files hold only arrays", hint=hint)
    if value.dtype == STRING:
        if is_lost(value):
            raise OutputError(f"{path}: {name} holds strings that end in NUL, NumPy's files would lose that", hint=hint)
        return value.astype(np.str_)
    if not is_lost(value):
        return value
    dtype = value.dtype
    notes.append(
        f"{name} is {name_of(dtype)}, a type that NumPy's files cannot name: saved as elements with a field "
        f"{name_of(dtype)!r} (onnxeval reads them back)"
    )
    codes = np.asarray(value, order="C").view(f"u{dtype.itemsize}")
    return codes.astype(codes.dtype.newbyteorder("<"), copy=False).view([(name_of(dtype), f"<u{dtype.itemsize}")])

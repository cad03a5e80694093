"""Bytes of elements and nothing else: the type and the shape are declared, or typed behind the name of the file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from onnxeval.dtypes import STRING, SUB_BYTE_BITS
from onnxeval.errors import OutputError
from onnxeval.tensors import from_bytes, packed
from onnxeval.values import OptionalType, TensorType, Value, ValueType, describe

from .source import Reading, Source
from .typetext import parse_tensor_type
from .writing import Target, Typed


class Raw(Source):
    """Little-endian elements in the order of the last axis, those below a byte packed low bits first."""

    def __init__(self, path: Path, reading: Reading, type_text: str = "") -> None:
        super().__init__(f"{path}:{type_text}" if type_text else str(path), reading)
        self._path = path
        with self.failures():
            self._typed = parse_tensor_type(type_text) if type_text else TensorType(None)

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        declared = wanted.element if isinstance(wanted, OptionalType) else wanted
        known = declared if isinstance(declared, TensorType) else TensorType(None)
        dtype = self._typed.dtype if self._typed.dtype is not None else known.dtype
        shape = self._typed.shape if self._typed.shape is not None else known.shape
        if dtype is None:
            raise ValueError(f"raw bytes have no type: name it as in {self._path}:float32[2,3]")
        if dtype == STRING:
            raise ValueError("raw bytes hold no strings")
        raw = np.fromfile(self._path, np.uint8)
        bits = SUB_BYTE_BITS.get(dtype, 8 * dtype.itemsize)
        if shape is None:
            shape = (None,)
        sizes = [self.reading.sizes.get(size) if isinstance(size, str) else size for size in shape]
        unknown = [axis for axis, size in enumerate(sizes) if size is None]
        known_count = math.prod(size for size in sizes if size is not None)
        if len(unknown) > 1:
            raise ValueError(f"raw bytes have no shape: name it as in {self._path}:float32[2,3]")
        if unknown:
            sizes[unknown[0]] = 8 * raw.size // bits // known_count if known_count else 0
        whole = [size or 0 for size in sizes]
        return from_bytes(raw, dtype, math.prod(whole)).reshape(whole)


class RawTarget(Target):
    """The only output, its elements alone."""

    what = "a file of raw bytes"

    def write(self, file: BinaryIO, values: Mapping[str, Typed], notes: list[str]) -> None:
        name, (value, _) = self.only(values)
        if not isinstance(value, np.ndarray) or value.dtype == STRING:
            raise OutputError(
                f"{self.path}: {name} is {describe(value)}, raw bytes hold numbers alone",
                hint="save to a .json file or a folder instead",
            )
        file.write(packed(np.asarray(value, order="C").ravel()))
        notes.append(f"{name}: raw bytes tell no type; read them as {self.path}:{TensorType(value.dtype, value.shape)}")

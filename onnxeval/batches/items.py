"""Where the items of an input come from: the rows of a file that is never read whole, many files, or an array.

Each is small enough to be sent to another process, which reads its own part.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.errors import InputError
from onnxeval.files.npy import as_declared
from onnxeval.files.opening import open_file
from onnxeval.files.source import Reading
from onnxeval.values import Value, ValueType


class Items(ABC):
    """The items for one input."""

    @property
    @abstractmethod
    def count(self) -> int: ...

    @abstractmethod
    def read(self, start: int, stop: int) -> list[Value]:
        """The items from ``start`` on, as many as there are before ``stop``. Raises InputError."""

    @property
    @abstractmethod
    def bytes_each(self) -> int:
        """About how much memory one takes."""

    @property
    @abstractmethod
    def identity(self) -> Any:
        """What tells these items from others: equal where they are the same."""


@dataclass(frozen=True)
class Rows(Items):
    """The rows of a .npy file. With ``kept`` each keeps its leading axis, of size 1."""

    path: str
    shape: tuple[int, ...]
    dtype: Any
    offset: int
    wanted: ValueType | None
    kept: bool = False

    @property
    def count(self) -> int:
        return self.shape[0]

    @property
    def bytes_each(self) -> int:
        return math.prod(self.shape[1:]) * int(self.dtype.itemsize)

    @property
    def identity(self) -> Any:
        about = Path(self.path).stat()
        return [str(Path(self.path).absolute()), about.st_size, about.st_mtime_ns, list(self.shape), str(self.dtype)]

    def read(self, start: int, stop: int) -> list[Value]:
        """A window of the file is mapped for as long as this takes: the pages of a map of all of it would add up."""
        stop = min(stop, self.count)
        size = self.bytes_each
        try:
            if size and stop > start:
                shape = (stop - start, *self.shape[1:])
                window = np.memmap(self.path, self.dtype, "r", self.offset + start * size, shape)
                rows = np.array(window)
                del window
            else:
                rows = np.empty((stop - start, *self.shape[1:]), self.dtype)
            whole = as_declared(rows, self.wanted)
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path}: {error}") from error
        return [row[None] if self.kept else np.asarray(row) for row in whole]


@dataclass(frozen=True)
class Files(Items):
    """One file for each item."""

    paths: tuple[str, ...]
    wanted: ValueType | None
    reading: Reading = field(default_factory=Reading)

    @property
    def count(self) -> int:
        return len(self.paths)

    @property
    def bytes_each(self) -> int:
        return max((Path(path).stat().st_size for path in self.paths[:8]), default=1)

    @property
    def identity(self) -> Any:
        return [[str(Path(p).absolute()), Path(p).stat().st_size, Path(p).stat().st_mtime_ns] for p in self.paths]

    def read(self, start: int, stop: int) -> list[Value]:
        return [open_file(Path(path), self.reading).read("", self.wanted) for path in self.paths[start:stop]]


@dataclass(frozen=True, eq=False)
class Held(Items):
    """The rows of an array in memory."""

    array: Tensor
    digest: str
    kept: bool = False

    @property
    def count(self) -> int:
        return len(self.array)

    @property
    def bytes_each(self) -> int:
        return int(self.array[:1].nbytes)

    @property
    def identity(self) -> Any:
        return self.digest

    def read(self, start: int, stop: int) -> list[Value]:
        return [row[None] if self.kept else np.asarray(row) for row in self.array[start:stop]]


def rows_of(path: str, wanted: ValueType | None) -> Rows:
    """The rows of a .npy file, of which the header alone is read. Raises InputError where it is broken."""
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = header(file)
            offset, size = file.tell(), file.seek(0, 2)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if dtype.hasobject:
        raise InputError(f"{path}: holds pickled objects, which are never read")
    if is_fortran and len(shape) > 1:
        raise InputError(
            f"{path}: its rows lie scattered, it is in Fortran's order", hint="save np.ascontiguousarray(x)"
        )
    needed = math.prod(shape) * dtype.itemsize
    if size - offset != needed:
        raise InputError(f"{path}: its elements take {needed:,} bytes, {size - offset:,} are there")
    return Rows(path, shape, dtype, offset, wanted)

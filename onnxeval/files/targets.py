"""Results as files: written under another name first, so that each is there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onnxeval.dtypes import STRING, Tensor, name_of
from onnxeval.errors import OutputError
from onnxeval.values import Value, ValueType, describe

from .filenames import file_stem

#: A value and the type that the model declares for it.
Typed = tuple[Value, ValueType | None]


class Target(ABC):
    """A place to save to. Making one finds out what is wrong with the place before a model runs for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            raise OutputError(f"{path} is a folder", hint=f"write {path}/ to save a file for each output in it")
        if not path.parent.is_dir():
            raise OutputError(f"{path}: there is no folder {path.parent}")

    def save(self, values: Mapping[str, Typed]) -> list[str]:
        """Write the values; notes for the user on how. Raises OutputError and leaves nothing behind then."""
        notes: list[str] = []
        with whole_file(self.path) as partial, partial.open("wb") as file:
            self._write(file, values, notes)
        return notes

    @abstractmethod
    def _write(self, file: Any, values: Mapping[str, Typed], notes: list[str]) -> None: ...


class Npy(Target):
    """The only output, as one array."""

    def _write(self, file: Any, values: Mapping[str, Typed], notes: list[str]) -> None:
        if len(values) != 1:
            raise OutputError(
                f"{self.path}: a .npy file holds one array, there are {len(values)} outputs: {', '.join(values)}",
                hint="choose one with --output, or save to a .npz file or a folder",
            )
        for name, (value, _) in values.items():
            np.lib.format.write_array(file, _storable(self.path, name, value, notes), allow_pickle=False)


class Npz(Target):
    """Every output under its name."""

    def _write(self, file: Any, values: Mapping[str, Typed], notes: list[str]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for name, (value, _) in values.items():
                array = _storable(self.path, name, value, notes)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


class Folder(Target):
    """A file for each output: `.npy`, or `.pb` for what that cannot hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path} is a file, not a folder")

    def save(self, values: Mapping[str, Typed]) -> list[str]:
        notes: list[str] = []
        with _failures(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(dir=self.path.parent, prefix=".onnxeval-"))
            try:
                for name, (value, value_type) in values.items():
                    self._write_one(partial, name, value, value_type, notes)
                self._move(partial)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        return notes

    def _write(self, file: Any, values: Mapping[str, Typed], notes: list[str]) -> None:
        raise NotImplementedError

    def _write_one(self, folder: Path, name: str, value: Value, value_type: ValueType | None, notes: list[str]) -> None:
        stem = folder / file_stem(name)
        if isinstance(value, np.ndarray) and not _lost(value):
            with Path(f"{stem}.npy").open("xb") as file:
                np.lib.format.write_array(file, _as_numpy(value), allow_pickle=False)
            return
        from onnxeval.files.protobuf import message_of

        Path(f"{stem}.pb").write_bytes(message_of(value, name, value_type).SerializeToString())
        notes.append(f"{name} is {describe(value)}, which .npy cannot hold: it is saved as {file_stem(name)}.pb")

    def _move(self, partial: Path) -> None:
        if not self.path.exists():
            partial.chmod(0o777 & ~_umask())
            partial.rename(self.path)
            return
        for file in sorted(partial.iterdir()):
            for other in (self.path / f"{file.stem}{suffix}" for suffix in (".npy", ".pb") if suffix != file.suffix):
                other.unlink(missing_ok=True)  # of an earlier run: one name, one value
            file.replace(self.path / file.name)


#: Suffix -> what writes such a file. A new format is a line here.
_FORMATS: dict[str, Callable[[Path], Target]] = {".npy": Npy, ".npz": Npz}


def open_target(text: str) -> Target:
    """The place that `--save` names: the suffix decides, without one it is a folder."""
    if not text:
        raise OutputError("the path to save to is empty", hint="./ is this folder")
    path = Path(text)
    suffix = path.suffix.lower()
    with _failures(path):
        if not suffix or text.endswith(("/", os.sep)) or (path.is_dir() and suffix not in _FORMATS):
            return Folder(path)
        if suffix not in _FORMATS:
            raise OutputError(
                f"{text}: files of suffix {suffix!r} are not written",
                hint=f"known: {' '.join(_FORMATS)}; {text}/ saves a file for each output in a folder",
            )
        return _FORMATS[suffix](path)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its place when all went well, and is gone otherwise."""
    with _failures(path):
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".onnxeval-")
        os.close(handle)
        try:
            yield Path(partial)
            os.chmod(partial, 0o666 & ~_umask())
            os.replace(partial, path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise


@contextmanager
def _failures(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise OutputError(f"cannot write {path}: {reason}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _lost(array: Tensor) -> bool:
    """Whether NumPy's format would lose the type or a part of the elements."""
    if array.dtype == STRING:
        return any(text.endswith("\0") for text in array.flat)
    return array.dtype.isbuiltin != 1


def _as_numpy(array: Tensor) -> Tensor:
    return array.astype(np.str_) if array.dtype == STRING else array


def _storable(path: Path, name: str, value: Value, notes: list[str]) -> Tensor:
    """What a .npy file or an entry of a .npz file stores. Raises OutputError where that would lose something."""
    hint = "save to a folder instead: there it becomes a .pb file"
    if not isinstance(value, np.ndarray):
        raise OutputError(f"{path}: {name} is {describe(value)}, NumPy's files hold only arrays", hint=hint)
    if not _lost(value):
        return _as_numpy(value)
    if value.dtype == STRING:
        raise OutputError(f"{path}: {name} holds strings that end in NUL, NumPy's files would lose that", hint=hint)
    notes.append(
        f"{name} is {name_of(value.dtype)}, a type that NumPy's files cannot name: saved as raw bytes "
        "(a model that declares the type reads them back)"
    )
    return value.view(f"V{value.dtype.itemsize}")

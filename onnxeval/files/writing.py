"""What every place that values are saved to has in common: each file is there whole or not at all."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from onnxeval.errors import OutputError
from onnxeval.values import Value, ValueType

#: A value and the type that the model declares for it.
Typed = tuple[Value, ValueType | None]


class Target(ABC):
    """A place to save to. Making one finds out what is wrong with the place before a model runs for it."""

    #: What the format calls a file of it, with its article: "a .npy file".
    what = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        with write_failures(path):
            if path.is_dir():
                raise OutputError(f"{path} is a folder", hint=f"write {path}/ to save a file for each output in it")
            if not path.parent.is_dir():
                raise OutputError(f"{path}: there is no folder {path.parent}")

    def save(self, values: Mapping[str, Typed]) -> list[str]:
        """Write the values; notes for the user on how. Raises OutputError and leaves nothing behind then."""
        notes: list[str] = []
        with whole_file(self.path) as partial, partial.open("wb") as file:
            self.write(file, values, notes)
        return notes

    @abstractmethod
    def write(self, file: BinaryIO, values: Mapping[str, Typed], notes: list[str]) -> None:
        """Write the values to an open file. Raises OutputError where the format cannot hold one."""

    def only(self, values: Mapping[str, Typed]) -> tuple[str, Typed]:
        """The one value of a format that holds no more. Raises OutputError where there are others."""
        if len(values) != 1:
            raise OutputError(
                f"{self.path}: {self.what} holds one value, there are {len(values)} outputs: {', '.join(values)}",
                hint="choose one with --output, or save to a .npz file or a folder",
            )
        return next(iter(values.items()))


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its place when all went well, and is gone otherwise.

    Of a device or a pipe nothing takes the place: what was written goes into it.
    """
    import tempfile

    with write_failures(path):
        is_stream = os.path.exists(path) and not os.path.isfile(path)
        path = path if is_stream else Path(os.path.realpath(path))  # /dev/stdout may be a link to a file
        handle, partial = tempfile.mkstemp(dir=None if is_stream else path.parent, prefix=".onnxeval-")
        os.close(handle)
        try:
            yield Path(partial)
            if is_stream:
                _pour(partial, path)
            else:
                os.chmod(partial, 0o666 & ~umask())
                os.replace(partial, path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise


def _pour(partial: str, stream: Path) -> None:
    import shutil

    with open(partial, "rb") as file, stream.open("wb") as out:
        shutil.copyfileobj(file, out)
    os.unlink(partial)


@contextmanager
def write_failures(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise OutputError(f"cannot write {path}: {reason}") from error


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

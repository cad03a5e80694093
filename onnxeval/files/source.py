"""What every place that values are read from has in common.

A `Source` holds one value, or several under names; each is read against the type that is wanted of it. Whatever is
wrong with a file is an InputError that names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from onnxeval.errors import InputError, OnnxEvalError
from onnxeval.values import Value, ValueType


class PictureForm(NamedTuple):
    """What becomes of a picture's bytes: (byte · ``scale`` - ``mean``) / ``std``, for each channel.

    ``layout`` names the axes, letters of NCHW; "" lets the declared shape decide. ``resize`` is a height and a width,
    or True for those that the model declares. ``color`` is the mode to convert to: L, RGB, BGR, RGBA.
    """

    layout: str = ""
    scale: float | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    resize: tuple[int, int] | bool = False
    color: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read what neither a file nor the wanted type decides.

    ``cast`` allows elements to change their type, ``can_cast`` says that the user may ask for it; ``seed`` is what
    generators start from, ``sizes`` are those of symbolic dimensions; ``picture`` is what becomes of pictures.
    ``names`` are those that values may have, in the order in which files are numbered: `STEM_0.pb` is the first.
    ``notes`` gathers what the user should hear of.
    """

    cast: bool = False
    can_cast: bool = False
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    picture: PictureForm = field(default_factory=PictureForm)
    names: Sequence[str] = ()
    stem: str = "input"
    notes: list[str] = field(default_factory=list)


#: Opens the bytes of a file, anew for each value.
Opener = Callable[[], BinaryIO]


def opener(place: Path | str) -> Opener:
    """What opens the file at that place."""
    return lambda: open(place, "rb")


class Source(ABC):
    """Something that values are read from; ``label`` is what messages call it."""

    def __init__(self, label: str, reading: Reading) -> None:
        self.label = label
        self.reading = reading

    def names(self) -> list[str] | None:
        """The names of the values inside; None where it holds one value without a name."""
        return None

    def value_of(self, _name: str) -> str:
        """The VALUE that means the one under ``name``, "" where there is none."""
        return ""

    def member(self, name: str) -> Source:
        """One of the values inside as a source of its own. Raises InputError where there is no such value."""
        return Member(self, name)

    @abstractmethod
    def _read(self, name: str, wanted: ValueType | None) -> Value:
        """The value as the format holds it, under ``name`` (any, where there are no names)."""

    def read(self, name: str, wanted: ValueType | None) -> Value:
        """The value under ``name`` (any, where there are no names) as the wanted type.

        Raises InputError where it cannot be read, or is of another type and no cast is allowed.
        """
        from .matching import matched

        with np.errstate(all="ignore"), self.failures(name if self.names() is not None else ""):
            return matched(self._read(name, wanted), wanted, self.reading, self.label)

    def error(self, reason: object, hint: str = "") -> InputError:
        return InputError(f"{self.label}: {reason}", hint=hint)

    @contextmanager
    def failures(self, name: str = "") -> Iterator[None]:
        """Whatever a broken file makes its reader raise becomes an InputError that names it."""
        try:
            yield
        except HintedError as error:
            raise self.error(f"{name}: {error}" if name else error, error.hint) from None
        except OnnxEvalError:
            raise
        except Exception as error:  # NumPy, zipfile, zlib, json and protobuf raise some twelve kinds for broken files
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise self.error(f"{name}: {reason}" if name else reason) from error


class HintedError(ValueError):
    """What is read is not what is wanted; ``hint`` says which option would make it so."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Member(Source):
    """One of the values of another source."""

    def __init__(self, source: Source, name: str) -> None:
        super().__init__(f"{source.label}:{name}", source.reading)
        names = source.names()
        if names is None:
            raise source.error(f"there is no {name!r} in it: it holds one value, without a name")
        if name not in names:
            raise source.error(f"there is no {name!r} in it", f"it holds: {', '.join(names) or 'nothing'}")
        self._source, self._name = source, name

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        return self._source.read(self._name, wanted)

"""Pictures as tensors: read with Pillow (extra `image`), resized and converted only when asked; tensors as pictures."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, comparable, is_float, name_of
from onnxeval.errors import MissingExtra, OutputError
from onnxeval.ops._cast import convert
from onnxeval.values import OptionalType, TensorType, Value, ValueType, describe, shape_text

from .source import HintedError, Reading, Source
from .writing import Target, Typed

_CHANNELS = (1, 3, 4)
_MOST_PIXELS = 89_478_485  # what Pillow warns at: a gigabyte as float32 with three channels
_COLORS = {"L": "L", "GRAY": "L", "RGB": "RGB", "BGR": "RGB", "RGBA": "RGBA"}
#: Pillow's modes whose channels need no conversion.
_PLAIN_MODES = frozenset({"L", "RGB", "RGBA", "I;16", "F"})


def _pillow(what: str) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra(what, "image") from error
    return Image


class Picture(Source):
    """One picture, as `Reading.picture` wants it."""

    def __init__(self, path: Path, reading: Reading) -> None:
        super().__init__(str(path), reading)
        self._path = path
        self._image = _pillow(f"reading {path}")

    def _read(self, _name: str, wanted: ValueType | None) -> Value:
        declared = wanted.element if isinstance(wanted, OptionalType) else wanted
        if not isinstance(declared, TensorType | None):
            raise ValueError(f"a picture is a tensor, the model declares {wanted}")
        known = declared or TensorType(None)
        form = self.reading.picture
        layout = _layout(form.layout.upper(), known)
        sizes = {"C": None if "C" in layout else 1, **dict(zip(layout, known.shape or (), strict=False))}
        with warnings.catch_warnings(action="ignore"):
            pixels = self._pixels(sizes)
        numbers = self._numbers(pixels, known.dtype)
        numbers = numbers if "C" in layout else numbers[:, :, 0]
        ordered = numbers.transpose(["HWC".index(axis) for axis in layout if axis != "N"])
        return np.expand_dims(ordered, layout.index("N")) if "N" in layout else ordered

    def _pixels(self, sizes: Mapping[str, Any]) -> Tensor:
        """Rows of pixels of channels."""
        form = self.reading.picture
        with self._image.open(self._path) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise ValueError(f"refused: {image.width} x {image.height} pixels, as of a decompression bomb")
            if image.getexif().get(0x0112, 1) != 1:
                self.reading.notes.append(f"{self.label}: its EXIF orientation is not applied")
            image = _recolored(image, form.color.upper())
            image = self._resized(image, sizes)
            pixels = np.asarray(image)
        if form.color.upper() == "BGR":
            pixels = pixels[:, :, ::-1]
        pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
        channels = sizes["C"]
        if isinstance(channels, int) and channels != pixels.shape[2]:
            colors = {1: "L", 3: "RGB", 4: "RGBA"}
            hint = f"--color {colors[channels]} converts it" if channels in colors else ""
            raise HintedError(f"has {pixels.shape[2]} channels, the model takes {channels}", hint)
        return pixels

    def _resized(self, image: Any, sizes: Mapping[str, Any]) -> Any:
        resize = self.reading.picture.resize
        wanted = [size if isinstance(size := sizes.get(axis), int) else None for axis in "HW"]
        if isinstance(resize, tuple):
            height, width = resize
        else:
            height, width = (
                size if size is not None else now for size, now in zip(wanted, image.size[::-1], strict=True)
            )
        if (width, height) == image.size:
            return image
        if not resize:
            raise HintedError(
                f"is {image.width} x {image.height} pixels, the model takes {width} x {height}",
                "--resize brings it to that size",
            )
        if not 0 < width * height <= _MOST_PIXELS:
            raise ValueError(f"cannot be resized to {width} x {height} pixels")
        self.reading.notes.append(
            f"{self.label}: resized from {image.width} x {image.height} to {width} x {height} pixels"
        )
        return image.resize((width, height), self._image.Resampling.BILINEAR)

    def _numbers(self, pixels: Tensor, dtype: DType | None) -> Tensor:
        form = self.reading.picture
        if form.scale is None and not form.mean and not form.std and dtype in (None, pixels.dtype):
            return pixels
        dtype = dtype if dtype is not None else np.dtype(np.float32)
        if not is_float(dtype):
            raise ValueError(f"holds {name_of(pixels.dtype)}, the model declares {name_of(dtype)}")
        if form.scale is None and not self.reading.cast:
            raise HintedError(
                f"holds {name_of(pixels.dtype)}, the model declares {name_of(dtype)}: what is white?",
                "--scale 1/255 makes it 1, --scale 1 leaves it 255",
            )
        numbers = pixels * np.float64(form.scale if form.scale is not None else 1)
        numbers = (numbers - _each_channel(form.mean, 0.0, pixels)) / _each_channel(form.std, 1.0, pixels)
        with np.errstate(all="ignore"):
            return convert(numbers, dtype)


def _each_channel(numbers: tuple[float, ...], default: float, pixels: Tensor) -> Tensor:
    if len(numbers) not in (0, 1, pixels.shape[2]):
        raise ValueError(f"{len(numbers)} numbers for {pixels.shape[2]} channels: {', '.join(map(str, numbers))}")
    return np.array(numbers or (default,), np.float64)


def _recolored(image: Any, color: str) -> Any:
    if color:
        return image.convert(_COLORS[color])
    if image.mode == "P":
        return image.convert("RGBA" if "transparency" in image.info else "RGB")
    if image.mode == "1":
        return image.convert("L")
    if image.mode not in _PLAIN_MODES:
        raise HintedError(f"has the mode {image.mode}", "--color RGB converts it")
    return image


def _layout(layout: str, known: TensorType) -> str:
    """The axes by name. Raises ValueError where the declared shape leaves open which is which."""
    rank = None if known.shape is None else len(known.shape)
    if layout:
        if not {"H", "W"} <= set(layout) <= set("NCHW") or len(set(layout)) != len(layout):
            raise ValueError(f"the layout {layout!r} is none: letters of NCHW, H and W among them")
        if rank not in (None, len(layout)):
            raise ValueError(f"the layout {layout} has {len(layout)} axes, the model declares {known}")
        return layout
    if rank is None:
        return "HWC"
    if rank == 2:
        return "HW"
    found = [name for name in ("NCHW", "NHWC", "CHW", "HWC") if len(name) == rank]
    shape = known.shape or ()
    fitting = [name for name in found if shape[name.index("C")] in _CHANNELS]
    if not fitting:
        raise HintedError(f"which axis of {known} has the channels?", f"--layout {found[0] if found else 'NCHW'}")
    return fitting[0]  # ONNX's own order, where the sizes fit both


class Png(Target):
    """The only output as a picture."""

    what = "a .png file"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._image = _pillow(f"writing {path}")

    def write(self, file: BinaryIO, values: Mapping[str, Typed], notes: list[str]) -> None:
        name, (value, _) = self.only(values)
        try:
            pixels, how = as_picture(value)
        except ValueError as error:
            raise OutputError(f"{self.path}: {name} {error}", hint="save to a .npy file instead") from error
        if how:
            notes.append(f"{name} as a picture: {how}")
        self._image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(file, "PNG")


def as_picture(value: Value, *, stretch: bool = False) -> tuple[Tensor, str]:
    """Rows of pixels of 1, 3 or 4 channels of bytes (or uint16, where it has them), and in words what that changed.

    Other numbers are taken as they are where all lie between 0 and 1, or 0 and 255; else, or with ``stretch``, the
    least becomes black and the greatest white.

    Raises ValueError where the value is not like a picture: other than 2 axes, or 3 or 4 of which one has channels.
    """
    if not isinstance(value, np.ndarray) or value.dtype == STRING or value.dtype.kind == "c":
        raise ValueError(f"is {describe(value)}, no picture")
    shape = value.shape
    while len(shape) > 3 and shape[0] == 1:
        shape = shape[1:]
    pixels = comparable(value).reshape(shape)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    elif pixels.ndim == 3 and pixels.shape[0] in _CHANNELS and not (pixels.shape[0] != 3 and pixels.shape[2] == 3):
        pixels = pixels.transpose(1, 2, 0)
    elif pixels.ndim != 3 or pixels.shape[2] not in _CHANNELS:
        raise ValueError(f"is {name_of(value.dtype)}{shape_text(value.shape)}, which axis would be its channels?")
    if not pixels.size:
        raise ValueError(f"is {name_of(value.dtype)}{shape_text(value.shape)}, a picture without pixels")
    return _as_bytes(pixels, stretch)


def _as_bytes(pixels: Tensor, stretch: bool) -> tuple[Tensor, str]:
    if pixels.dtype == np.uint8 or (pixels.dtype == np.uint16 and pixels.shape[2] == 1):
        return np.ascontiguousarray(pixels), ""
    if pixels.dtype == bool:
        return np.where(pixels, np.uint8(255), np.uint8(0)), "true is white"
    wide = pixels.astype(np.float64)
    finite = np.isfinite(wide)
    missing = f", {np.count_nonzero(~finite)} elements that are no numbers are black" if not finite.all() else ""
    low, high = (float(wide[finite].min()), float(wide[finite].max())) if finite.any() else (0.0, 0.0)
    if not stretch and low >= 0 and high <= 1 and pixels.dtype.kind == "f":
        first, last, how = 0.0, 1.0, "1 is white"
    elif not stretch and low >= 0 and high <= 255:
        first, last, how = 0.0, 255.0, "255 is white"
    else:
        first, last, how = low, high, f"{low:.6g} is black and {high:.6g} white"
    span = (last - first) or 1.0
    bytes_of = np.where(finite, (wide - first) / span * 255, 0.0)
    return np.rint(bytes_of).clip(0, 255).astype(np.uint8), how + missing

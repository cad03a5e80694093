"""ImageDecoder: the pixels of an encoded picture."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.errors import MissingExtra
from onnxeval.ops._allocate import Allocate
from onnxeval.registry import op

if TYPE_CHECKING:
    from PIL import Image

_PIXEL_FORMATS = ("RGB", "BGR", "Grayscale")
#: The formats that the standard lists; Pillow knows more, some of which start other programs.
_FILE_FORMATS = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")


@op("ImageDecoder", versions=(20,))
def image_decoder(stream: Tensor, *, pixel_format: str, allocate: Allocate) -> Tensor:
    """A file's bytes (uint8) -> (height, width, channels), uint8; (0, 0, channels) for what cannot be decoded.

    There are 3 channels, 1 if ``pixel_format`` is "Grayscale". Transparency is dropped; of 16-bit samples the upper 8
    bits are kept; an orientation in the metadata is not applied. ValueError for another format or rank, or a picture so
    large that Pillow takes it for an attack; MissingExtra without Pillow. Source: ImageDecoder-20.
    """
    if pixel_format not in _PIXEL_FORMATS:
        raise ValueError(f"pixel_format {pixel_format!r} is none of {', '.join(map(repr, _PIXEL_FORMATS))}")
    if stream.ndim != 1:
        raise ValueError(f"the stream has rank {stream.ndim}, expected 1")
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("ImageDecoder", "image") from None
    channels = 1 if pixel_format == "Grayscale" else 3
    nothing = np.empty(
        (0, 0, channels), np.uint8
    )  # what the standard wants of undecodable streams, whatever the reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow thinks of odd metadata
        try:
            picture = Image.open(io.BytesIO(stream.tobytes()), formats=_FILE_FORMATS)
        except Image.DecompressionBombError as error:
            raise ValueError(str(error)) from None
        except Exception:
            return nothing
        pixels = allocate((picture.height, picture.width, channels), np.dtype(np.uint8))
        try:
            pixels[...] = _decoded(picture, pixel_format)
        except MemoryError:
            raise
        except Exception:
            return nothing
    return pixels


def _decoded(picture: Image.Image, pixel_format: str) -> Tensor:
    """(height, width, 3), or one channel that all three may share."""
    if picture.mode == "I" or picture.mode.startswith("I;16"):
        samples = np.asarray(picture).astype(np.int64)
        if samples.max(initial=0) >= 2**16:
            raise ValueError("samples of more than 16 bits")
        return (samples >> 8)[..., np.newaxis]
    if picture.mode == "F":
        raise ValueError("samples that are floats")
    if pixel_format == "Grayscale":
        return np.asarray(picture.convert("L"))[..., np.newaxis]
    colours = np.asarray(picture.convert("RGB"))
    return colours[..., ::-1] if pixel_format == "BGR" else colours

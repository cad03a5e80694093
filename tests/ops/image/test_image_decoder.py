"""ImageDecoder on pictures that Pillow writes."""

import builtins
import io

import numpy as np
import pytest

from onnxeval.errors import MissingExtra
from onnxeval.registry import OpKey, Registry

Image = pytest.importorskip("PIL.Image")
kernel = Registry.standard()[OpKey("", "ImageDecoder", 20)]
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)


def encoded(picture, **options):
    file = io.BytesIO()
    picture.save(file, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def decode(stream, pixel_format="RGB", allocate=np.empty):
    got = kernel(stream, pixel_format=pixel_format, allocate=allocate)
    assert got.dtype == np.uint8
    return got


LOSSLESS = [
    {"format": "BMP"},
    {"format": "PNG"},
    {"format": "TIFF"},
    {"format": "PPM"},
    {"format": "WEBP", "lossless": True},
]
LOSSLESS.append({"format": "JPEG2000", "irreversible": False})


@pytest.mark.parametrize("options", LOSSLESS, ids=lambda options: options["format"])
def test_lossless_formats(options):
    stream = encoded(Image.fromarray(PIXELS), **options)
    np.testing.assert_array_equal(decode(stream), PIXELS)
    np.testing.assert_array_equal(decode(stream, "BGR"), PIXELS[..., ::-1])
    grey = decode(stream, "Grayscale")
    assert grey.shape == (5, 7, 1)
    luma = PIXELS @ np.array([0.299, 0.587, 0.114])
    assert np.abs(grey[..., 0] - luma).max() <= 1


def test_jpeg_is_close():
    smooth = np.add.outer(np.arange(16) * 8, np.arange(24) * 4).astype(np.uint8)[..., np.newaxis].repeat(3, 2)
    got = decode(encoded(Image.fromarray(smooth), format="JPEG", quality=95))
    assert got.shape == (16, 24, 3)
    assert np.abs(got.astype(int) - smooth).max() < 8


def test_other_kinds_of_pixels():
    grey = PIXELS[..., 0]
    stream = encoded(Image.fromarray(grey), format="PNG")
    np.testing.assert_array_equal(decode(stream), grey[..., np.newaxis].repeat(3, 2))
    np.testing.assert_array_equal(decode(stream, "Grayscale"), grey[..., np.newaxis])
    clear = np.concatenate([PIXELS, np.zeros((5, 7, 1), np.uint8)], 2)
    np.testing.assert_array_equal(decode(encoded(Image.fromarray(clear), format="PNG")), PIXELS)
    bits = grey > 127
    black = encoded(Image.fromarray(bits), format="PPM")
    np.testing.assert_array_equal(decode(black, "Grayscale"), bits[..., np.newaxis] * np.uint8(255))
    wide = grey.astype(np.uint16) * 256 + 255
    for file_format in ("PNG", "TIFF", "PPM"):
        stream = encoded(Image.fromarray(wide), format=file_format)
        np.testing.assert_array_equal(decode(stream, "Grayscale"), grey[..., np.newaxis])
        np.testing.assert_array_equal(decode(stream), grey[..., np.newaxis].repeat(3, 2))


@pytest.mark.parametrize("pixel_format", ["RGB", "BGR", "Grayscale"])
def test_what_cannot_be_decoded_is_empty(pixel_format):
    whole = encoded(Image.fromarray(PIXELS), format="PNG")
    floats = encoded(Image.fromarray(PIXELS[..., 0].astype(np.float32)), format="TIFF")
    gif = encoded(Image.fromarray(PIXELS[..., 0]), format="GIF")  # no format of the standard's list
    for stream in (whole[:60], whole[:0], np.arange(50, dtype=np.uint8), floats, gif):
        assert decode(stream, pixel_format).shape == (0, 0, 1 if pixel_format == "Grayscale" else 3)


def test_refusals():
    with pytest.raises(ValueError, match="'CMYK'"):
        decode(np.zeros(3, np.uint8), "CMYK")
    with pytest.raises(ValueError, match="rank 2"):
        decode(np.zeros((3, 1), np.uint8))


def test_the_header_is_refused_before_memory_is_taken(monkeypatch):
    def refuse(shape, dtype):
        raise MemoryError(shape)

    stream = encoded(Image.fromarray(PIXELS), format="PNG")
    with pytest.raises(MemoryError):
        decode(stream, allocate=refuse)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(ValueError, match="35 pixels"):
        decode(stream)


def test_without_pillow(monkeypatch):
    real = builtins.__import__

    def without_pillow(name, *args, **kwargs):
        if name == "PIL":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(MissingExtra, match="image"):
        decode(np.zeros(3, np.uint8))

"""DFT and STFT against the sums that define them."""

from __future__ import annotations

import cmath
import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import fourier as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
DIGITS = {np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2, np.float32: 1e-5, np.float64: 1e-12}


def dft(x, length=None, axis=None, *, inverse=0, onesided=0):
    length, axis = (None if v is None else np.array(v) for v in (length, axis))
    return STANDARD["", "DFT", 20](x, length, axis, inverse=inverse, onesided=onesided, allocate=np.empty)


def stft(signal, step, window=None, length=None, *, onesided=1):
    length = None if length is None else np.array(length)
    return STANDARD["", "STFT", 17](signal, np.array(step), window, length, onesided=onesided, allocate=np.empty)


def spectrum(values: list[complex], sign: int = -1) -> list[complex]:
    n = len(values)
    return [sum(v * cmath.exp(sign * 2j * math.pi * k * i / n) for i, v in enumerate(values)) for k in range(n)]


def lines(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The complex numbers of x with the axis last, and room for the result."""
    x = x.astype(float)
    numbers = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    return np.moveaxis(numbers, axis % x.ndim, -1)


def pairs(numbers: np.ndarray, axis: int, rank: int) -> np.ndarray:
    numbers = np.moveaxis(numbers, -1, axis % rank)
    return np.stack([numbers.real, numbers.imag], -1)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -2, -3])
@pytest.mark.parametrize("length", [None, 3, 5, 8])
@pytest.mark.parametrize("inverse", [0, 1])
def test_both_sides(dtype, parts, axis, length, inverse):
    x = np.random.default_rng(0).normal(size=(5, 4, parts)).astype(dtype)
    result = dft(x, length, axis, inverse=inverse)
    assert result.dtype == dtype
    source = lines(x, axis)
    n = source.shape[-1] if length is None else length
    expected = np.zeros((*source.shape[:-1], n), complex)
    for place in np.ndindex(source.shape[:-1]):
        values = [*source[place].tolist(), *[0] * n][:n]
        expected[place] = spectrum(values) if not inverse else [v / n for v in spectrum(values, 1)]
    np.testing.assert_allclose(
        result.astype(float), pairs(expected, axis, x.ndim), rtol=DIGITS[dtype], atol=8 * DIGITS[dtype]
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [None, 4, 5, 9])
def test_one_side_there_and_back(dtype, length):
    x = np.random.default_rng(0).normal(size=(2, 6, 1)).astype(dtype)
    half = dft(x, length, 1, onesided=1)
    whole = dft(x, length, 1)
    n = length or 6
    assert half.shape == (2, n // 2 + 1, 2)
    np.testing.assert_allclose(half.astype(float), whole[:, : n // 2 + 1].astype(float), atol=8 * DIGITS[dtype])
    back = dft(half, n, 1, inverse=1, onesided=1)
    assert (back.shape, back.dtype) == ((2, n, 1), dtype)
    padded = np.concatenate([x, np.zeros((2, 9, 1), dtype)], 1)[:, :n]
    np.testing.assert_allclose(back.astype(float), padded.astype(float), atol=8 * DIGITS[dtype])
    if n % 2 == 0:
        np.testing.assert_array_equal(dft(half, None, 1, inverse=1, onesided=1), back)


def test_the_axis_attribute():
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 1)).astype(np.float32)
    old = STANDARD["", "DFT", 17](x, None, axis=1, inverse=0, onesided=0, allocate=np.empty)
    np.testing.assert_array_equal(old, dft(x, None, 1))
    np.testing.assert_array_equal(dft(x), dft(x, None, 2))


@pytest.mark.parametrize(
    ("shape", "length", "axis", "flags", "text"),
    [
        ((2, 3, 3), None, 1, {}, "last axis of 1 or 2"),
        ((2,), None, 0, {}, "rank 2 at least"),
        ((2, 3, 1), None, 2, {}, "axis 2 is outside"),
        ((2, 3, 1), None, -1, {}, "axis -1 is outside"),
        ((2, 3, 1), None, -4, {}, "axis -4 is outside"),
        ((2, 3, 1), 0, 1, {}, "dft_length 0 is not positive"),
        ((2, 0, 1), None, 1, {}, "dft_length 0 is not positive"),
        ((2, 1, 2), None, 1, {"inverse": 1, "onesided": 1}, "dft_length 0 is not positive"),
        ((2, 3, 2), None, 1, {"onesided": 1}, r"takes real numbers"),
        ((2, 3, 1), None, 1, {"inverse": 1, "onesided": 1}, r"takes complex numbers"),
    ],
)
def test_dft_refuses(shape, length, axis, flags, text):
    with pytest.raises(ValueError, match=text):
        dft(np.ones(shape, np.float32), length, axis, **flags)


def test_dft_asks_before_it_takes_memory():
    def refuse(shape, dtype):
        raise MemoryError(shape)

    with pytest.raises(MemoryError, match="1000000000000"):
        STANDARD["", "DFT", 20](np.ones((2, 1)), np.array(10**12), np.array(0), inverse=0, onesided=0, allocate=refuse)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("parts", "onesided"), [(1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize(("length", "step"), [(4, 1), (4, 3), (5, 2), (11, 1), (1, 4)])
def test_frames(dtype, parts, windowed, length, step, onesided):
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(2, 11, parts)).astype(dtype)
    window = rng.normal(size=length).astype(dtype) if windowed else None
    result = stft(signal, step, window, None if windowed else length, onesided=onesided)
    assert result.dtype == dtype
    frames, bins = (11 - length) // step + 1, length // 2 + 1 if onesided else length
    assert result.shape == (2, frames, bins, 2)
    if parts == 1:
        without_last_axis = stft(signal[..., 0], step, window, None if windowed else length, onesided=onesided)
        np.testing.assert_array_equal(without_last_axis, result)
    numbers = lines(signal, 1)
    weights = [1.0] * length if window is None else window.astype(float).tolist()
    for b, f in np.ndindex(2, frames):
        frame = numbers[b, f * step : f * step + length].tolist()
        expected = spectrum([v * w for v, w in zip(frame, weights, strict=True)])[:bins]
        np.testing.assert_allclose(
            result[b, f].astype(float),
            [(v.real, v.imag) for v in expected],
            rtol=DIGITS[dtype],
            atol=20 * DIGITS[dtype],
        )


def test_the_default_frame_is_the_signal():
    signal = np.random.default_rng(0).normal(size=(2, 6, 1))
    assert stft(signal, 1).shape == (2, 1, 4, 2)
    assert stft(signal, 2, np.ones(3), 3).shape == (2, 2, 2, 2)


@pytest.mark.parametrize(
    ("shape", "step", "window", "length", "onesided", "text"),
    [
        ((6,), 1, None, 3, 1, "expected"),
        ((2, 6, 3), 1, None, 3, 1, "expected"),
        ((2, 6, 2), 1, None, 3, 1, "takes a real signal"),
        ((2, 6, 1), 0, None, 3, 1, "frame_step 0"),
        ((2, 6, 1), 1, None, 7, 1, r"frame_length 7 in \[1, 6\]"),
        ((2, 6, 1), 1, None, 0, 1, "frame_length 0"),
        ((2, 6, 1), 1, (4,), 3, 1, "4 values, frame_length is 3"),
        ((2, 6, 1), 1, (4, 1), None, 1, "rank 2"),
    ],
)
def test_stft_refuses(shape, step, window, length, onesided, text):
    with pytest.raises(ValueError, match=text):
        stft(np.ones(shape), step, None if window is None else np.ones(window), length, onesided=onesided)

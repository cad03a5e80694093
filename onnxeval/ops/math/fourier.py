"""DFT and STFT. The last axis holds real numbers (size 1) or pairs of a real and an imaginary part (size 2).

The axis of DFT is an attribute in version 17, an input since 20, with another default.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops._scalar import scalar
from onnxeval.registry import op


@op("DFT", versions=(20,))
@in_float32
def dft(
    x: Tensor,
    dft_length: Tensor | None,
    axis: Tensor | None,
    *,
    inverse: int,
    onesided: int,
    allocate: Allocate,
) -> Tensor:
    """(..., 1 or 2) -> (..., 2), along ``axis`` of ``dft_length`` values; the signal is cut or padded with zeros.

    ``onesided`` forward takes real numbers to the first half of their spectrum, ``inverse`` takes such a half back to
    (..., 1). Raises ValueError where the input is not of that kind. Source: DFT-20.
    """
    place = _signal_axis(-2 if axis is None else scalar(axis, name="axis"), x)
    size = x.shape[place]
    default = 2 * (size - 1) if onesided and inverse else size
    length = default if dft_length is None else scalar(dft_length, name="dft_length")
    if length < 1:
        raise ValueError(f"dft_length {length} is not positive")
    if onesided and x.shape[-1] != (2 if inverse else 1):
        kind = "complex numbers (last axis 2)" if inverse else "real numbers (last axis 1)"
        raise ValueError(f"onesided={onesided}, inverse={inverse} takes {kind}, the last axis is {x.shape[-1]}")
    shape = list(x.shape)
    shape[place] = length // 2 + 1 if onesided and not inverse else length
    shape[-1] = 1 if onesided and inverse else 2
    result = allocate(tuple(shape), x.dtype)
    if onesided and inverse:
        result[..., 0] = np.fft.irfft(_numbers(x), length, place)
        return result
    transform = np.fft.ifft if inverse else np.fft.rfft if onesided else np.fft.fft
    spectrum = transform(_numbers(x), length, place)
    result[..., 0], result[..., 1] = spectrum.real, spectrum.imag
    return result


@op("DFT", versions=(17,))
def dft_axis_attribute(
    x: Tensor, dft_length: Tensor | None, *, axis: int, inverse: int, onesided: int, allocate: Allocate
) -> Tensor:
    """DFT whose ``axis`` is an attribute, 1 by default. Source: DFT-17."""
    result: Tensor = dft(x, dft_length, np.array(axis), inverse=inverse, onesided=onesided, allocate=allocate)
    return result


@op("STFT", versions=(17,))
@in_float32
def stft(
    signal: Tensor,
    frame_step: Tensor,
    window: Tensor | None,
    frame_length: Tensor | None,
    *,
    onesided: int,
    allocate: Allocate,
) -> Tensor:
    """(batch, time, 1 or 2) -> (batch, frames, bins, 2): the spectrum of each frame, weighted by the window.

    A signal of shape (batch, time), as PyTorch exports it, is a real one. Raises ValueError where the window has
    another length than the frames, a frame is longer than the signal, or ``onesided`` is asked of a complex signal.
    Source: STFT-17.
    """
    if signal.ndim == 2:
        signal = signal[..., np.newaxis]
    if signal.ndim != 3 or signal.shape[-1] not in (1, 2):
        raise ValueError(f"the signal has shape {list(signal.shape)}, expected [batch, time, 1 or 2]")
    if onesided and signal.shape[-1] == 2:
        raise ValueError("onesided=1 takes a real signal (last axis 1), the last axis is 2")
    if window is not None and window.ndim != 1:
        raise ValueError(f"the window has rank {window.ndim}, expected 1")
    batch, time = signal.shape[:2]
    step = scalar(frame_step, name="frame_step")
    default = time if window is None else window.shape[0]
    length = default if frame_length is None else scalar(frame_length, name="frame_length")
    if window is not None and window.shape[0] != length:
        raise ValueError(f"the window has {window.shape[0]} values, frame_length is {length}")
    if step < 1 or not 1 <= length <= time:
        raise ValueError(f"frame_step {step} must be positive, frame_length {length} in [1, {time}]")
    bins = length // 2 + 1 if onesided else length
    result = allocate((batch, (time - length) // step + 1, bins, 2), signal.dtype)
    frames = np.lib.stride_tricks.sliding_window_view(_numbers(signal), length, axis=1)[:, ::step]
    weighted = frames if window is None else frames * window
    spectrum = np.fft.rfft(weighted) if onesided else np.fft.fft(weighted)
    result[..., 0], result[..., 1] = spectrum.real, spectrum.imag
    return result


def _signal_axis(axis: int, x: Tensor) -> int:
    if x.ndim < 2 or x.shape[-1] not in (1, 2):
        raise ValueError(f"the input has shape {list(x.shape)}, expected rank 2 at least and a last axis of 1 or 2")
    if not (-x.ndim <= axis <= -2 or 0 <= axis <= x.ndim - 2):
        raise ValueError(f"axis {axis} is outside [{-x.ndim}, -2] and [0, {x.ndim - 2}] for rank {x.ndim}")
    return axis % x.ndim


def _numbers(x: Tensor) -> Tensor:
    """Real or complex numbers, without the last axis."""
    if x.shape[-1] == 1:
        return x[..., 0]
    pairs: Tensor = np.ascontiguousarray(x).view(np.complex64 if x.dtype == np.float32 else np.complex128)
    return pairs[..., 0]

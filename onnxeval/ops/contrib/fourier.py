"""Rfft, Irfft and products of complex numbers, whose parts lie along the last axis."""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOAT64, microsoft_op
from onnxeval.values import shape_text

_TYPES = (FLOAT32, FLOAT64, FLOAT16)


@microsoft_op("Rfft", "T", T=_TYPES)
@in_float32
def rfft(x: Tensor, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Tensor:
    """(..., n) -> (..., n // 2 + 1, 2): the Fourier transform over the last ``signal_ndim`` axes.

    Raises ValueError where there are not so many axes, and for the other forms that the text does not know.
    Source: com.microsoft.Rfft-1.
    """
    _require(normalized, onesided, signal_ndim, x.ndim, x.shape)
    return _parted(np.fft.rfftn(x, axes=tuple(range(-signal_ndim, 0))), x)


@microsoft_op("Irfft", "T", T=_TYPES)
@in_float32
def irfft(x: Tensor, *, normalized: int = 0, onesided: int = 1, signal_ndim: int) -> Tensor:
    """(..., n // 2 + 1, 2) -> (..., n): what `rfft` gives these; n is even. Source: com.microsoft.Irfft-1."""
    spectrum = _complex(x)
    _require(normalized, onesided, signal_ndim, spectrum.ndim, spectrum.shape)
    sizes = (*spectrum.shape[-signal_ndim:-1], 2 * (spectrum.shape[-1] - 1))
    if math.prod(sizes) < 1:
        raise ValueError(f"a spectrum of shape {shape_text(x.shape)} belongs to no signal")
    return np.fft.irfftn(spectrum, s=sizes, axes=tuple(range(-signal_ndim, 0))).astype(x.dtype, copy=False)


@microsoft_op("ComplexMul", "TT", T=_TYPES)
@in_float32
def complex_mul(a: Tensor, b: Tensor) -> Tensor:
    """(..., 2), (..., 2) -> (..., 2), their products as complex numbers. Source: com.microsoft.ComplexMul-1."""
    return _parted(_complex(a) * _complex(b), a)


@microsoft_op("ComplexMulConj", "TT", T=_TYPES)
@in_float32
def complex_mul_conj(a: Tensor, b: Tensor) -> Tensor:
    """The product of a with the conjugate of b. Source: com.microsoft.ComplexMulConj-1."""
    return _parted(_complex(a) * _complex(b).conj(), a)


def _require(normalized: int, onesided: int, signal_ndim: int, rank: int, shape: tuple[int, ...]) -> None:
    if normalized or not onesided:
        raise ValueError(f"normalized {normalized} and onesided {onesided} are to be 0 and 1")
    if not 1 <= signal_ndim <= rank or 0 in shape:
        raise ValueError(f"signal_ndim {signal_ndim} does not fit a signal of shape {shape_text(shape)}")


def _complex(x: Tensor) -> Tensor:
    if not x.ndim or x.shape[-1] != 2:
        raise ValueError(f"complex numbers have shape {shape_text(x.shape)}, expected [..., 2]")
    result: Tensor = x[..., 0] + 1j * x[..., 1]
    return result


def _parted(x: Tensor, like: Tensor) -> Tensor:
    return np.stack([x.real, x.imag], axis=-1).astype(like.dtype, copy=False)

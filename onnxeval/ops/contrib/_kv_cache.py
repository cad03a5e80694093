"""Caches of keys and values whose rows are filled to different lengths, plain or of few bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxeval.dtypes import DType, Tensor, is_float, name_of
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._cast import convert
from onnxeval.ops.contrib._packing import unpacked
from onnxeval.values import shape_text


@dataclass(frozen=True, slots=True)
class Coding:
    """How numbers are written in a cache: as ``dtype``, divided by ``scale`` where there is one, in ``bits`` bits."""

    dtype: DType
    bits: int = 8
    scale: Tensor | None = None

    def encoded(self, x: Tensor) -> Tensor:
        """Float32 (B, N, time, H) in the form of the cache; numbers outside take its nearest end."""
        if self.scale is None:
            return x.astype(self.dtype)
        codes = x / self.scale
        if is_float(self.dtype):
            return convert(codes, self.dtype)
        half = 2 ** (self.bits - 1)
        codes = np.clip(np.rint(codes), -half, half - 1)
        if self.bits == 8:
            return codes.astype(self.dtype)
        nibbles = (codes + half).astype(np.uint8)
        return np.asarray(nibbles[..., 0::2] | nibbles[..., 1::2] << 4)

    def decoded(self, cache: Tensor) -> Tensor:
        """What stands in a cache, in float32."""
        if self.scale is None:
            return cache.astype(np.float32, copy=False)
        codes = unpacked(cache, 4).astype(np.float32) - 8 if self.bits == 4 else cache.astype(np.float32)
        return np.asarray(codes * self.scale)


def coding_of(
    past: Tensor | None, dtype: DType, kind: str, bits: int, scale: Tensor | None, heads: int, size: int
) -> Coding:
    """The coding that the attributes of GroupQueryAttention tell; ``dtype`` is that of plain caches.

    Raises ValueError where they contradict each other, TypeError where ``past`` has another type.
    """
    if kind == "NONE":
        if past is not None and past.dtype != dtype:
            raise TypeError(f"a cache without quantisation is {name_of(past.dtype)}, expected {name_of(dtype)}")
        return Coding(dtype)
    if kind not in ("PER_TENSOR", "PER_CHANNEL"):
        raise ValueError(f"quantisation {kind!r} is none of 'NONE', 'PER_TENSOR', 'PER_CHANNEL'")
    if bits not in (4, 8) or scale is None:
        raise ValueError(f"quantisation {kind!r} needs a scale and kv_cache_bit_width 4 or 8, which is {bits}")
    expected = 1 if kind == "PER_TENSOR" else heads * size
    if scale.size != expected:
        raise ValueError(f"a scale of a {kind} cache has shape {shape_text(scale.shape)}, expected {expected} elements")
    allowed = (np.dtype(np.uint8 if bits == 4 else np.int8),)
    coded = allowed[0] if past is None else past.dtype
    if coded not in allowed and not (bits == 8 and coded.itemsize == 1 and is_float(coded)):
        raise TypeError(f"a cache of {bits} bits is {name_of(coded)}, expected {name_of(allowed[0])}")
    if bits == 4 and size % 2:
        raise ValueError(f"heads of size {size} cannot be packed in pairs")
    return Coding(coded, bits, scale.reshape(1, heads, 1, size) if expected > 1 else scale.reshape(1, 1, 1, 1))


def joined_cache(
    past: Tensor | None, kept: Tensor, new: Tensor, n_new: Tensor, dropped: Tensor, length: int, allocate: Allocate
) -> Tensor:
    """A cache (B, N, ``length``, H): ``kept`` rows of the past, then ``n_new`` of the new, less the first ``dropped``.

    The numbers of rows are (B,). What is left over of the cache is zero.
    """
    batch, heads, _, size = new.shape
    result = allocate((batch, heads, length, size), new.dtype)
    of_past = np.minimum(dropped, kept)
    of_new = dropped - of_past
    for entry in range(batch):
        end = 0
        for source, start, stop in ((past, of_past[entry], kept[entry]), (new, of_new[entry], n_new[entry])):
            if source is not None:
                result[entry, :, end : end + stop - start] = source[entry, :, start:stop]
                end += stop - start
        result[entry, :, end:] = 0
    return result

"""Random arrays of every element type: plain numbers, the special ones of the type, and any bits at all."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor, integer_range, is_float, is_integer

#: plain: small numbers whose sums and products are exact; special: those among the type's extremes; wide: any bits.
PALETTES = ("plain", "special", "wide")
#: For what sums in an order of its own, where extremes may overflow or not. broken: a few NaN, infinities and -0.0.
SUMS = ("plain", "broken")

_WORDS = ("", "a", "b", "A", "ab", "ba", "é", "日本", "a b", "1")


def random_array(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], palette: str = "plain") -> Tensor:
    if dtype == STRING:
        return np.asarray(rng.choice(np.array(_WORDS, object), shape), object)
    if dtype == np.bool_:
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind == "c":
        part = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        pairs = random_array(rng, part, (*shape, 2), palette)
        return np.ascontiguousarray(pairs).view(dtype)[..., 0]
    if palette == "wide":
        return _any_bits(rng, dtype, shape)
    plain = _plain(rng, dtype, shape)
    if palette == "plain" or (palette == "broken" and (is_integer(dtype) or dtype.itemsize == 1)):
        return plain
    rare, few = (0.1, np.array([np.nan, np.inf, -np.inf, -0.0])) if palette == "broken" else (0.5, _specials(dtype))
    return np.where(rng.random(shape) < rare, rng.choice(few, shape), plain).astype(dtype)


def _plain(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    if is_integer(dtype):
        least, greatest = integer_range(dtype)
        return np.asarray(rng.integers(max(least, -6), min(greatest, 6), shape, endpoint=True)).astype(dtype)
    return np.asarray(rng.integers(-12, 12, shape, endpoint=True) / 4).astype(dtype)


def _any_bits(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    if is_integer(dtype):
        least, greatest = integer_range(dtype)
        kind = np.int64 if least else np.uint64
        return np.asarray(rng.integers(least, greatest, shape, dtype=kind, endpoint=True)).astype(dtype)
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    numbers = np.asarray(rng.integers(0, np.iinfo(bits).max, shape, dtype=bits, endpoint=True))
    if ml_dtypes.finfo(dtype).bits < 8:
        numbers &= np.uint8(2 ** ml_dtypes.finfo(dtype).bits - 1)
    return numbers.view(dtype)


def _specials(dtype: DType) -> Tensor:
    if is_integer(dtype):
        least, greatest = integer_range(dtype)
        return np.array([least, greatest, 0, 1, max(least, -1), greatest // 2], dtype)
    assert is_float(dtype), dtype
    info = ml_dtypes.finfo(dtype)
    near = [0.0, 1.0, info.max, info.smallest_normal, info.smallest_subnormal]
    signed = [-0.0, -1.0, info.min, -info.smallest_subnormal] if info.min < 0 else []
    return np.array([*near, *signed, np.nan, np.inf, -np.inf] if dtype.itemsize > 1 else [*near, *signed]).astype(dtype)

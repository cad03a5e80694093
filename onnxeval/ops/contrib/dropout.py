"""Dropout with what onnxruntime fuses into it, and with masks of bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import BOOL, FLOATS_AND_DOUBLE, microsoft_op
from onnxeval.values import shape_text

_ALLOWED: dict[str, Any] = {"T": FLOATS_AND_DOUBLE, "R": FLOATS_AND_DOUBLE, "B": (BOOL,)}


@microsoft_op("BiasDropout", "TTTRB", **_ALLOWED)
def bias_dropout(
    data: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    ratio: Tensor | None,
    training_mode: Tensor | None,
    *,
    seed: int | None = None,
    rng: np.random.Generator,
) -> tuple[Tensor, Tensor]:
    """(Dropout(data + bias) + residual, mask) of (..., C) and a bias (C,) or of the same shape.

    Outside training nothing is dropped, and the mask is true throughout. Source: com.microsoft.BiasDropout-1.
    """
    if bias.shape not in (data.shape, data.shape[-1:]):
        raise ValueError(f"the bias has shape {shape_text(bias.shape)}, the data {shape_text(data.shape)}")
    if residual is not None and residual.shape != data.shape:
        raise ValueError(f"the residual has shape {shape_text(residual.shape)}, the data {shape_text(data.shape)}")
    wide = np.float64 if data.dtype == np.float64 else np.float32
    total, kept = standard("nn", "Dropout", 22)(
        data.astype(wide) + bias.astype(wide), ratio, training_mode, seed=seed, rng=rng
    )
    if residual is not None:
        total = total + residual.astype(wide)
    return convert(total, data.dtype), kept


@microsoft_op("BitmaskBiasDropout", "TTTRB", **_ALLOWED)
def bitmask_bias_dropout(
    data: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    ratio: Tensor | None,
    training_mode: Tensor | None,
    *,
    seed: int | None = None,
    rng: np.random.Generator,
) -> tuple[Tensor, Tensor]:
    """`bias_dropout` with a mask of bits. Source: com.microsoft.BitmaskBiasDropout-1."""
    total, kept = bias_dropout(data, bias, residual, ratio, training_mode, seed=seed, rng=rng)
    return total, _bits(kept)


@microsoft_op("BitmaskDropout", "TRB", **_ALLOWED)
def bitmask_dropout(
    data: Tensor,
    ratio: Tensor | None,
    training_mode: Tensor | None,
    *,
    seed: int | None = None,
    rng: np.random.Generator,
) -> tuple[Tensor, Tensor]:
    """(data, mask): Dropout-22 with a mask of bits. Source: com.microsoft.BitmaskDropout-1."""
    result, kept = standard("nn", "Dropout", 22)(data, ratio, training_mode, seed=seed, rng=rng)
    return result, _bits(kept)


def _bits(mask: Tensor) -> Tensor:
    """uint32 (ceil(n / 32),): one bit for each element, the first the lowest, and those behind the last set too."""
    padding = -mask.size % 32
    flat = np.concatenate([mask.reshape(-1), np.ones(padding, np.bool_)])
    packed = np.packbits(flat.reshape(-1, 8), axis=1, bitorder="little").reshape(-1, 4)
    shifted = packed.astype(np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)
    return np.asarray(shifted.sum(axis=1, dtype=np.uint32))

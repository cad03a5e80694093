"""DynamicQuantizeLinear: quantization by a scale that the tensor itself gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops.quantization.linear import quantize_linear
from onnxeval.registry import op

_UINT8 = np.dtype(np.uint8)
_BLOCK = 1 << 16


@op("DynamicQuantizeLinear", versions=(11,))
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """float32 -> uint8 of the same shape, its scale (float32) and its zero point (uint8), both scalars.

    The range that is mapped to 0..255 is that of ``x``, made to include 0. Where all of ``x`` is 0, or it is empty, the
    scale is 0 and so is everything else. Source: DynamicQuantizeLinear-11.
    """
    low, high = x.min(initial=0), x.max(initial=0)
    scale = np.asarray((high - low) / np.float32(255))
    if not (np.isfinite(scale) and scale):
        zero_point = convert(np.asarray(np.clip(-low / scale, 0, 255)), _UINT8)
        return quantize_linear(x, scale, zero_point, axis=0), scale, zero_point
    zero = np.minimum(np.rint(-low / scale), np.float32(255))
    codes = np.empty(x.shape, np.uint8)
    for part, target in zip(_blocks(x), _blocks(codes), strict=True):
        steps = part / scale
        np.rint(steps, out=steps)
        steps += zero
        np.clip(steps, 0, 255, out=target, casting="unsafe")
    return codes, scale, zero.astype(np.uint8).reshape(())


def _blocks(x: Tensor) -> Iterator[Tensor]:
    """Parts of a tensor, one after the other, that a processor's cache holds through several passes over them."""
    flat = x.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        yield flat[start : start + _BLOCK]

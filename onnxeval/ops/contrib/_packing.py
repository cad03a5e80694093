"""Integers of 2 and 4 bits in bytes, the first in the low bits."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor


def require_bits(bits: int) -> None:
    """Raise ValueError unless ``bits`` is 2, 4 or 8."""
    if bits not in (2, 4, 8):
        raise ValueError(f"bits {bits} is none of 2, 4, 8")


def unpacked(packed: Tensor, bits: int) -> Tensor:
    """(..., n) uint8 -> (..., n * 8 / bits): the unsigned integers of that many bits in it, as uint8."""
    if bits == 8:
        return packed
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes: Tensor = (packed[..., np.newaxis] >> shifts) & np.uint8(2**bits - 1)
    return codes.reshape(*packed.shape[:-1], packed.shape[-1] * len(shifts))


def require_block_size(block_size: int) -> None:
    """Raise ValueError unless ``block_size`` is a power of 2 from 16 on."""
    if block_size < 16 or block_size & (block_size - 1):
        raise ValueError(f"block_size {block_size} is no power of 2 from 16 on")

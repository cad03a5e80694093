"""Convolutions of single channels as matrix products.

One output sees few elements, and a product of so few rows wastes a processor. So some neighbours of a row are computed
together, from all elements that one of them sees: their matrix has the kernel in each column, a stride further down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._windows import Windows, padded

#: The neighbours in a row that are computed together, at most.
_TOGETHER = 16
#: Elements that are brought together at a time: as much as a processor's cache can hold.
_BLOCK = 1 << 18


def suits(w: Tensor, windows: Sequence[Windows], group: int) -> bool:
    """Whether a convolution has one channel a group and a kernel that is dense and small enough."""
    if len(windows) != 2 or w.shape[:2] != (group, 1):
        return False
    rows, columns = windows
    return columns.dilation == 1 and columns.stride <= columns.kernel and rows.kernel * columns.kernel <= _BLOCK >> 8


def correlate_channels(x: Tensor, w: Tensor, windows: Sequence[Windows], allocate: Allocate) -> Tensor | None:
    """(N, C, H, W), (C, 1, *kernel) -> (N, C, *counts); None where a result is not finite.

    There the zeros of the matrices would have made NaN of an infinity that a neighbour sees.
    """
    rows, columns = windows
    batch, channels = x.shape[:2]
    blocks = -(-columns.number // _TOGETHER)
    together = -(-columns.number // blocks)
    reach = (together - 1) * columns.stride + columns.kernel
    width = max(columns.begin + columns.size + columns.end, (blocks - 1) * together * columns.stride + reach)
    bands = np.zeros((channels, rows.kernel, reach, together), w.dtype)
    for place in range(together):
        first = place * columns.stride
        bands[:, :, first : first + columns.kernel, place] = w[:, 0]
    right = bands.reshape(channels, rows.kernel * reach, together)
    image = padded(x, (rows.begin, columns.begin), (rows.begin + rows.size + rows.end, width), allocate)
    row, element = image.strides[2:]
    seen = as_strided(
        image,
        (batch, channels, rows.number, blocks, rows.kernel, reach),
        (*image.strides[:2], rows.stride * row, together * columns.stride * element, rows.dilation * row, element),
        writeable=False,
    )
    result = allocate((batch, channels, rows.number, blocks * together), x.dtype)
    step = max(1, _BLOCK // (rows.number * blocks * right.shape[1]))
    for n in range(batch):
        for c in range(0, channels, step):
            some = seen[n, c : c + step]
            sums = result[n, c : c + step].reshape(len(some), rows.number * blocks, together)
            np.matmul(some.reshape(*sums.shape[:2], right.shape[1]), right[c : c + step], out=sums)
    result = result[..., : columns.number]
    return result if np.isfinite(result).all() else None

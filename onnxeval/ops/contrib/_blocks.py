"""Channels in blocks: how onnxruntime lays out tensors in the domain com.microsoft.nchwc.

A tensor of shape (N, C, H, W) has its elements in the order (N, C / block, H, W, block). A block is as many channels as
a vector of the processor holds: 8, or 16 with AVX-512 and on 64-bit ARM. Nothing in a model says which. onnxruntime
takes that of the processor it runs on; here the reordered weights are asked first.
"""

from __future__ import annotations

import math
import platform
from weakref import WeakKeyDictionary

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]  # it has no stub

from onnxeval.dtypes import Tensor
from onnxeval.ops._neighbours import Neighbours
from onnxeval.values import shape_text

_SIZES: WeakKeyDictionary[Neighbours, int] = WeakKeyDictionary()


def require_images(x: Tensor) -> None:
    """Raise ValueError unless ``x`` is (N, C, H, W) or (N, H, W, C)."""
    if x.ndim != 4:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected rank 4")


def in_rows(x: Tensor, block: int) -> Tensor:
    """A tensor in blocks in the usual order, (N, C, H, W). Raises ValueError where it is not in blocks of that size."""
    require_images(x)
    batch, channels, *sizes = x.shape
    if channels % block:
        raise ValueError(f"the input has {channels} channels, which are no blocks of {block}")
    lanes_last = x.reshape(batch, channels // block, *sizes, block)
    return np.moveaxis(lanes_last, -1, 2).reshape(x.shape)


def in_blocks(x: Tensor, block: int) -> Tensor:
    """(N, C, H, W) in blocks, (N, C rounded up to whole blocks, H, W); the channels that are added are zero."""
    batch, channels, *sizes = x.shape
    padded = np.zeros((batch, -(-channels // block) * block, *sizes), x.dtype)
    padded[:, :channels] = x
    lanes = padded.reshape(batch, padded.shape[1] // block, block, *sizes)
    return np.moveaxis(lanes, 2, -1).reshape(padded.shape)


def kernels_in_rows(w: Tensor, block: int) -> Tensor:
    """Weights (M, C, kH, kW) from the order in which they are for blocks in the usual one.

    It is (M / block, C / block, kH, kW, block of C, block of M), without the blocks of C where there are fewer
    channels than one holds, as before a first convolution and in one of single channels.
    Raises ValueError where the shape allows no such order.
    """
    if w.ndim != 4 or not _fits(w, block):
        raise ValueError(f"the weights have shape {shape_text(w.shape)}, which is no blocks of {block}")
    maps, channels, *kernel = w.shape
    inner = block if channels >= block else 1
    laid = w.reshape(maps // block, channels // inner, *kernel, inner, block)
    return laid.transpose(0, 5, 1, 4, 2, 3).reshape(w.shape)


def block_size(neighbours: Neighbours) -> int:
    """How many channels a block has in the model of these nodes.

    The shapes of the weights of its convolutions may tell. Else the order is the one under which they look more like
    weights: their mean square differs from kernel to kernel, from channel to channel and from place to place in a
    kernel, and is zero where a block is filled up; read in the wrong order all of this is mixed. Where nothing differs,
    as in a network that was never trained, it is the size on this machine.
    """
    if neighbours not in _SIZES:
        weights = [inputs[1] for op_type, inputs in neighbours.nodes if op_type == "Conv" and len(inputs) > 1]
        _SIZES[neighbours] = _size_of([w for w in weights if w is not None and w.ndim == 4 and w.size])
    return _SIZES[neighbours]


def _size_of(weights: list[Tensor]) -> int:
    for size, other in ((8, 16), (16, 8)):
        if not all(_fits(w, other) for w in weights):
            return size
    evidence, parameters = 0.0, 0
    for w in sorted(weights, key=lambda w: w.size):
        evidence += _likelihood(kernels_in_rows(w, 16)) - _likelihood(kernels_in_rows(w, 8))
        parameters += w.shape[0] + w.shape[1] + math.prod(w.shape[2:])
        if abs(evidence) > 100 * math.sqrt(parameters):
            break
    # Among random numbers the difference has a standard deviation of about the root of the parameters.
    if abs(evidence) > 20 * math.sqrt(parameters):
        return 16 if evidence > 0 else 8
    return _size_here()


def _fits(w: Tensor, block: int) -> bool:
    maps, channels = w.shape[:2]
    fits: bool = maps % block == 0 and (channels < block or channels % block == 0)
    return fits


def _likelihood(w: Tensor) -> float:
    """The logarithm of how likely the weights are, up to a constant.

    Each is normally distributed, its variance a product of one factor for the kernel, one for the channel and one for
    the place, which are fitted in turns.
    """
    squares = np.square(w.astype(np.float64)).reshape(*w.shape[:2], -1) + np.finfo(np.float32).tiny
    factors = [np.ones((1, 1, 1))] * 3
    for _ in range(3):
        for axis in (1, 2, 0):
            factors[axis] = np.ones((1, 1, 1))
            rest = squares / (factors[0] * factors[1] * factors[2])
            factors[axis] = rest.mean(axis=tuple({0, 1, 2} - {axis}), keepdims=True)
    return -sum(float(np.log(factor).mean()) for factor in factors) * w.size / 2


def _size_here() -> int:
    """The size that onnxruntime takes on this machine."""
    wide = __cpu_features__.get("AVX512F") or platform.machine().lower() in ("aarch64", "arm64")
    return 16 if wide else 8

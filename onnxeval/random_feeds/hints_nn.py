"""Hints for networks: classes, lengths, variances, boxes, pictures."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from onnxeval.dtypes import DType, Tensor
from onnxeval.random_feeds.looking import Looked
from onnxeval.random_feeds.wishes import NOT_NEGATIVE, UNIT, Wish, between

Wishes = Mapping[int, Wish]


def _classes(node: Looked) -> Wishes:
    return {1: between(0, node.size(0, 1) - 1)}


def _normalised(_node: Looked) -> Wishes:
    """The variance, which is input 4."""
    return {4: Wish(low=0.5, high=1.5)}


def _attention(node: Looked) -> Wishes:
    """Keys that are no padding: as many as there are queries at least, and no more than the mask has columns."""
    keys = node.size(1, -2) + (node.size(4, -2) if node.dtype(4) is not None else 0)
    most = min(keys, node.size(3, -1, keys))
    return {6: between(min(node.size(0, -2), most), most)}


def _rotated(node: Looked) -> Wishes:
    return {3: between(0, node.size(1, 0) - 1)}


def _suppressed(_node: Looked) -> Wishes:
    return {0: UNIT, 1: UNIT, 2: between(1, 3), 3: UNIT, 4: Wish(low=0, high=0.5)}


def _aligned(node: Looked) -> Wishes:
    most = max(min(node.size(0, -1), node.size(0, -2)) - 1, 1)
    return {1: Wish(make=partial(_boxes, first=0, most=most)), 2: between(0, node.size(0, 0) - 1)}


def _pooled(node: Looked) -> Wishes:
    most = max(min(node.size(0, -1), node.size(0, -2)) - 1, 0)
    return {1: Wish(make=partial(_boxes, first=1, most=most, batch=node.size(0, 0)))}


def _boxes(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, first: int, most: int, batch: int = 1
) -> Tensor:
    """Corners of boxes in a picture, the lesser ones first, behind the number of the picture where ``first`` is 1."""
    boxes = rng.integers(0, most + 1, shape).astype(np.float64)
    corners = boxes[..., first : first + 4]
    low, high = corners[..., :2].copy(), corners[..., 2:].copy()
    boxes[..., first : first + 2] = np.minimum(low, high)
    boxes[..., first + 2 : first + 4] = np.maximum(low, high)
    if first:
        boxes[..., 0] = rng.integers(0, batch, shape[:-1])
    return boxes.astype(dtype)


def _picture(_rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A bitmap of one pixel, then nothing: what any reader of pictures takes."""
    header = b"BM" + struct.pack("<IHHI", 58, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0)
    data = np.frombuffer((header + bytes([30, 60, 90, 0])).ljust(int(np.prod(shape)), b"\0"), np.uint8)
    return data[: int(np.prod(shape))].reshape(shape).astype(dtype)


HINTS: dict[tuple[str, str], Callable[[Looked], Wishes]] = {
    ("", "Attention"): _attention,
    ("", "BatchNormalization"): _normalised,
    ("", "ImageDecoder"): lambda _node: {0: Wish(make=_picture)},
    ("", "MaxRoiPool"): _pooled,
    ("", "NegativeLogLikelihoodLoss"): _classes,
    ("", "NonMaxSuppression"): _suppressed,
    ("", "RoiAlign"): _aligned,
    ("", "RotaryEmbedding"): _rotated,
    ("", "SoftmaxCrossEntropyLoss"): _classes,
    ("", "DeformConv"): lambda _node: {4: NOT_NEGATIVE},
}

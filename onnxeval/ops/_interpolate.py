"""Values of a tensor between its elements: the elements around each position, weighted and added up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor

#: Indices along an axis of some size, which may lie beyond it -> those of the elements that stand for them.
Resolve = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Along one axis, an element for each position. Where ``inside`` is False, zero stands for it."""

    index: Tensor
    inside: Tensor | None

    @classmethod
    def at(cls, index: Tensor, size: int, resolve: Resolve | None) -> Neighbour:
        """``resolve`` says what stands for elements beyond the axis; without it, zero does."""
        if resolve is not None:
            return cls(resolve(index, size), None)
        return cls(np.clip(index, 0, size - 1), (index >= 0) & (index < size))


def around(
    position: Tensor, size: int, radius: int, weight: Callable[[Tensor], Tensor], resolve: Resolve | None = None
) -> tuple[tuple[Neighbour, Tensor], ...]:
    """The ``radius`` elements on each side of the positions, and what each weighs by its distance.

    Positions that are not numbers have weights that are none either.
    """
    # so far away every neighbour is beyond the axis, and infinity has no distance to any
    near = np.clip(position, -radius - 1, size + radius)
    below = np.floor(near)
    first = np.nan_to_num(below).astype(np.int64)
    return tuple(
        (Neighbour.at(first + offset, size, resolve), weight(near - below - offset))
        for offset in range(1 - radius, radius + 1)
    )


def linear(distance: Tensor) -> Tensor:
    """What an element weighs in linear interpolation: radius 1."""
    weight: Tensor = 1 - np.abs(distance)
    return weight


def gather(x: Tensor, corner: Sequence[Neighbour]) -> Tensor:
    """(B, C, *sizes) and, for each axis, an element for each of P positions, as (B, P) -> (B, C, P)."""
    batch, channels, *sizes = x.shape
    flat = x.reshape(batch, channels, math.prod(sizes))
    index = np.ravel_multi_index([each.index for each in corner], sizes)
    values = np.empty((batch, channels, index.shape[1]), x.dtype)
    for sample in range(batch):
        flat[sample].take(index[sample], axis=1, out=values[sample], mode="clip")  # no index is out of range
    known = [each.inside for each in corner if each.inside is not None]
    if known:
        outside = ~np.logical_and.reduce(known)
        nothing = "" if x.dtype == STRING else np.zeros((), x.dtype)
        np.copyto(values, nothing, where=outside[:, np.newaxis])
    return values


def interpolate(x: Tensor, axes: Sequence[Sequence[tuple[Neighbour, Tensor]]], dtype: DType) -> Tensor:
    """(B, C, *sizes) and, for each axis, what is `around` P positions, as (B, P) -> sums (B, C, P) of ``dtype``."""
    positions = axes[0][0][1].shape[1]
    total = np.zeros((*x.shape[:2], positions), dtype)
    for corner in product(*axes):
        weight = reduce(np.multiply, [weight for _, weight in corner]).astype(total.real.dtype)
        total += gather(x, [neighbour for neighbour, _ in corner]).astype(dtype, copy=False) * weight[:, np.newaxis]
    return total

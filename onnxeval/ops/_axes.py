"""Axes as the standard counts them: from the back where negative.

Few texts before opset 11 say so. Negative axes count from the back there too, but for those that the text rules out:
versions 1 and 9 of Flatten, version 1 of Squeeze and of Unsqueeze.
"""

from __future__ import annotations

from collections.abc import Iterable


def normalise_axis(axis: int, rank: int, *, name: str = "axis") -> int:
    """``axis`` in [0, rank). Raises ValueError where it is outside [-rank, rank - 1]."""
    if not -rank <= axis < rank:
        raise ValueError(f"{name} {axis} is outside [{-rank}, {rank - 1}] for a tensor of rank {rank}")
    return int(axis) % rank


def normalise_axes(axes: Iterable[int], rank: int, *, name: str = "axes") -> tuple[int, ...]:
    """Each axis in [0, rank), in the given order. Raises ValueError where one is outside or repeated."""
    given = tuple(int(axis) for axis in axes)
    normal = tuple(normalise_axis(axis, rank, name=name) for axis in given)
    if len(set(normal)) != len(normal):
        raise ValueError(f"{name} {list(given)} name an axis twice for a tensor of rank {rank}")
    return normal

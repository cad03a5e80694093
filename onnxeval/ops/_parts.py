"""Tensors joined along an axis and cut into parts along it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis


def joined(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """The tensors one after the other along ``axis``; a single one is given back itself.

    ValueError where their other sizes differ, where their ranks differ and where ``axis`` is outside.
    """
    first = tensors[0]
    along = normalise_axis(axis, first.ndim)
    for number, tensor in enumerate(tensors):
        others = [shape[:along] + shape[along + 1 :] for shape in (tensor.shape, first.shape)]
        if tensor.ndim != first.ndim or others[0] != others[1]:
            raise ValueError(
                f"tensor {number} is {list(tensor.shape)}, tensor 0 {list(first.shape)}: "
                f"they may differ on axis {along} alone"
            )
    return first if len(tensors) == 1 else np.concatenate(tensors, axis=along)


def cut(x: Tensor, lengths: Sequence[int], axis: int) -> list[Tensor]:
    """Views of ``x`` of those lengths along ``axis``. ValueError where they do not add up to the size there."""
    along = normalise_axis(axis, x.ndim)
    if min(lengths, default=0) < 0 or sum(lengths) != x.shape[along]:
        raise ValueError(f"lengths {list(lengths)} do not add up to the {x.shape[along]} elements on axis {along}")
    before = (slice(None),) * along
    return [x[(*before, slice(end - length, end))] for length, end in zip(lengths, accumulate(lengths), strict=True)]

"""Unique: each element, or each slice, once."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import BFLOAT16, Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.registry import op


@op("Unique", versions=(11, 28))
def unique(x: Tensor, *, axis: int | None, sorted: int, n_outputs: int) -> tuple[Tensor, ...]:
    """The different slices along ``axis``, or elements if it is absent; where each is first; which each is; how often.

    They come in ascending order (slices by their first difference), or as they are met. NaN equals NaN and comes
    last; 0 and -0 are equal. Source: Unique-28.
    """
    if axis is not None:
        axis = normalise_axis(axis, x.ndim)
    first, inverse, counts = _groups(_ranks(x), axis)
    if not sorted:
        met = np.argsort(first)
        place = np.empty_like(met)
        place[met] = np.arange(met.size)
        first, inverse, counts = first[met], place[inverse], counts[met]
    values = x.reshape(-1)[first] if axis is None else x.take(first, axis)
    return (values, *(np.asarray(part, np.int64) for part in (first, inverse, counts)))[:n_outputs]


def _ranks(x: Tensor) -> Tensor:
    """Integers that compare as the elements do, equal ones as equal."""
    comparable = x.astype(np.float32) if x.dtype == BFLOAT16 else x
    _, ranks = np.unique(comparable.reshape(-1), return_inverse=True)
    return np.reshape(ranks, x.shape)


def _groups(ranks: Tensor, axis: int | None) -> tuple[Tensor, Tensor, Tensor]:
    _, first, inverse, counts = np.unique(ranks, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    return first, inverse.reshape(-1), counts

"""TensorScatter: new steps written into a cache."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.registry import op


@op("TensorScatter", versions=(24,))
def tensor_scatter(past_cache: Tensor, update: Tensor, write_indices: Tensor | None, *, axis: int, mode: str) -> Tensor:
    """``past_cache`` with each sample's ``update`` written along ``axis``, from its write index on (0, if absent).

    ``update`` has the shape of the cache, or is shorter along ``axis``. ValueError where the shapes do not fit, where
    ``axis`` is the batch axis, and where a ``linear`` write leaves the cache; ``circular`` goes on at its beginning.
    Source: TensorScatter-24.
    """
    axis = normalise_axis(axis, past_cache.ndim)
    if axis == 0:
        raise ValueError(f"axis is 0, the batch axis of a cache {list(past_cache.shape)}")
    if mode not in ("linear", "circular"):
        raise ValueError(f"mode {mode!r} is neither 'linear' nor 'circular'")
    batch, limit = past_cache.shape[0], past_cache.shape[axis]
    fitting = update.ndim == past_cache.ndim and update.shape[axis] <= limit
    if not fitting or (*update.shape[:axis], limit, *update.shape[axis + 1 :]) != past_cache.shape:
        raise ValueError(f"an update {list(update.shape)} does not fit a cache {list(past_cache.shape)} on axis {axis}")
    starts = np.zeros(batch, np.int64) if write_indices is None else write_indices
    if starts.shape != (batch,):
        raise ValueError(f"write_indices is {list(starts.shape)}, expected [{batch}]")
    steps = update.shape[axis]
    if mode == "linear" and ((starts < 0) | (starts > limit - steps)).any():
        raise ValueError(f"{steps} steps from {starts.tolist()} on are outside a cache of {limit}")
    places = starts[:, np.newaxis] + np.arange(steps)
    present = past_cache.copy()
    by_step = np.moveaxis(present, axis, 1)
    by_step[np.arange(batch)[:, np.newaxis], places % max(limit, 1)] = np.moveaxis(update, axis, 1)
    return present

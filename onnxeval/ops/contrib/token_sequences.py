"""What generative models do with sequences: forbid repeated n-grams, align two in time, cut windows."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import BFLOAT16, Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops.contrib._typed import ANY, FLOAT32, INT64, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("NGramRepeatBlock", "IT", I=(INT64,), T=(FLOAT32,))
def ngram_repeat_block(input_ids: Tensor, scores: Tensor, *, ngram_size: int) -> Tensor:
    """The scores (B, V), -inf where a token would end an n-gram that the ids (B, S) have already.

    Raises ValueError where shapes do not fit together, and for such a token outside the scores.
    Source: com.microsoft.NGramRepeatBlock-1.
    """
    if ngram_size < 1:
        raise ValueError(f"ngram_size {ngram_size} is not positive")
    if input_ids.ndim != 2 or scores.ndim != 2 or len(input_ids) != len(scores):
        shapes = f"{shape_text(input_ids.shape)} and {shape_text(scores.shape)}"
        raise ValueError(f"input_ids and scores have shapes {shapes}, expected [B, S] and [B, V]")
    result = scores.copy()
    steps = input_ids.shape[1]
    if steps < ngram_size:
        return result
    windows = np.lib.stride_tricks.sliding_window_view(input_ids, ngram_size, axis=1)
    last = input_ids[:, steps - ngram_size + 1 :]
    entry, place = np.nonzero((windows[:, :, :-1] == last[:, np.newaxis]).all(axis=2))
    tokens = windows[entry, place, -1]
    if np.any((tokens < 0) | (tokens >= scores.shape[1])):
        raise ValueError(f"tokens {tokens.min()} to {tokens.max()} leave the {scores.shape[1]} scores")
    result[entry, tokens] = -np.inf
    return result


@microsoft_op("DynamicTimeWarping", "T", T=(FLOAT32,))
def dynamic_time_warping(costs: Tensor) -> Tensor:
    """(M, N) or (1, M, N) -> int32 (2, x): rows and columns of the cheapest way from the first cost to the last.

    A step goes one row, one column or both ahead. One of both, or of a row, is taken where it is cheaper than the other
    two, else one along the row. Sums are in float32. Source: com.microsoft.DynamicTimeWarping-1.
    """
    if costs.ndim == 3 and len(costs) == 1:
        costs = costs[0]
    if costs.ndim != 2 or not costs.size:
        raise ValueError(f"the costs have shape {shape_text(costs.shape)}, expected [M, N] or [1, M, N]")
    n_rows, n_columns = costs.shape
    sums = np.full((n_rows + 1, n_columns + 1), np.inf, np.float32)
    sums[0, 0] = 0
    steps = np.zeros((n_rows + 1, n_columns + 1), np.int8)  # 0 both, 1 a row, 2 a column
    for diagonal in range(n_rows + n_columns - 1):
        i = np.arange(max(0, diagonal - n_columns + 1), min(n_rows, diagonal + 1))
        j = diagonal - i
        both, row, column = sums[i, j], sums[i, j + 1], sums[i + 1, j]
        step = np.where((both < row) & (both < column), 0, np.where((row < both) & (row < column), 1, 2))
        sums[i + 1, j + 1] = costs[i, j] + np.choose(step, [both, row, column])
        steps[i + 1, j + 1] = step
    return _way_back(steps)


def _way_back(steps: Tensor) -> Tensor:
    i, j = steps.shape[0] - 1, steps.shape[1] - 1
    way = []
    while i > 0 and j > 0:
        way.append((i - 1, j - 1))
        step = 2 if i == 1 else 1 if j == 1 else steps[i, j]
        i, j = i - (step != 2), j - (step != 1)
    return np.array(way[::-1], np.int32).T.copy()


@microsoft_op("UnfoldTensor", "T", T=(*ANY, BFLOAT16))
def unfold_tensor(x: Tensor, *, dim: int = -1, size: int, step: int = 1) -> Tensor:
    """The windows of ``size`` elements along ``dim``, every ``step`` elements one, in a last axis of its own.

    Raises ValueError where no window fits. Source: com.microsoft.UnfoldTensor-1.
    """
    axis = normalise_axis(dim, x.ndim)
    if not 1 <= size <= x.shape[axis] or step < 1:
        raise ValueError(f"size {size} and step {step} do not fit {x.shape[axis]} elements on axis {axis}")
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=axis)
    return windows[(slice(None),) * axis + (slice(None, None, step),)]

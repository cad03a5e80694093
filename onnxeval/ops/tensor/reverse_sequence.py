"""ReverseSequence: each sequence of a batch backward, up to its length."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.registry import op


@op("ReverseSequence", versions=(10, 28))
def reverse_sequence(x: Tensor, sequence_lens: Tensor, *, batch_axis: int, time_axis: int) -> Tensor:
    """``x`` with the first ``sequence_lens[i]`` steps of sequence ``i`` reversed, the others as they are.

    ValueError where the axes are not 0 and 1, and where a length is outside [0, steps]. Source: ReverseSequence-28.
    """
    if x.ndim < 2:
        raise ValueError(f"the input has rank {x.ndim}, expected 2 at least")
    if {batch_axis, time_axis} != {0, 1}:
        raise ValueError(f"batch_axis {batch_axis} and time_axis {time_axis} are not 0 and 1")
    batch, steps = x.shape[batch_axis], x.shape[time_axis]
    if sequence_lens.shape != (batch,):
        raise ValueError(f"sequence_lens is {list(sequence_lens.shape)}, expected [{batch}]")
    outside = (sequence_lens < 0) | (sequence_lens > steps)
    if outside.any():
        raise ValueError(f"a length of {sequence_lens[outside][0]} is outside [0, {steps}]")
    step, length = np.arange(steps), sequence_lens[:, np.newaxis]
    sources = np.where(step < length, length - 1 - step, step)
    by_batch = np.moveaxis(x, batch_axis, 0)
    return np.moveaxis(by_batch[np.arange(batch)[:, np.newaxis], sources], 0, batch_axis)

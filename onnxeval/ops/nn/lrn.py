"""LRN: divide by the energy of the neighbouring channels."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op


@op("LRN", versions=(1, 13))
@in_float32
def lrn(x: Tensor, *, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    """``x`` / (bias + alpha / size * sum of squares over ``size`` channels) ** beta, for (N, C, D1, ..., Dn).

    The window reaches floor((size - 1) / 2) channels down and ceil((size - 1) / 2) up; it ends at the borders.
    Source: LRN-13.
    """
    if x.ndim < 2:
        raise ValueError(f"the input has rank {x.ndim}, expected at least 2 (N, C, D1, ..., Dn)")
    if size < 1:
        raise ValueError(f"size {size} is not positive")
    squares = np.square(x)
    energy = squares.copy()
    farthest = x.shape[1] - 1
    for distance in range(1, min((size - 1) // 2, farthest) + 1):
        energy[:, distance:] += squares[:, :-distance]
    for distance in range(1, min(size // 2, farthest) + 1):
        energy[:, :-distance] += squares[:, distance:]
    return x / np.power(bias + alpha / size * energy, beta)

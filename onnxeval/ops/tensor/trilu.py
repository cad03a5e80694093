"""Trilu: the triangles of matrices."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.tensor._zero import zero
from onnxeval.registry import op


@op("Trilu", versions=(14,))
def trilu(x: Tensor, k: Tensor | None, *, upper: int) -> Tensor:
    """(..., N, M): what is on and above, or on and below, diagonal ``k``; the rest zero. Source: Trilu-14.

    ValueError where the rank is below 2 or ``k`` is not one number.
    """
    if x.ndim < 2:
        raise ValueError(f"the input has rank {x.ndim}, expected 2 at least")
    if k is not None and k.size != 1:
        raise ValueError(f"k has {k.size} elements, expected 1")
    diagonal = 0 if k is None else k.item()
    offset = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, np.newaxis]
    return np.where(offset >= diagonal if upper else offset <= diagonal, x, zero(x.dtype))

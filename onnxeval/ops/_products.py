"""Matrix products that BLAS is slow at as they are written."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor

#: Up to so many rows the other way round is quicker.
_FEW = 64


def times_transposed(a: Tensor, b: Tensor) -> Tensor:
    """(..., M, K) times the transpose of (..., N, K).

    For few rows it is the transpose of b times the transpose of a: then the large matrix is read as it lies in memory.
    """
    if 1 < a.shape[-2] <= _FEW:
        return np.ascontiguousarray((b @ a.swapaxes(-1, -2)).swapaxes(-1, -2))
    result: Tensor = a @ b.swapaxes(-1, -2)
    return result

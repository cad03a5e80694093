"""EyeLike: a matrix with ones on a diagonal."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, dtype_of
from onnxeval.ops._cast import convert
from onnxeval.registry import op


@op("EyeLike", versions=(9, 22))
def eye_like(x: Tensor, *, dtype: int | None, k: int) -> Tensor:
    """Ones at [i, i + k], else zeros, of the shape of ``x`` and of type ``dtype``, else that of ``x``.

    ValueError where ``x`` is not a matrix. Source: EyeLike-22.
    """
    if x.ndim != 2:
        raise ValueError(f"the input has rank {x.ndim}, expected 2")
    rows, columns = x.shape
    offset = max(min(k, columns), -rows)  # beyond the corners no diagonal is left
    ones = np.eye(rows, columns, offset, dtype=bool)
    return convert(ones, x.dtype if dtype is None else dtype_of(dtype))

"""Det. The versions differ in types alone."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op


@op("Det", versions=(11, 22))
@in_float32
def det(x: Tensor) -> Tensor:
    """(..., M, M) -> (...): the determinant of each matrix, 1 where M is 0.

    Raises ValueError where the matrices are not square. Source: Det-22.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"the input has shape {list(x.shape)}, expected square matrices in the last two axes")
    result: Tensor = np.linalg.det(x)
    return result

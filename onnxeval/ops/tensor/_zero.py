"""The element that stands where there is nothing."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import STRING, DType, Tensor


def zero(dtype: DType) -> Tensor:
    """0, False, "" or, for float8e8m0 that has no 0, its least number; of rank 0."""
    return np.array("", STRING) if dtype == STRING else np.zeros((), dtype)

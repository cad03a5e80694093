"""Channels last and channels first."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.values import shape_text


def channels_first(x: Tensor, *, name: str = "the input") -> Tensor:
    """(N, D1, ..., C) -> (N, C, D1, ...), a view. Raises ValueError where the rank is below 3."""
    if x.ndim < 3:
        raise ValueError(f"{name} has shape {shape_text(x.shape)}, expected rank 3 at least")
    return np.moveaxis(x, -1, 1)


def channels_last(x: Tensor) -> Tensor:
    """(N, C, D1, ...) -> (N, D1, ..., C), a view."""
    return np.moveaxis(x, 1, -1)

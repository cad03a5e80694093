"""Inputs that the standard calls scalars."""

from __future__ import annotations

from typing import Any

from onnxeval.dtypes import Tensor
from onnxeval.values import shape_text


def scalar(x: Tensor, *, name: str) -> Any:
    """The one element of a tensor as a Python number, whatever its rank.

    Raises ValueError where there is not exactly one.
    """
    if x.size != 1:
        raise ValueError(f"{name} must be a scalar, it has shape {shape_text(x.shape)}")
    return x.item()

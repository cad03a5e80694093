"""Sums of a bias that onnxruntime fuses with what comes after: a residual, a softmax."""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOAT64, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("BiasAdd", "TTT", T=(FLOAT16, FLOAT32))
@in_float32
def bias_add(x: Tensor, bias: Tensor, skip: Tensor) -> Tensor:
    """``x`` + ``bias`` + ``skip`` of (N, S, C), (C,) and (N, S, C). Source: com.microsoft.BiasAdd-1."""
    if x.ndim != 3 or bias.shape != x.shape[2:] or skip.shape != x.shape:
        shapes = f"{shape_text(x.shape)}, {shape_text(bias.shape)} and {shape_text(skip.shape)}"
        raise ValueError(f"X, bias and skip have shapes {shapes}, expected [N, S, C], [C] and [N, S, C]")
    return x + bias + skip


@microsoft_op("BiasSoftmax", "TT", T=(FLOAT16, FLOAT32, FLOAT64))
@in_float32
def bias_softmax(
    data: Tensor,
    bias: Tensor,
    *,
    axis: int = 1,
    is_inner_broadcast: int,  # noqa: ARG001  the shapes tell it too
) -> Tensor:
    """The softmax of ``data`` + ``bias`` over ``axis`` and all axes after it together.

    Raises ValueError where the bias does not broadcast to the data. Source: com.microsoft.BiasSoftmax-1.
    """
    first = normalise_axis(axis, data.ndim)
    try:
        total = data + np.broadcast_to(bias, data.shape)
    except ValueError:
        shapes = f"{shape_text(bias.shape)} to {shape_text(data.shape)}"
        raise ValueError(f"the bias does not broadcast from {shapes}") from None
    rows = total.reshape(math.prod(data.shape[:first]), math.prod(data.shape[first:]))
    powers = np.exp(rows - rows.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True)).reshape(data.shape)

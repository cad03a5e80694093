"""CausalConvWithState: each channel convolved with a kernel of its own, over itself and its past alone."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops._windows import windows_of
from onnxeval.ops.nn._correlate import check_bias, correlate, per_channel
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("CausalConvWithState", versions=(27,))
@in_float32
def causal_conv_with_state(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    past_state: Tensor | None,
    *,
    activation: str,
    allocate: Allocate,
) -> tuple[Tensor, Tensor]:
    """(B, C, L), (C, 1, k), (C,), (B, C, k - 1) -> the output (B, C, L) and the last k - 1 elements seen.

    The past, zero where there is none, comes before the input. ``activation`` is "none", "silu" or, as another
    name for it, "swish": y * sigmoid(y).

    Raises ValueError where shapes do not fit together and for an unknown activation. Source: CausalConvWithState-27.
    """
    if activation not in ("none", "silu", "swish"):
        raise ValueError(f"activation {activation!r} is none of 'none', 'silu', 'swish'")
    if x.ndim != 3:
        raise ValueError(f"the input has rank {x.ndim}, expected 3 (B, C, L)")
    batch, channels, length = x.shape
    if weight.ndim != 3 or weight.shape[:2] != (channels, 1) or not weight.shape[2]:
        raise ValueError(f"the weight has shape {shape_text(weight.shape)}, expected [{channels}, 1, k] with k >= 1")
    check_bias(bias, channels)
    kernel = weight.shape[2]
    if past_state is None:
        past_state = np.zeros((batch, channels, kernel - 1), x.dtype)
    elif past_state.shape != (batch, channels, kernel - 1):
        expected = [batch, channels, kernel - 1]
        raise ValueError(f"past_state has shape {shape_text(past_state.shape)}, expected {expected}")
    seen = np.concatenate((past_state, x), axis=2)
    if not length:
        return x, seen
    windows = windows_of(seen.shape[2:], (kernel,), auto_pad="NOTSET", pads=None, strides=None)
    y = correlate(seen, weight, windows, channels, allocate)
    if bias is not None:
        y += per_channel(bias, y.ndim)
    if activation != "none":
        y /= 1 + np.exp(-y)
    return y, seen[:, :, length:]

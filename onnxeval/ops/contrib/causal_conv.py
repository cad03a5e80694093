"""CausalConvWithState of onnxruntime: spaced kernels, channels last, and states that are kept."""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._typed import FLOATS, microsoft_op
from onnxeval.ops.contrib.linear_attention import LONGEST_WINDOW
from onnxeval.values import shape_text


@microsoft_op("CausalConvWithState", "TTTT", T=FLOATS)
@in_float32
def causal_conv_with_state(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    past_state: Tensor | None,
    *,
    activation: str = "none",
    channels_last: int = 0,
    dilation: int = 1,
    input_channel_offset: int = 0,
    input_channels: int = 0,
    ndim: int = 1,
    state_channels_last: int = -1,
    state_length: int = 0,
    state_update_capacity: int = 0,
    state_window: int = 0,
) -> tuple[Tensor, Tensor]:
    """(B, C, L), (C, 1, k), (C,), (B, C, n) -> the output (B, C, L) and the last n elements seen.

    n is (k - 1) * ``dilation``. Each channel is convolved over its past, zeros where there is none, and itself. With
    ``channels_last`` the input and the states are (B, L, ...) and (B, n, ...), the channels in any number of axes. With
    a ``state_window`` W the states are (W, B, ...): those after each of the last W elements, the newest last, which is
    the one that is read; zeros where there were fewer elements. ``activation`` is "none", "silu" or, as another name
    for it, "swish".

    Raises ValueError where shapes do not fit together, and for more dimensions and other channels and states than this,
    which only onnxruntime's device kernels have. Source: com.microsoft.CausalConvWithState-1.
    """
    if activation not in ("none", "silu", "swish"):
        raise ValueError(f"activation {activation!r} is none of 'none', 'silu', 'swish'")
    extensions = (input_channel_offset, input_channels, state_channels_last + 1, state_length, state_update_capacity)
    if ndim != 1 or any(extensions):
        raise ValueError("more dimensions, parts of the channels and other states are for devices alone")
    if dilation < 1 or not 0 <= state_window <= LONGEST_WINDOW:
        raise ValueError(f"dilation {dilation} is below 1 or state_window {state_window} outside [0, {LONGEST_WINDOW}]")
    lined_up = _channels_first(x) if channels_last else x
    if lined_up.ndim != 3:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [B, C, L]")
    batch, channels, length = lined_up.shape
    if weight.ndim != 3 or weight.shape[:2] != (channels, 1) or not weight.shape[2]:
        raise ValueError(f"the weight has shape {shape_text(weight.shape)}, expected [{channels}, 1, k]")
    if bias is not None and bias.shape != (channels,):
        raise ValueError(f"the bias has shape {shape_text(bias.shape)}, expected [{channels}]")
    reach = (weight.shape[2] - 1) * dilation
    shape = (batch, reach, *x.shape[2:]) if channels_last else (batch, channels, reach)
    past = _read(past_state, shape, state_window, x.dtype)
    seen = np.concatenate([_channels_first(past) if channels_last else past, lined_up], axis=2)
    y = np.zeros_like(lined_up)
    for tap in range(weight.shape[2]):
        y += weight[:, :, tap] * seen[:, :, tap * dilation : tap * dilation + length]
    if bias is not None:
        y += bias[:, np.newaxis]
    if activation != "none":
        y = curves.silu(y)
    states = [seen[:, :, end : end + reach] for end in range(max(0, length - state_window) + 1, length + 1)]
    if not state_window:
        states = [seen[:, :, length:]]
    if channels_last:
        y = y.transpose(0, 2, 1).reshape(x.shape)
        states = [state.transpose(0, 2, 1).reshape(shape) for state in states]
    if not state_window:
        return y, states[0]
    blank = [np.zeros(shape, x.dtype)] * (state_window - len(states))
    return y, np.stack([*blank, *states])


def _channels_first(x: Tensor) -> Tensor:
    """(B, L, d1, d2, ...) -> (B, d1 * d2 * ..., L)."""
    if x.ndim < 3:
        raise ValueError(f"a tensor with channels last has shape {shape_text(x.shape)}, expected [B, L, C]")
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:])).transpose(0, 2, 1)


def _read(state: Tensor | None, shape: tuple[int, ...], window: int, dtype: np.dtype[np.float32]) -> Tensor:
    expected = (window, *shape) if window else shape
    if state is None:
        return np.zeros(shape, dtype)
    if state.shape != expected:
        raise ValueError(f"past_state has shape {shape_text(state.shape)}, expected {shape_text(expected)}")
    return state[-1] if window else state

"""Convolutions of onnxruntime over the past: spaced kernels, channels last, and states that are kept."""

from __future__ import annotations

import itertools
import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._typed import FLOATS, INT32, microsoft_op
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


@microsoft_op("VarlenCausalConvWithState", "TTMTTMTT", outputs=3, T=FLOATS, M=(INT32,))
@in_float32
def varlen_causal_conv_with_state(
    x: Tensor,
    weight: Tensor,
    cumulative_sequence_length: Tensor,
    bias: Tensor | None,
    initial_state: Tensor,
    capture_count: Tensor | None,
    kernel_delta: Tensor | None,
    previous_mask: Tensor | None,
    *,
    activation: str = "none",
    delta_offset: int = 0,  # noqa: ARG001  says more of the deltas
    dilation: int = 1,
    group_size: int = 1,  # noqa: ARG001  says more of the deltas
    state_update_capacity: int = 0,
) -> tuple[Tensor, ...]:
    """Tokens (total, C) of sequences that end at the sums (B + 1,) -> (Y, states, the first tokens).

    Each sequence is convolved as in `causal_conv_with_state`, from its state (B, C, (k - 1) * ``dilation``) on. The
    third output, with a ``state_update_capacity`` n, is (B, n, C): as many of the first tokens as ``capture_count``
    (B,) says and there are, then zeros.

    Raises ValueError where shapes do not fit together, and for deltas of the kernel, which are for devices alone.
    Source: com.microsoft.VarlenCausalConvWithState-1.
    """
    if kernel_delta is not None or previous_mask is not None:
        raise ValueError("kernels that change from token to token are for devices alone")
    if not 0 <= state_update_capacity <= LONGEST_WINDOW or (capture_count is None) == (state_update_capacity > 0):
        raise ValueError(f"state_update_capacity {state_update_capacity} and capture_count do not go together")
    ends = cumulative_sequence_length
    if x.ndim != 2 or ends.ndim != 1 or not ends.size or ends[0] or ends[-1] != len(x) or np.any(np.diff(ends) < 1):
        raise ValueError(f"the input has shape {shape_text(x.shape)}, its sequences end at {ends.tolist()}")
    batch, channels = len(ends) - 1, x.shape[1]
    if initial_state.ndim != 3 or len(initial_state) != batch:
        raise ValueError(f"initial_state has shape {shape_text(initial_state.shape)}, expected [{batch}, C, n]")
    if capture_count is not None and capture_count.shape != (batch,):
        raise ValueError(f"capture_count has shape {shape_text(capture_count.shape)}, expected [{batch}]")
    y, states = np.zeros_like(x), np.zeros_like(initial_state)
    captured = np.zeros((batch, state_update_capacity, channels), x.dtype)
    for entry, (start, end) in enumerate(itertools.pairwise(ends.tolist())):
        past = initial_state[entry : entry + 1]
        one, state = causal_conv_with_state(
            x[np.newaxis, start:end].swapaxes(1, 2), weight, bias, past, activation=activation, dilation=dilation
        )
        y[start:end], states[entry] = one[0].T, state[0]
        if capture_count is not None:
            count = max(0, min(int(capture_count[entry]), state_update_capacity, end - start))
            captured[entry, :count] = x[start : start + count]
    return (y, states, captured) if state_update_capacity else (y, states)


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

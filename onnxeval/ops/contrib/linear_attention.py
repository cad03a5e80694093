"""LinearAttention of onnxruntime, its gates, and the gated norm and sum that stand around it."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import BFLOAT16, Tensor, name_of
from onnxeval.ops._cast import convert
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT32, FLOATS, microsoft_op
from onnxeval.values import shape_text

#: The most states that a window may hold.
LONGEST_WINDOW = 8


@microsoft_op("LinearAttention", "TTTSTT", T=FLOATS, S=FLOATS)
def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_state: Tensor | None,
    decay: Tensor | None,
    beta: Tensor | None,
    *,
    chunk_size: int = 64,  # noqa: ARG001  a hint for implementations that go by chunks
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    state_window: int = 0,
    update_rule: str = "gated_delta",
) -> tuple[Tensor, Tensor]:
    """LinearAttention-27, where queries may also have fewer heads, which the states share, and states be kept.

    With a ``state_window`` W the state is (W, B, H, dk, dv): those after each of the last W tokens, the newest last,
    which is the one that is read; zeros where there were fewer tokens.

    Raises ValueError where shapes do not fit together. Source: com.microsoft.LinearAttention-1.
    """
    if not 0 <= state_window <= LONGEST_WINDOW:
        raise ValueError(f"state_window {state_window} is outside [0, {LONGEST_WINDOW}]")
    if past_state is not None and state_window:
        if past_state.ndim != 5 or len(past_state) != state_window:
            raise ValueError(f"past_state has shape {shape_text(past_state.shape)}, expected {state_window} states")
        past_state = past_state[-1]
    if 0 < q_num_heads < kv_num_heads:
        query = _repeated(query, q_num_heads, kv_num_heads)
        q_num_heads = kv_num_heads

    heads = {"kv_num_heads": kv_num_heads, "q_num_heads": q_num_heads}
    if not state_window:
        outputs: tuple[Tensor, Tensor] = standard("nn", "LinearAttention", 27)(
            query, key, value, past_state, decay, beta, chunk_size=1, scale=scale, update_rule=update_rule, **heads
        )
        return outputs
    state = _first_state(query, value, past_state, q_num_heads, kv_num_heads)
    tokens = query.shape[1]
    first = max(0, tokens - state_window)
    parts, states = [], []
    for part in (slice(first), *(slice(token, token + 1) for token in range(first, tokens))):
        gates = [None if gate is None else gate[:, part] for gate in (decay, beta)]
        tensors = (query[:, part], key[:, part], value[:, part], state, *gates)
        y, state = standard("nn", "LinearAttention", 27)(
            *tensors, chunk_size=1, scale=scale, update_rule=update_rule, **heads
        )
        parts.append(y)
        states.append(state)
    blank = [np.zeros_like(state)] * (state_window - (tokens - first))
    state_type = query.dtype if past_state is None else past_state.dtype
    return np.concatenate(parts, axis=1), np.stack([*blank, *states[1:]]).astype(state_type)


@microsoft_op("LinearAttentionGate", "TFFT", outputs=2, T=FLOATS, F=(FLOAT32,))
def linear_attention_gate(
    a: Tensor, dt_bias: Tensor, decay_scale: Tensor, b: Tensor | None, *, n_outputs: int
) -> tuple[Tensor, ...]:
    """(``decay_scale`` * softplus(a + ``dt_bias``), sigmoid(b)) of (B, T, H) and vectors (H,), computed in float32.

    Raises ValueError where shapes do not fit together and where the second output has no b.
    Source: com.microsoft.LinearAttentionGate-1.
    """
    if a.ndim != 3 or not dt_bias.shape == decay_scale.shape == a.shape[2:]:
        shapes = f"{shape_text(a.shape)}, {shape_text(dt_bias.shape)} and {shape_text(decay_scale.shape)}"
        raise ValueError(f"a, dt_bias and decay_scale have shapes {shapes}, expected [B, T, H], [H] and [H]")
    decay = convert(decay_scale * curves.softplus(a.astype(np.float32) + dt_bias), a.dtype)
    if n_outputs < 2:
        return (decay,)
    if b is None or b.shape != a.shape:
        raise ValueError(f"beta needs b of shape {shape_text(a.shape)}, {'none' if b is None else b.shape} is given")
    return decay, convert(curves.sigmoid(b.astype(np.float32)), a.dtype)


@microsoft_op("GatedRMSNorm", "TTT", T=FLOATS)
@in_float32
def gated_rms_norm(
    x: Tensor, scale: Tensor, gate: Tensor, *, activation: str = "silu", epsilon: float = 1e-5
) -> Tensor:
    """``x`` (..., n * C) by the root mean square of each group of C, times ``scale`` (C,), times the activated gate.

    ``activation`` is "silu", "swish" as another name of it, or "sigmoid". Raises ValueError for others and where shapes
    do not fit together. Source: com.microsoft.GatedRMSNorm-1.
    """
    if activation not in ("silu", "swish", "sigmoid"):
        raise ValueError(f"activation {activation!r} is none of 'silu', 'swish', 'sigmoid'")
    if scale.ndim != 1 or not scale.size or not x.ndim or x.shape[-1] % scale.size or gate.shape != x.shape:
        shapes = f"{shape_text(x.shape)}, {shape_text(scale.shape)} and {shape_text(gate.shape)}"
        raise ValueError(f"input, scale and gate have shapes {shapes}")
    groups = x.reshape(*x.shape[:-1], -1, scale.size)
    mean = np.mean(groups * groups, axis=-1, keepdims=True)
    normed = (groups / np.sqrt(mean + np.float32(epsilon)) * scale).reshape(x.shape)
    return np.asarray(normed * (curves.sigmoid(gate) if activation == "sigmoid" else curves.silu(gate)))


@microsoft_op("GatedAdd", "TTTT", T=FLOATS)
def gated_add(x: Tensor, y: Tensor, gate: Tensor, gate_weight: Tensor | None) -> Tensor:
    """``x`` + ``y`` * ``gate`` of (..., C), (..., C) and (..., 1), the product rounded before the sum.

    With ``gate_weight`` (K, 1) the gate is sigmoid(``gate`` (..., K) times it); all steps round to bfloat16, which the
    tensors have to be. Raises ValueError where shapes do not fit together, TypeError for other types than bfloat16.
    Source: com.microsoft.GatedAdd-1.
    """
    width = 1 if gate_weight is None else len(gate_weight)
    if x.shape != y.shape or gate.shape != (*x.shape[:-1], width) or not x.ndim:
        shapes = f"{shape_text(x.shape)}, {shape_text(y.shape)} and {shape_text(gate.shape)}"
        raise ValueError(f"X, Y and gate have shapes {shapes}, expected [..., C], [..., C] and [..., {width}]")
    if gate_weight is not None:
        if x.dtype != BFLOAT16:
            raise TypeError(f"a gate that is projected is {name_of(x.dtype)}, expected bfloat16")
        if gate_weight.shape != (width, 1):
            raise ValueError(f"gate_weight has shape {shape_text(gate_weight.shape)}, expected [{width}, 1]")
        projected = convert(gate.astype(np.float32) @ gate_weight.astype(np.float32), x.dtype)
        gate = convert(curves.sigmoid(projected.astype(np.float32)), x.dtype)
    product = convert(y.astype(np.float32) * gate.astype(np.float32), x.dtype)
    return convert(x.astype(np.float32) + product.astype(np.float32), x.dtype)


def _repeated(query: Tensor, heads: int, times: int) -> Tensor:
    """(B, T, heads * d) -> (B, T, times * d): each head again and again until there are so many."""
    if times % heads or query.ndim != 3 or query.shape[2] % heads:
        raise ValueError(f"{heads} heads of a query {shape_text(query.shape)} do not serve {times} states evenly")
    split = query.reshape(*query.shape[:2], heads, query.shape[2] // heads)
    return split.repeat(times // heads, axis=2).reshape(*query.shape[:2], -1)


def _first_state(query: Tensor, value: Tensor, past: Tensor | None, q_heads: int, kv_heads: int) -> Tensor:
    if past is not None:
        return past.astype(np.float32)
    if query.ndim != 3 or value.ndim != 3 or q_heads < 1 or kv_heads < 1:
        raise ValueError(f"query {shape_text(query.shape)} and value {shape_text(value.shape)} are not of rank 3")
    return np.zeros((len(query), kv_heads, query.shape[2] // q_heads, value.shape[2] // kv_heads), np.float32)

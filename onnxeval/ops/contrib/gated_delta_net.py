"""GatedDeltaNet: linear attention over sequences that lie in one row after the other."""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._typed import FLOAT32, FLOATS, INT32, microsoft_op
from onnxeval.ops.contrib.linear_attention import LONGEST_WINDOW
from onnxeval.values import shape_text

#: What keeps the length of a vector of zeros from being divided by.
_TINY = 1e-12


@microsoft_op("GatedDeltaNet", "TTTIGGFFFII", outputs=3, T=FLOATS, G=FLOATS, F=(FLOAT32,), I=(INT32,))
def gated_delta_net(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    cu_seqlens: Tensor | None,
    decay: Tensor | None,
    beta: Tensor | None,
    initial_state: Tensor | None,
    a_log: Tensor | None,
    dt_bias: Tensor | None,
    capture_count: Tensor | None,
    state_update_active: Tensor | None,
    *,
    beta_activation: str = "none",
    chunk_size: int = 64,  # noqa: ARG001  a hint for implementations that go by chunks
    gate_activation: str = "none",
    gate_lower_bound: float = -5.0,
    qk_l2_norm: int = 0,
    scale: float = 0.0,
    state_update_capacity: int = 0,
    update_rule: str = "gated_delta",
) -> tuple[Tensor, ...]:
    """(Y, state, updates) of queries and keys (tokens, N, D) and values (tokens, Nv, Dv), or all of them packed.

    The tokens are those of all sequences: ``cu_seqlens`` says where each ends, without it they are equally long. (B, S)
    may stand for the tokens, too. Of each head of the values, a state S (Dv, D) fades by exp(decay), gains
    beta (value - S key) key^T, and S query ``scale`` is the output; the rules without "gated" do not fade, those
    without "delta" gain value key^T. The decay is (tokens, Nv) or (tokens, Nv, D). Heads of the values share those of
    the keys.

    ``gate_activation`` "softplus" or "qwen" makes the decay -exp(``a_log``) softplus(decay + ``dt_bias``), "sigmoid" or
    "kda" ``gate_lower_bound`` sigmoid(exp(``a_log``) (decay + ``dt_bias``)); ``beta_activation`` is "sigmoid" or
    "none"; ``qk_l2_norm`` divides the heads of queries and keys by their length. All is computed in float32.

    Updates of a ``state_update_capacity`` C hold exp(decay), the keys and what is added for each of the first
    ``capture_count`` tokens of a sequence, zeros for others. Raises ValueError where shapes do not fit together.
    Source: com.microsoft.GatedDeltaNet-1.
    """
    if not 0 <= state_update_capacity <= LONGEST_WINDOW:
        raise ValueError(f"state_update_capacity {state_update_capacity} is outside [0, {LONGEST_WINDOW}]")
    if (capture_count is None) == bool(state_update_capacity):
        raise ValueError(f"capture_count goes with a positive state_update_capacity, which is {state_update_capacity}")
    leading = query.shape[: 2 if query.ndim == 4 or (key is None and query.ndim == 3) else 1]
    q, k, v = _heads(query, key, value, initial_state, leading)
    tokens, heads = v.shape[:2]
    fade = _fade(decay, update_rule, gate_activation, (tokens, heads, k.shape[2]), a_log, dt_bias, gate_lower_bound)
    rate = _rate(beta, update_rule, beta_activation, (tokens, heads))
    if qk_l2_norm:
        q, k = (x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + np.float32(_TINY)) for x in (q, k))
    bounds = _bounds(cu_seqlens, leading, tokens, initial_state)
    shape = (len(bounds) - 1, heads, v.shape[2], k.shape[2])
    if initial_state is not None and initial_state.shape != shape:
        raise ValueError(f"initial_state has shape {shape_text(initial_state.shape)}, expected {shape_text(shape)}")
    states = np.zeros(shape, np.float32) if initial_state is None else initial_state.copy()
    shared = heads // k.shape[1]
    factor = scale or 1 / math.sqrt(k.shape[2])
    y, added = np.zeros_like(v), np.zeros_like(v)
    for number, state in enumerate(states):
        for token in range(bounds[number], bounds[number + 1]):
            one_key, one_query = (x[token].repeat(shared, axis=0)[:, np.newaxis] for x in (k, q))  # (Nv, 1, D)
            news = v[token]
            state *= fade[token, :, np.newaxis]
            if rate is not None:
                news = rate[token, :, np.newaxis] * (news - (state * one_key).sum(axis=2))
            state += news[:, :, np.newaxis] * one_key
            added[token] = news
            y[token] = (state * one_query).sum(axis=2) * factor
    result = y.astype(query.dtype).reshape(*leading, *y.shape[1:])
    if capture_count is None:
        return result, states
    active = state_update_active is None or bool(state_update_active.any())
    counts = capture_count if active else np.zeros_like(capture_count)
    return result, states, _updates((fade, k, added), counts, bounds, state_update_capacity)


def _heads(
    query: Tensor, key: Tensor | None, value: Tensor | None, state: Tensor | None, leading: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries and keys (tokens, N, D), values (tokens, Nv, Dv) in float32."""
    tokens = math.prod(leading)
    if key is None or value is None:
        if key is not value or state is None or state.ndim != 4 or query.ndim not in (2, 3):
            raise ValueError("queries that hold keys and values need a state, which tells their sizes")
        _, value_heads, value_size, size = state.shape
        rest = query.shape[-1] - value_heads * value_size
        if rest <= 0 or rest % (2 * size):
            raise ValueError(
                f"{query.shape[-1]} features do not hold queries and keys of a state {shape_text(state.shape)}"
            )
        packed = query.reshape(tokens, -1).astype(np.float32)
        parts = np.split(packed, [rest // 2, rest], axis=1)
        shapes_of_heads = ((-1, size), (-1, size), (value_heads, value_size))
        q, k, v = (part.reshape(tokens, *heads) for part, heads in zip(parts, shapes_of_heads, strict=True))
    else:
        if any(x.ndim != len(leading) + 2 or x.shape[: len(leading)] != leading for x in (query, key, value)):
            shapes = ", ".join(shape_text(x.shape) for x in (query, key, value))
            raise ValueError(f"query, key and value have shapes {shapes}, expected [tokens, heads, size]")
        q, k, v = (x.reshape(tokens, *x.shape[-2:]).astype(np.float32) for x in (query, key, value))
    if q.shape != k.shape or not k.shape[1] or not v.shape[1] or v.shape[1] % k.shape[1]:
        raise ValueError(f"heads of queries {q.shape[1:]}, keys {k.shape[1:]} and values {v.shape[1:]} do not fit")
    return q, k, v


def _fade(
    decay: Tensor | None,
    rule: str,
    activation: str,
    shape: tuple[int, int, int],
    a_log: Tensor | None,
    dt_bias: Tensor | None,
    bound: float,
) -> Tensor:
    """What states are multiplied by, (tokens, Nv, 1 or D)."""
    if rule not in ("linear", "gated", "delta", "gated_delta"):
        raise ValueError(f"update_rule {rule!r} is none of 'linear', 'gated', 'delta', 'gated_delta'")
    if (decay is not None) != rule.startswith("gated"):
        raise ValueError(
            f"update_rule {rule!r} and the decay, which is {'absent' if decay is None else 'there'}, differ"
        )
    tokens, heads, size = shape
    if decay is None:
        return np.ones((tokens, heads, 1), np.float32)
    width = decay.size // (tokens * heads) if tokens * heads else 1
    if width not in (1, size) or decay.size != tokens * heads * width:
        raise ValueError(f"the decay has shape {shape_text(decay.shape)}, expected {[tokens, heads]} or {list(shape)}")
    raw = decay.reshape(tokens, heads, width).astype(np.float32)
    if activation == "none":
        return np.exp(raw)
    if activation not in ("softplus", "qwen", "sigmoid", "kda"):
        raise ValueError(f"gate_activation {activation!r} is none of 'none', 'softplus', 'qwen', 'sigmoid', 'kda'")
    if a_log is None or dt_bias is None or a_log.shape != (heads,) or dt_bias.size not in (heads, heads * size):
        raise ValueError(
            f"gate_activation {activation!r} needs a_log [{heads}] and dt_bias [{heads}] or of all features"
        )
    speed = np.exp(a_log)[:, np.newaxis]
    biased = raw + dt_bias.reshape(heads, -1)
    if activation in ("softplus", "qwen"):
        return np.asarray(np.exp(-speed * curves.softplus(biased)))
    return np.asarray(np.exp(np.float32(bound) * curves.sigmoid(speed * biased)))


def _rate(beta: Tensor | None, rule: str, activation: str, shape: tuple[int, int]) -> Tensor | None:
    if activation not in ("none", "sigmoid"):
        raise ValueError(f"beta_activation {activation!r} is neither 'none' nor 'sigmoid'")
    if (beta is not None) != rule.endswith("delta"):
        raise ValueError(f"update_rule {rule!r} and beta, which is {'absent' if beta is None else 'there'}, differ")
    if beta is None:
        return None
    if beta.size != math.prod(shape):
        raise ValueError(f"beta has shape {shape_text(beta.shape)}, expected {list(shape)}")
    rate = beta.reshape(shape).astype(np.float32)
    return curves.sigmoid(rate) if activation == "sigmoid" else rate


def _bounds(cu_seqlens: Tensor | None, leading: tuple[int, ...], tokens: int, state: Tensor | None) -> list[int]:
    """Where the sequences begin and end."""
    if cu_seqlens is not None:
        bounds = [int(bound) for bound in cu_seqlens.reshape(-1)]
        if len(leading) > 1 or not bounds or bounds[0] or bounds[-1] != tokens or np.any(np.diff(bounds) < 0):
            raise ValueError(f"cu_seqlens {bounds} do not cut {tokens} tokens into sequences")
        return bounds
    batch = leading[0] if len(leading) > 1 else len(state) if state is not None else 0
    if not batch or tokens % batch:
        raise ValueError(f"{tokens} tokens are not of {batch} sequences, and cu_seqlens is absent")
    return list(range(0, tokens + 1, tokens // batch)) if tokens else [0] * (batch + 1)


def _updates(parts: tuple[Tensor, ...], counts: Tensor, bounds: list[int], capacity: int) -> Tensor:
    """(B, features): of each part the first tokens of each sequence, then zeros, up to the capacity."""
    if counts.shape != (len(bounds) - 1,):
        raise ValueError(f"capture_count has shape {shape_text(counts.shape)}, expected [{len(bounds) - 1}]")
    rows = []
    for number, count in enumerate(counts):
        start, end = bounds[number], bounds[number + 1]
        kept = int(np.clip(count, 0, min(capacity, end - start)))
        blank = ((0, capacity - kept), (0, 0), (0, 0))
        rows.append(np.concatenate([np.pad(part[start : start + kept], blank).reshape(-1) for part in parts]))
    return np.stack(rows)

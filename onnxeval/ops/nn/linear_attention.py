"""LinearAttention: a state of keys times values that each token updates and then reads."""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("LinearAttention", versions=(27,))
def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_state: Tensor | None,
    decay: Tensor | None,
    beta: Tensor | None,
    *,
    chunk_size: int,  # noqa: ARG001  a hint for implementations that go by chunks
    kv_num_heads: int,
    q_num_heads: int,
    scale: float,
    update_rule: str,
) -> tuple[Tensor, Tensor]:
    """(B, T, Hq * dk), (B, T, H * dk), (B, T, H * dv) -> (B, T, Hq * dv) and the state (B, H, dk, dv).

    Token by token, in float32: the state S fades by exp(decay), gains key ⊗ value, and query ⋅ S ⋅ scale is the
    output. The rules with "delta" add key ⊗ beta (value - key ⋅ S) instead. Heads of the query share the state of
    their group. The state has the type of ``past_state``, or of the query where there is none.

    Raises ValueError where shapes do not fit together, where an input that the rule needs is missing, and for an
    unknown ``update_rule``. Source: LinearAttention-27.
    """
    if update_rule not in ("linear", "gated", "delta", "gated_delta"):
        raise ValueError(f"update_rule {update_rule!r} is none of 'linear', 'gated', 'delta', 'gated_delta'")
    if kv_num_heads < 1 or q_num_heads < 1 or q_num_heads % kv_num_heads:
        raise ValueError(f"q_num_heads {q_num_heads} is not a positive multiple of kv_num_heads {kv_num_heads}")
    queries = _heads(query, query.shape, q_num_heads, "query")
    keys = _heads(key, query.shape, kv_num_heads, "key")
    values = _heads(value, query.shape, kv_num_heads, "value")
    batch, tokens, _, width = queries.shape
    if keys.shape[3] != width:
        raise ValueError(f"heads of the query have {width} elements, heads of the key have {keys.shape[3]}")
    fade = _gate(decay, "decay", update_rule, needed=update_rule.startswith("gated"))
    rate = _gate(beta, "beta", update_rule, needed=update_rule.endswith("delta"))
    if fade is not None:
        fade = np.exp(_heads(fade, query.shape, kv_num_heads, "decay"))
        if fade.shape[3] not in (1, width):
            raise ValueError(f"heads of the decay have {fade.shape[3]} elements, expected 1 or {width}")
    if rate is not None and rate.shape not in ((batch, tokens, kv_num_heads), (batch, tokens, 1)):
        expected = f"[{batch}, {tokens}, {kv_num_heads}] or [{batch}, {tokens}, 1]"
        raise ValueError(f"beta has shape {shape_text(rate.shape)}, expected {expected}")
    shape = (batch, kv_num_heads, width, values.shape[3])
    if past_state is not None and past_state.shape != shape:
        raise ValueError(f"past_state has shape {shape_text(past_state.shape)}, expected {list(shape)}")

    state = np.zeros(shape, np.float32) if past_state is None else past_state.astype(np.float32)
    factor = scale or 1 / math.sqrt(width)
    grouped = queries.reshape(batch, tokens, kv_num_heads, q_num_heads // kv_num_heads, width)
    output = np.empty((*grouped.shape[:4], shape[3]), np.float32)
    for token in range(tokens):
        if fade is not None:
            state = state * fade[:, token, :, :, None]
        news = values[:, token, :, None]
        if rate is not None:
            news = (news - keys[:, token, :, None] @ state) * rate[:, token, :, None, None]
        state = state + keys[:, token, :, :, None] * news
        output[:, token] = grouped[:, token] @ state * factor
    state_type = query.dtype if past_state is None else past_state.dtype
    return output.reshape(batch, tokens, q_num_heads * shape[3]).astype(query.dtype), state.astype(state_type)


def _heads(x: Tensor, like: tuple[int, ...], heads: int, name: str) -> Tensor:
    """(B, T, heads * d) -> float32 (B, T, heads, d)."""
    if x.ndim != 3 or x.shape[:2] != like[:2] or not x.shape[2] or x.shape[2] % heads:
        batch_and_tokens = ", ".join(map(str, like[:2]))
        raise ValueError(
            f"the {name} has shape {shape_text(x.shape)}, expected [{batch_and_tokens}, a multiple of {heads}]"
        )
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).astype(np.float32)


def _gate(x: Tensor | None, name: str, update_rule: str, *, needed: bool) -> Tensor | None:
    if not needed:
        return None
    if x is None:
        raise ValueError(f"update_rule {update_rule!r} needs {name}, which is missing")
    return x.astype(np.float32)

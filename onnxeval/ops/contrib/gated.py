"""Gated activations: a gate through SiLU times what it lets pass."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._typed import FLOATS, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("SwiGLU", "TT", T=FLOATS)
def swiglu(
    gate: Tensor,
    up: Tensor | None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    limit: float = 0.0,
    round_activation: int = 0,
) -> Tensor:
    """G sigmoid(``activation_alpha`` G) (U + ``activation_beta``); without ``up`` the gate (..., 2 H) holds it behind.

    A positive ``limit`` bounds the gate above and ``up`` on both sides. Computed in float32 and rounded at the end,
    with ``round_activation`` also before the product. Raises ValueError where shapes do not fit together.
    Source: com.microsoft.SwiGLU-1.
    """
    if up is None:
        if not gate.ndim or gate.shape[-1] % 2:
            raise ValueError(f"the gate has shape {shape_text(gate.shape)}, expected both halves: [..., 2 * H]")
        gate, up = np.split(gate, 2, axis=-1)
    if gate.shape != up.shape:
        raise ValueError(f"gate and up have shapes {shape_text(gate.shape)} and {shape_text(up.shape)}")
    g, u = gate.astype(np.float32), up.astype(np.float32)
    if limit > 0:
        g, u = np.minimum(g, np.float32(limit)), np.clip(u, np.float32(-limit), np.float32(limit))
    activated = g * curves.sigmoid(np.float32(activation_alpha) * g)
    if round_activation:
        activated = convert(activated, gate.dtype).astype(np.float32)
    return convert(activated * (u + np.float32(activation_beta) if activation_beta else u), gate.dtype)


@microsoft_op("ScaledSiLU", "TM", T=FLOATS, M=FLOATS)
def scaled_silu(x: Tensor, scale: Tensor | None, *, alpha: float = 1.0) -> Tensor:
    """The product z sigmoid(z) of z = x times the number ``scale``, or ``alpha`` without it; each step is rounded.

    Source: com.microsoft.ScaledSiLU-1.
    """
    if scale is not None and scale.size != 1:
        raise ValueError(f"scale has shape {shape_text(scale.shape)}, expected a single number")
    factor = np.float32(alpha) if scale is None else scale.astype(np.float32).reshape(())
    z = convert(x.astype(np.float32) * factor, x.dtype).astype(np.float32)
    gate = convert(curves.sigmoid(z), x.dtype).astype(np.float32)
    return convert(z * gate, x.dtype)

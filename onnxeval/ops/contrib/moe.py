"""MoE: a few of many feed-forward networks for each token, weighed by a router."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._experts import Activation, mixed
from onnxeval.ops.contrib._typed import FLOATS, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("MoE", "T", T=FLOATS)
@in_float32
def mixture_of_experts(
    x: Tensor,
    router_probs: Tensor,
    fc1_experts_weights: Tensor,
    fc1_experts_bias: Tensor | None,
    fc2_experts_weights: Tensor,
    fc2_experts_bias: Tensor | None,
    fc3_experts_weights: Tensor | None,
    fc3_experts_bias: Tensor | None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    k: int = 1,
    normalize_routing_weights: int = 0,
    swiglu_fusion: int = 0,
    swiglu_limit: float | None = None,
    swiglu_limit_after_activation: int = 0,
    use_sparse_mixer: int = 0,
) -> Tensor:
    """Tokens (..., H), logits (tokens, E) -> the sum over the ``k`` best experts of softmax(logits) times their answer.

    An expert with weights (F, H), (H, F) and (F, H) says fc2(act(fc1(x))), or fc2(act(fc1(x)) * fc3(x)) where there is
    a third. ``activation_type`` is "relu", "relu2", "gelu", "silu", "identity"; or "swiglu", "geglu" of a gate and a
    value: fc1 and fc3, or both of fc1, taking turns (``swiglu_fusion`` 1) or one after the other (2). The weights of
    the router add up to 1 with ``normalize_routing_weights``. Of equal ones the first count.

    Raises ValueError where shapes do not fit together, for unknown activations, and for the sparse mixer, which no
    text explains. Source: com.microsoft.MoE-1.
    """
    if use_sparse_mixer:
        raise ValueError("use_sparse_mixer asks for a routing that is not documented")
    if fc1_experts_weights.ndim != 3 or x.shape[-1:] != fc1_experts_weights.shape[2:]:
        shapes = f"{shape_text(x.shape)} and {shape_text(fc1_experts_weights.shape)}"
        raise ValueError(f"tokens and fc1 have shapes {shapes}, expected [..., H] and [experts, F, H]")
    act = Activation(
        activation_type,
        activation_alpha,
        activation_beta,
        swiglu_fusion,
        swiglu_limit,
        bool(swiglu_limit_after_activation),
    )

    def answer(tokens: Tensor, expert: int) -> Tensor:
        inner = _linear(tokens, fc1_experts_weights, fc1_experts_bias, expert, "fc1")
        if fc3_experts_weights is None:
            said = act.alone(inner)
        else:
            said = act.gated(inner, _linear(tokens, fc3_experts_weights, fc3_experts_bias, expert, "fc3"))
        return _linear(said, fc2_experts_weights, fc2_experts_bias, expert, "fc2")

    return mixed(
        x, router_probs, None, answer, experts=len(fc1_experts_weights), k=k, normalize=normalize_routing_weights
    )


def _linear(x: Tensor, weights: Tensor, bias: Tensor | None, expert: int, name: str) -> Tensor:
    if weights.ndim != 3 or expert >= len(weights) or weights.shape[2] != x.shape[1]:
        raise ValueError(f"{name} has shape {shape_text(weights.shape)}, {x.shape[1]} features come in")
    product: Tensor = x @ weights[expert].T
    if bias is None:
        return product
    if bias.shape != weights.shape[:2]:
        shapes = f"{shape_text(bias.shape)} and {shape_text(weights.shape)}"
        raise ValueError(f"bias and weights of {name} have shapes {shapes}")
    return np.asarray(product + bias[expert])

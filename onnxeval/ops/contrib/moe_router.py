"""MoEGroupRouter: experts stand in groups, of which the best few are asked."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._typed import FLOAT32, FLOATS, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("MoEGroupRouter", "TFT", outputs=3, T=FLOATS, F=(FLOAT32,))
def moe_group_router(
    logits: Tensor,
    expert_bias: Tensor,
    projection_weight: Tensor | None,
    *,
    group_topk: int = 2,
    n_group: int = 1,
    router_sentinel: float = -10000.0,
    top_k: int,
    topk_group: int = 1,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(routed logarithms (tokens, E), scores, weights) of logits (..., E): s = sigmoid(logits) is the weight.

    Scores are s + ``expert_bias``. Of ``n_group`` groups the ``topk_group`` remain whose best ``group_topk`` scores add
    up to most, and of their experts the ``top_k`` of the best scores. These get log(s), of 1e-20 at least, all others
    ``router_sentinel``. Of equal ones the first count. Scores and weights are float32 and of all experts; for them
    ``projection_weight`` (E, width) may make the logits of tokens (tokens, width).

    Raises ValueError where shapes and numbers do not fit together. Source: com.microsoft.MoEGroupRouter-1.
    """
    experts = expert_bias.size
    x = logits.astype(np.float32)
    if projection_weight is not None:
        if n_outputs < 3:
            raise ValueError("projection_weight is for the scores and weights of all experts, which are not asked for")
        if logits.ndim != 2 or projection_weight.shape != (experts, logits.shape[1]):
            shapes = f"{shape_text(logits.shape)} and {shape_text(projection_weight.shape)}"
            raise ValueError(
                f"tokens and projection have shapes {shapes}, expected [tokens, width], [{experts}, width]"
            )
        x = x @ projection_weight.astype(np.float32).T
    if expert_bias.ndim != 1 or not x.ndim or x.shape[-1] != experts:
        shapes = f"{shape_text(logits.shape)} and {shape_text(expert_bias.shape)}"
        raise ValueError(f"logits and expert_bias have shapes {shapes}, expected [..., E] and [E]")
    if n_group < 1 or experts % n_group or not 1 <= topk_group <= n_group or group_topk < 1 or top_k < 1:
        raise ValueError(
            f"{experts} experts in n_group {n_group}, topk_group {topk_group}, group_topk {group_topk}, top_k {top_k}"
        )
    size = experts // n_group
    if top_k > topk_group * size:
        raise ValueError(f"top_k {top_k} is more than {topk_group} groups of {size} hold")
    weights = curves.sigmoid(x.reshape(-1, experts))
    scores = weights + expert_bias
    groups = scores.reshape(-1, n_group, size)
    sums = -np.sort(-groups, axis=2)[:, :, :group_topk].sum(axis=2)
    best_groups = np.argsort(-sums, axis=1, kind="stable")[:, :topk_group]
    candidates = np.full_like(groups, -np.inf)
    rows = np.arange(len(scores))[:, np.newaxis]
    candidates[rows, best_groups] = groups[rows, best_groups]
    best = np.argsort(-candidates.reshape(-1, experts), axis=1, kind="stable")[:, :top_k]
    routed = np.full_like(scores, router_sentinel)
    routed[rows, best] = np.log(np.maximum(weights[rows, best], np.float32(1e-20)))
    return (convert(routed, logits.dtype), scores, weights)[:n_outputs]

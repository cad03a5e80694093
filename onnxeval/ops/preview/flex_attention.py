"""FlexAttention: attention whose scores and probabilities sub-graphs may change."""

from __future__ import annotations

from onnxeval.dtypes import Tensor
from onnxeval.ops._attention import precision_of, require_matching, scores_of, softmax, weighted, working_dtype
from onnxeval.ops._body import Body
from onnxeval.ops._cast import convert
from onnxeval.registry import op
from onnxeval.values import describe


@op("FlexAttention", versions=(1,), domain="ai.onnx.preview")
def flex_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None,
    softmax_precision: int | None,
    score_mod: Body | None,
    prob_mod: Body | None,
) -> Tensor:
    """(batch, heads, time, value size) of Q, K and V of shape (batch, heads, time, size).

    From the scores on all is in the type that ``softmax_precision`` names, by default float64 for float64 and float32
    for all others; sums in float32 at least. Raises ValueError where shapes do not fit or a sub-graph changes shape or
    type. Source: FlexAttention-1 and its function body.
    """
    require_matching(q, k, v)
    dtype = working_dtype(q)
    precision = dtype if softmax_precision is None else precision_of(softmax_precision)
    scores = convert(scores_of(q.astype(dtype), k.astype(dtype), scale), precision)
    probabilities = _modified(softmax(_modified(scores, score_mod, "score_mod")), prob_mod, "prob_mod")
    wide = working_dtype(probabilities)
    return convert(weighted(probabilities.astype(wide), convert(v, precision).astype(wide)), q.dtype)


def _modified(x: Tensor, change: Body | None, name: str) -> Tensor:
    if change is None:
        return x
    results = change(x)
    if len(results) != 1 or getattr(results[0], "dtype", None) != x.dtype or results[0].shape != x.shape:
        given = ", ".join(map(describe, results))
        raise ValueError(f"{name} gave {given} for {describe(x)}, expected one tensor of that type and shape")
    result: Tensor = results[0]
    return result

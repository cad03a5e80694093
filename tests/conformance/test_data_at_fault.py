"""For each known failure, the proof that the shipped values are further from the truth than ours."""

import numpy as np
from conformance.test_conformance import CASES

from onnxeval import backend


def test_attention_4d_causal_fp16_expanded() -> None:
    """Attention-23: softmax(Q·Kᵀ / sqrt(head size) + causal mask)·V, in float64."""
    case = CASES["test_attention_4d_causal_fp16_expanded"]
    ((inputs, (shipped,)),) = case.data_sets
    q, k, v = (x.astype(np.float64) for x in inputs)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores[..., np.triu(np.ones(scores.shape[-2:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    truth = weights / weights.sum(-1, keepdims=True) @ v
    (ours,) = backend.prepare(case.model).run(inputs)

    def worst(values: np.ndarray) -> float:
        return float(np.max(np.abs(values.astype(np.float64) / truth - 1)))

    assert worst(ours) < case.rtol
    assert worst(ours) < worst(shipped)

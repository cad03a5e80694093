"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. The versions differ in types alone."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.math.softmax import log_softmax
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("NegativeLogLikelihoodLoss", versions=(12, 13, 22))
@in_float32
def negative_log_likelihood_loss(
    x: Tensor, target: Tensor, weight: Tensor | None, *, ignore_index: int | None, reduction: str
) -> Tensor:
    """(N, C, d1, ..., dk) log-probabilities and (N, d1, ..., dk) classes -> the losses, their sum or their mean.

    A loss is minus the log-probability of the class, times the weight of the class; where the class is
    ``ignore_index`` both loss and weight are 0. The mean is the sum over the sum of the weights. Raises ValueError for
    shapes that do not fit, a class outside [0, C) and an unknown ``reduction``. Source: NegativeLogLikelihoodLoss-22.
    """
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"reduction {reduction!r} is none of 'none', 'sum', 'mean'")
    if x.ndim < 2 or target.shape != (x.shape[0], *x.shape[2:]):
        raise ValueError(f"classes of shape {shape_text(target.shape)} do not fit scores of {shape_text(x.shape)}")
    classes = x.shape[1]
    if weight is not None and weight.shape != (classes,):
        raise ValueError(f"weight has shape {shape_text(weight.shape)}, expected {shape_text((classes,))}")
    ignored = np.zeros(target.shape, bool) if ignore_index is None else target == ignore_index
    wrong = ~ignored & ((target < 0) | (target >= classes))
    if wrong.any():
        raise ValueError(f"class {target[wrong][0]} is outside [0, {classes})")
    chosen = np.where(ignored, 0, target)
    weights = np.ones(target.shape, x.dtype) if weight is None else weight[chosen]
    weights = np.where(ignored, 0, weights).astype(x.dtype)
    picked = np.take_along_axis(x, chosen[:, None], axis=1)[:, 0]
    losses = np.where(ignored, 0, -picked * weights).astype(x.dtype)
    if reduction == "none":
        return losses
    total: Tensor = losses.sum()
    return total if reduction == "sum" else np.divide(total, weights.sum())


@op("SoftmaxCrossEntropyLoss", versions=(12, 13))
@in_float32
def softmax_cross_entropy_loss(
    scores: Tensor, labels: Tensor, weights: Tensor | None, *, ignore_index: int | None, reduction: str
) -> tuple[Tensor, Tensor]:
    """The negative log-likelihood loss of the softmax over the classes, and the log-probabilities.

    Source: SoftmaxCrossEntropyLoss-13.
    """
    if scores.ndim < 2:
        raise ValueError(f"the scores have rank {scores.ndim}, expected 2 at least")
    log_prob: Tensor = log_softmax(scores, axis=1)
    loss: Tensor = negative_log_likelihood_loss(
        log_prob, labels, weights, ignore_index=ignore_index, reduction=reduction
    )
    return loss, log_prob

"""What the classifiers and regressors share: transforms of their scores, and class labels."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import numpy as np

from onnxeval.dtypes import Tensor


def logistic(scores: Tensor) -> Tensor:
    return np.asarray(1 / (1 + np.exp(-scores)))


def _softmax(scores: Tensor) -> Tensor:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _softmax_zero(scores: Tensor) -> Tensor:
    """Softmax of those scores that are not 0; the others stay 0."""
    counted = scores != 0
    powers = np.where(counted, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    return np.asarray(powers / np.where(counted.any(-1, keepdims=True), powers.sum(-1, keepdims=True), 1))


def _probit(scores: Tensor) -> Tensor:
    """The quantile of the normal distribution; NaN where the score is no probability."""
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf
    ends = {0.0: -inf, 1.0: inf}
    quantiles = np.frompyfunc(lambda p: quantile(p) if 0 < p < 1 else ends.get(p, nan), 1, 1)(scores)
    return np.asarray(quantiles, np.float64)


#: post_transform -> what it makes of float64 scores (N, E)
TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "NONE": lambda scores: scores,
    "SOFTMAX": _softmax,
    "LOGISTIC": logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def transformed(scores: Tensor, post_transform: str) -> Tensor:
    """The scores after ``post_transform``. ValueError where it is unknown."""
    if post_transform not in TRANSFORMS:
        raise ValueError(f"post_transform {post_transform!r} is none of {', '.join(map(repr, TRANSFORMS))}")
    return TRANSFORMS[post_transform](scores)


def with_complement(scores: Tensor, post_transform: str, *, around_zero: bool) -> Tensor:
    """(N, 1) scores of the second of two classes -> (N, 2), with those of the first before them.

    The first class gets ``1 - score``, or ``-score`` where the score is a distance from 0, as it is before LOGISTIC.
    """
    around_zero = post_transform == "LOGISTIC" or (around_zero and post_transform != "PROBIT")
    return np.hstack([(0 if around_zero else 1) - scores, scores])

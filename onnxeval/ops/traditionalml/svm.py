"""SVMClassifier and SVMRegressor: weighted kernels between the input and the support vectors.

Without support vectors both are linear, and the coefficients are the weights of the features.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops.traditionalml._lookup import ML, as_rows, only_one
from onnxeval.ops.traditionalml._scores import logistic, transformed
from onnxeval.registry import op

#: kernel_type -> the kernel of (rows, support vectors, gamma, coef0, degree)
KERNELS: dict[str, Callable[[Tensor, Tensor, float, float, float], Tensor]] = {
    "LINEAR": lambda x, vectors, *_: x @ vectors.T,
    "POLY": lambda x, vectors, gamma, coef0, degree: (gamma * (x @ vectors.T) + coef0) ** degree,
    "RBF": lambda x, vectors, gamma, *_: np.exp(-gamma * _squared_distances(x, vectors)),
    "SIGMOID": lambda x, vectors, gamma, coef0, _: np.tanh(gamma * (x @ vectors.T) + coef0),
}


@op("SVMClassifier", domain=ML, versions=(1,))
def svm_classifier(
    x: Tensor,
    *,
    classlabels_ints: tuple[int, ...] | None,
    classlabels_strings: tuple[str, ...] | None,
    coefficients: tuple[float, ...] | None,
    kernel_params: tuple[float, ...] | None,
    kernel_type: str,
    post_transform: str,
    prob_a: tuple[float, ...] | None,
    prob_b: tuple[float, ...] | None,
    rho: tuple[float, ...] | None,
    support_vectors: tuple[float, ...] | None,
    vectors_per_class: tuple[int, ...] | None,
) -> tuple[Tensor, Tensor]:
    """(N, F) -> the classes (N) and float32 scores.

    With support vectors every two classes are compared, ``coefficients`` is (classes - 1, vectors), and the class
    with the most wins is taken, the first of several. The scores are the probabilities (N, E) if ``prob_a`` and
    ``prob_b`` are given; else the outcomes of the comparisons, where a positive one is a win of the earlier class, or
    of two classes the outcome negated and as it is. Without support vectors each class has a linear score, and the
    greatest wins. ValueError where lengths do not fit. Source: SVMClassifier-1.
    """
    labels = only_one(classlabels_ints=classlabels_ints, classlabels_strings=classlabels_strings)
    table = as_rows(x).astype(np.float64)
    weights = np.array(coefficients or (), np.float64)
    if not support_vectors:
        scores = _linear(table, weights, labels.size, rho, kernel_type)
        return labels[scores.argmax(1)], transformed(scores, post_transform).astype(np.float32)
    counts = vectors_per_class or ()
    if len(counts) != labels.size or min(counts) < 0:
        raise ValueError(f"vectors_per_class {list(counts)} does not fit {labels.size} classes")
    similarities = _similarities(table, support_vectors, sum(counts), kernel_type, kernel_params)
    pairs = list(combinations(range(labels.size), 2))
    bias = _as_many("rho", rho, len(pairs))
    outcomes = similarities @ pair_weights(weights, counts, pairs).T + bias
    wins = np.zeros((table.shape[0], labels.size), np.int64)
    for outcome, (one, other) in zip(outcomes.T, pairs, strict=True):
        wins[:, one] += outcome > 0
        wins[:, other] += outcome <= 0
    if prob_a or prob_b:
        slope, shift = (_as_many(name, p, len(pairs)) for name, p in (("prob_a", prob_a), ("prob_b", prob_b)))
        scores = _coupled(np.clip(logistic(-(outcomes * slope + shift)), 1e-7, 1 - 1e-7), pairs, labels.size)
    else:
        scores = np.hstack([-outcomes, outcomes]) if labels.size == 2 else outcomes
    return labels[wins.argmax(1)], transformed(scores, post_transform).astype(np.float32)


@op("SVMRegressor", domain=ML, versions=(1,))
def svm_regressor(
    x: Tensor,
    *,
    coefficients: tuple[float, ...] | None,
    kernel_params: tuple[float, ...] | None,
    kernel_type: str,
    n_supports: int,
    one_class: int,
    post_transform: str,
    rho: tuple[float, ...] | None,
    support_vectors: tuple[float, ...] | None,
) -> Tensor:
    """(N, F) -> float32 (N, 1); with ``one_class`` 1 where the score is above 0, else -1. Source: SVMRegressor-1.

    ValueError where lengths do not fit.
    """
    table = as_rows(x).astype(np.float64)
    weights = np.array(coefficients or (), np.float64)
    if n_supports:
        if weights.size != n_supports:
            raise ValueError(f"{weights.size} coefficients for {n_supports} support vectors")
        similarities = _similarities(table, support_vectors or (), n_supports, kernel_type, kernel_params)
        scores = similarities @ weights[:, np.newaxis] + _as_many("rho", rho, 1)
    else:
        scores = _linear(table, weights, 1, rho, kernel_type)
    if one_class:
        return np.where(scores > 0, 1, -1).astype(np.float32)
    return transformed(scores, post_transform).astype(np.float32)


def _as_many(name: str, values: tuple[float, ...] | None, count: int) -> Tensor:
    if values is None or len(values) != count:
        raise ValueError(f"{name} has {len(values or ())} elements, expected {count}")
    return np.array(values, np.float64)


def _linear(table: Tensor, weights: Tensor, count: int, rho: tuple[float, ...] | None, kernel_type: str) -> Tensor:
    if kernel_type != "LINEAR":
        raise ValueError(f"kernel_type {kernel_type!r} needs support vectors, none are given")
    if weights.size != count * table.shape[1]:
        raise ValueError(f"{weights.size} coefficients for {count} scores of {table.shape[1]} features")
    bias = _as_many("rho", rho, count if rho and len(rho) > 1 else 1)
    return np.asarray(table @ weights.reshape(count, -1).T + bias)


def _similarities(
    table: Tensor,
    support_vectors: tuple[float, ...],
    count: int,
    kernel_type: str,
    kernel_params: tuple[float, ...] | None,
) -> Tensor:
    """The kernel of every row with every support vector."""
    if kernel_type not in KERNELS:
        raise ValueError(f"kernel_type {kernel_type!r} is none of {', '.join(map(repr, KERNELS))}")
    if len(support_vectors) != count * table.shape[1]:
        raise ValueError(
            f"support_vectors has {len(support_vectors)} elements for {count} of {table.shape[1]} features"
        )
    if kernel_type != "LINEAR" and len(kernel_params or ()) != 3:
        raise ValueError(f"kernel_params {list(kernel_params or ())} are not gamma, coef0 and degree")
    gamma, coef0, degree = kernel_params if kernel_params and len(kernel_params) == 3 else (0.0, 0.0, 0.0)
    vectors = np.array(support_vectors, np.float64).reshape(count, table.shape[1])
    return KERNELS[kernel_type](table, vectors, gamma, coef0, degree)


def _squared_distances(x: Tensor, vectors: Tensor) -> Tensor:
    """Feature by feature: nothing cancels, and no (N, vectors, F) array is made."""
    distances = np.zeros((x.shape[0], vectors.shape[0]))
    for column, feature in zip(x.T, vectors.T, strict=True):
        distances += np.subtract.outer(column, feature) ** 2
    return distances


def pair_weights(weights: Tensor, counts: tuple[int, ...], pairs: list[tuple[int, int]]) -> Tensor:
    """(pairs, vectors): of each class's vectors, the row of coefficients that belongs to the other class."""
    if weights.size != (len(counts) - 1) * sum(counts):
        raise ValueError(f"{weights.size} coefficients, expected {len(counts) - 1} for each of {sum(counts)} vectors")
    rows = weights.reshape(len(counts) - 1, sum(counts))
    ends = np.cumsum(counts)
    vectors = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    by_pair = np.zeros((len(pairs), sum(counts)))
    for weight, (one, other) in zip(by_pair, pairs, strict=True):
        weight[vectors[one]] = rows[other - 1, vectors[one]]
        weight[vectors[other]] = rows[one, vectors[other]]
    return by_pair


def _coupled(beats: Tensor, pairs: list[tuple[int, int]], count: int) -> Tensor:
    """Class probabilities (N, count) from those of the earlier class of each pair.

    Pairwise coupling: they minimise the sum over pairs of ``(p_j r_ij - p_i r_ji)²``, found by going round the classes
    until the gradient is below 0.005 / count, 100 rounds at most (Wu, Lin and Weng, 2004, second method).
    """
    ratio = np.zeros((beats.shape[0], count, count))
    for beat, (one, other) in zip(beats.T, pairs, strict=True):
        ratio[:, one, other], ratio[:, other, one] = beat, 1 - beat
    q = -ratio.swapaxes(1, 2) * ratio
    q[:, range(count), range(count)] = (ratio**2).sum(1)
    p = np.full((beats.shape[0], count), 1 / count)
    going = np.arange(beats.shape[0])
    for _ in range(max(100, count)):
        slope = np.einsum("nij,nj->ni", q[going], p[going])
        level = (p[going] * slope).sum(1, keepdims=True)
        unfinished = np.abs(slope - level).max(1) >= 0.005 / count
        going, slope, level = going[unfinished], slope[unfinished], level[unfinished, 0]
        if not going.size:
            break
        for k in range(count):
            diagonal = q[going, k, k]
            step = (level - slope[:, k]) / diagonal
            p[going, k] += step
            level = (level + step * (step * diagonal + 2 * slope[:, k])) / (1 + step) ** 2
            slope = (slope + step[:, np.newaxis] * q[going, k]) / (1 + step)[:, np.newaxis]
            p[going] /= (1 + step)[:, np.newaxis]
    return p

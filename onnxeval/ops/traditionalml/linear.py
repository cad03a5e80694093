"""LinearClassifier and LinearRegressor."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.traditionalml._lookup import ML, as_rows, only_one
from onnxeval.ops.traditionalml._scores import transformed, with_complement
from onnxeval.registry import op


@op("LinearClassifier", domain=ML, versions=(1,))
def linear_classifier(
    x: Tensor,
    *,
    coefficients: tuple[float, ...],
    intercepts: tuple[float, ...] | None,
    classlabels_ints: tuple[int, ...] | None,
    classlabels_strings: tuple[str, ...] | None,
    multi_class: int,  # noqa: ARG001  # tells how the coefficients were found
    post_transform: str,
    allocate: Allocate,
) -> tuple[Tensor, Tensor]:
    """(N, F) -> the class of the greatest score (N) and the float32 scores (N, E).

    Of two classes the coefficients may hold only the second's. It is chosen where its score, a distance from the plane
    between the two, is positive; the first class has what is missing to 1, or the negative score before LOGISTIC.
    ValueError where coefficients, intercepts and labels do not fit. Source: LinearClassifier-1.
    """
    labels = only_one(classlabels_ints=classlabels_ints, classlabels_strings=classlabels_strings)
    table = as_rows(x)
    alone = labels.size == 2 and len(coefficients) == table.shape[1]
    scores = _scores(table, coefficients, intercepts, 1 if alone else labels.size, allocate)
    if alone:
        chosen = (scores[:, 0] > 0).astype(np.intp)
        scores = with_complement(scores, post_transform, around_zero=False)
    else:
        chosen = scores.argmax(1)
    return labels[chosen], transformed(scores, post_transform).astype(np.float32)


@op("LinearRegressor", domain=ML, versions=(1,))
def linear_regressor(
    x: Tensor,
    *,
    coefficients: tuple[float, ...] | None,
    intercepts: tuple[float, ...] | None,
    targets: int,
    post_transform: str,
    allocate: Allocate,
) -> Tensor:
    """(N, F) -> float32 (N, targets). Source: LinearRegressor-1.

    ValueError where there are fewer than F coefficients for each target, or neither one intercept for each nor none.
    """
    scores = _scores(as_rows(x), coefficients or (), intercepts, targets, allocate)
    return transformed(scores, post_transform).astype(np.float32)


def _scores(
    table: Tensor, coefficients: tuple[float, ...], intercepts: tuple[float, ...] | None, count: int, allocate: Allocate
) -> Tensor:
    """Row-major coefficients, (count, F). More than that are not read: models with a too narrow input are about."""
    features = table.shape[1]
    if count < 1 or len(coefficients) < count * features:
        raise ValueError(f"{len(coefficients)} coefficients for {count} scores of {features} features")
    if intercepts and len(intercepts) != count:
        raise ValueError(f"{len(intercepts)} intercepts for {count} scores")
    scores = allocate((table.shape[0], count), np.float64)
    weights = np.array(coefficients[: count * features], np.float64).reshape(count, features)
    np.matmul(table.astype(np.float64), weights.T, out=scores)
    scores += np.array(intercepts or 0.0, np.float64)
    return scores

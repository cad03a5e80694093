"""LinearClassifier and LinearRegressor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.traditionalml._lookup import ML, as_rows, only_one
from onnxeval.ops.traditionalml._scores import transformed, with_complement
from onnxeval.registry import op, prepared_by


class _Plane(NamedTuple):
    """Coefficients and intercepts, float64."""

    coefficients: Tensor
    intercepts: Tensor


def _plane(coefficients: tuple[float, ...] | None, intercepts: tuple[float, ...] | None) -> _Plane:
    return _Plane(np.array(coefficients or (), np.float64), np.array(intercepts or (), np.float64))


@op("LinearClassifier", domain=ML, versions=(1,))
@prepared_by(_plane)
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
    prepared: _Plane | None = None,
) -> tuple[Tensor, Tensor]:
    """(N, F) -> the class of the greatest score (N) and the float32 scores (N, E).

    Of two classes the coefficients may hold only the second's. It is chosen where its score, a distance from the plane
    between the two, is positive; the first class has what is missing to 1, or the negative score before LOGISTIC.
    ValueError where coefficients, intercepts and labels do not fit. Source: LinearClassifier-1.
    """
    labels = only_one(classlabels_ints=classlabels_ints, classlabels_strings=classlabels_strings)
    table = as_rows(x)
    alone = labels.size == 2 and len(coefficients) == table.shape[1]
    scores = _scores(table, prepared or _plane(coefficients, intercepts), 1 if alone else labels.size, allocate)
    if alone:
        chosen = (scores[:, 0] > 0).astype(np.intp)
        scores = with_complement(scores, post_transform, around_zero=False)
    else:
        chosen = scores.argmax(1)
    return labels[chosen], transformed(scores, post_transform).astype(np.float32)


@op("LinearRegressor", domain=ML, versions=(1,))
@prepared_by(_plane)
def linear_regressor(
    x: Tensor,
    *,
    coefficients: tuple[float, ...] | None,
    intercepts: tuple[float, ...] | None,
    targets: int,
    post_transform: str,
    allocate: Allocate,
    prepared: _Plane | None = None,
) -> Tensor:
    """(N, F) -> float32 (N, targets). Source: LinearRegressor-1.

    ValueError where there are fewer than F coefficients for each target, or neither one intercept for each nor none.
    """
    scores = _scores(as_rows(x), prepared or _plane(coefficients, intercepts), targets, allocate)
    return transformed(scores, post_transform).astype(np.float32)


def _scores(table: Tensor, plane: _Plane, count: int, allocate: Allocate) -> Tensor:
    """Row-major coefficients, (count, F). More than that are not read: models with a too narrow input are about."""
    features = table.shape[1]
    if count < 1 or plane.coefficients.size < count * features:
        raise ValueError(f"{plane.coefficients.size} coefficients for {count} scores of {features} features")
    if plane.intercepts.size not in (0, count):
        raise ValueError(f"{plane.intercepts.size} intercepts for {count} scores")
    scores = allocate((table.shape[0], count), np.float64)
    weights = plane.coefficients[: count * features].reshape(count, features)
    np.matmul(table.astype(np.float64), weights.T, out=scores)
    if plane.intercepts.size:
        scores += plane.intercepts
    return scores

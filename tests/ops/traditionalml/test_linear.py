import math
from statistics import NormalDist

import numpy as np
import pytest

from onnxeval.ops.traditionalml._scores import TRANSFORMS, transformed
from onnxeval.ops.traditionalml.linear import linear_classifier, linear_regressor

RNG = np.random.default_rng(8)
CLASSIFIER = {
    "intercepts": None,
    "classlabels_ints": None,
    "classlabels_strings": None,
    "multi_class": 0,
    "post_transform": "NONE",
    "allocate": np.empty,
}
REGRESSOR = {
    "coefficients": None,
    "intercepts": None,
    "targets": 1,
    "post_transform": "NONE",
    "allocate": np.empty,
}


def by_hand(row, transform):
    """One row of scores after a post_transform."""
    if transform == "LOGISTIC":
        return [1 / (1 + math.exp(-v)) for v in row]
    if transform == "PROBIT":
        return [NormalDist().inv_cdf(v) if 0 < v < 1 else {0: -math.inf, 1: math.inf}.get(v, math.nan) for v in row]
    if transform == "SOFTMAX":
        return [math.exp(v) / sum(map(math.exp, row)) for v in row]
    if transform == "SOFTMAX_ZERO":
        return [math.exp(v) / sum(math.exp(w) for w in row if w) if v else 0.0 for v in row]
    return row


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms(transform):
    scores = np.array([[0.5, 0.25, 0.0], [1.0, 0.9, -2.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(
        transformed(scores, transform), [by_hand(row, transform) for row in scores.tolist()], rtol=1e-12
    )
    if transform in ("SOFTMAX", "LOGISTIC"):
        assert np.isfinite(transformed(np.array([[1e4, -1e4]]), transform)).all()


def test_unknown_transform():
    with pytest.raises(ValueError, match="post_transform 'SQUARE'"):
        transformed(np.zeros((1, 1)), "SQUARE")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_classifier(dtype, transform):
    x = RNG.integers(-4, 5, (6, 3)).astype(dtype)
    weights, bias = RNG.normal(size=(4, 3)), RNG.normal(size=4)
    labels = ("p", "q", "r", "s")
    got, scores = linear_classifier(
        x,
        **{**CLASSIFIER, "intercepts": tuple(bias), "classlabels_strings": labels, "post_transform": transform},
        coefficients=tuple(weights.ravel()),
    )
    raw = [
        [sum(w * v for w, v in zip(ws, row, strict=True)) + b for ws, b in zip(weights, bias, strict=True)] for row in x
    ]
    assert got.tolist() == [labels[max(range(4), key=row.__getitem__)] for row in raw]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, [by_hand(row, transform) for row in raw], rtol=1e-5)


def test_classifier_of_two_classes_with_the_scores_of_one():
    x = np.array([[1.0], [0.25], [-1.0]])
    options = {**CLASSIFIER, "classlabels_ints": (5, 7)}
    labels, scores = linear_classifier(x, **options, coefficients=(1.0,))
    assert labels.tolist() == [7, 7, 5]  # by the side of the plane
    assert scores.tolist() == [[0, 1], [0.75, 0.25], [2, -1]]
    labels, scores = linear_classifier(x, **{**options, "post_transform": "LOGISTIC"}, coefficients=(1.0,))
    assert labels.tolist() == [7, 7, 5]
    wanted = [by_hand([-v, v], "LOGISTIC") for v in x.ravel().tolist()]
    np.testing.assert_allclose(scores, wanted, rtol=1e-6)
    both, _ = linear_classifier(x, **options, coefficients=(-1.0, 1.0))
    assert both.tolist() == [7, 7, 5]
    tie, _ = linear_classifier(x, **options, coefficients=(1.0, 1.0))
    assert tie.tolist() == [5, 5, 5]


def test_classifier_of_one_row_and_of_none():
    options = {**CLASSIFIER, "classlabels_ints": (5, 7)}
    labels, scores = linear_classifier(np.array([1.0, 2.0]), **options, coefficients=(1.0, 0.0, 0.0, 1.0))
    assert (labels.tolist(), scores.tolist()) == ([7], [[1, 2]])
    labels, scores = linear_classifier(np.zeros((0, 2)), **options, coefficients=(1.0, 0.0, 0.0, 1.0))
    assert (labels.shape, scores.shape) == ((0,), (0, 2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"coefficients": (1.0,) * 5}, "5 coefficients for 3 scores of 2 features"),
        ({"coefficients": (1.0,) * 6, "intercepts": (1.0,)}, "1 intercepts for 3 scores"),
        ({"coefficients": (1.0,) * 6, "classlabels_strings": ("a",)}, "expected one of"),
        ({"coefficients": (1.0,) * 6, "post_transform": "?"}, "post_transform"),
    ],
)
def test_classifier_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        linear_classifier(np.zeros((1, 2)), **{**CLASSIFIER, "classlabels_ints": (1, 2, 3), **given})


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("targets", [1, 3])
def test_regressor(transform, targets):
    x = RNG.normal(size=(5, 2)).astype(np.float32)
    weights, bias = RNG.normal(size=(targets, 2)), RNG.normal(size=targets)
    options = {"coefficients": tuple(weights.ravel()), "targets": targets, "post_transform": transform}
    got = linear_regressor(x, **{**REGRESSOR, **options, "intercepts": tuple(bias)})
    assert got.dtype == np.float32
    raw = [[float(row[0]) * w[0] + float(row[1]) * w[1] + b for w, b in zip(weights, bias, strict=True)] for row in x]
    np.testing.assert_allclose(got, [by_hand(row, transform) for row in raw], rtol=1e-5)
    with pytest.raises(ValueError, match="coefficients for"):
        linear_regressor(x, **{**REGRESSOR, **options, "targets": targets + 1})


def test_regressor_without_intercepts():
    assert linear_regressor(np.array([[2, 3]]), **{**REGRESSOR, "coefficients": (1.0, 10.0)}).tolist() == [[32]]


def test_coefficients_beyond_the_last_score_are_not_read():
    x = np.array([[1.0, 2.0]])
    options = {**CLASSIFIER, "classlabels_ints": (1, 2, 3)}
    for surplus in ((), (9.0, 9.0)):
        _, scores = linear_classifier(x, **options, coefficients=(1.0, 0.0, 0.0, 1.0, 1.0, 1.0, *surplus))
        assert scores.tolist() == [[1, 2, 3]]

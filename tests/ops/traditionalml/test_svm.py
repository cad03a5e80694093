"""The support vector machines against sums over single vectors, and the coupling against its own conditions."""

import math
from itertools import combinations

import numpy as np
import pytest

from onnxeval.ops.traditionalml.svm import _coupled, svm_classifier, svm_regressor

RNG = np.random.default_rng(9)
PLAIN = {
    "coefficients": None,
    "kernel_params": (0.3, 0.5, 2.0),
    "kernel_type": "LINEAR",
    "post_transform": "NONE",
    "rho": None,
    "support_vectors": None,
}
CLASSIFIER = {
    **PLAIN,
    "classlabels_ints": None,
    "classlabels_strings": None,
    "prob_a": None,
    "prob_b": None,
    "vectors_per_class": None,
}
REGRESSOR = {**PLAIN, "n_supports": 0, "one_class": 0}


def kernel(kind, a, b, gamma=0.3, coef0=0.5, degree=2.0):
    dot = sum(float(p) * float(q) for p, q in zip(a, b, strict=True))
    if kind == "POLY":
        return (gamma * dot + coef0) ** degree
    if kind == "SIGMOID":
        return math.tanh(gamma * dot + coef0)
    if kind == "RBF":
        return math.exp(-gamma * sum((float(p) - float(q)) ** 2 for p, q in zip(a, b, strict=True)))
    return dot


def machine(classes):
    """Random vectors of each class, and coefficients (classes - 1, vectors)."""
    counts = tuple(int(n) for n in RNG.integers(1, 4, classes))
    vectors = RNG.normal(size=(sum(counts), 3))
    coefficients = RNG.normal(size=(classes - 1, sum(counts)))
    rho = RNG.normal(size=classes * (classes - 1) // 2)
    return counts, vectors, coefficients, rho


def outcomes(row, kind, counts, vectors, coefficients, rho):
    """One comparison after the other."""
    ends = np.cumsum(counts)
    results = []
    for (one, other), bias in zip(combinations(range(len(counts)), 2), rho, strict=True):
        total = bias
        for mine, theirs in ((one, other - 1), (other, one)):
            for v in range(ends[mine] - counts[mine], ends[mine]):
                total += coefficients[theirs, v] * kernel(kind, row, vectors[v])
        results.append(total)
    return results


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_classifier(kind, classes, dtype):
    counts, vectors, coefficients, rho = machine(classes)
    x = (3 * RNG.normal(size=(7, 3))).astype(dtype)
    labels, scores = svm_classifier(
        x,
        **{
            **CLASSIFIER,
            "kernel_type": kind,
            "classlabels_strings": tuple("pqrs"[:classes]),
            "coefficients": tuple(coefficients.ravel()),
            "rho": tuple(rho),
            "support_vectors": tuple(vectors.ravel()),
            "vectors_per_class": counts,
        },
    )
    assert scores.dtype == np.float32
    for label, score, row in zip(labels, scores, x, strict=True):
        results = outcomes(row, kind, counts, vectors, coefficients, rho)
        wins = [0] * classes
        for result, (one, other) in zip(results, combinations(range(classes), 2), strict=True):
            wins[one if result > 0 else other] += 1
        assert label == "pqrs"[wins.index(max(wins))]
        wanted = [-results[0], results[0]] if classes == 2 else results
        np.testing.assert_allclose(score, wanted, rtol=1e-5, atol=1e-5)


def test_ties_go_to_the_earlier_class_but_nothing_is_no_win():
    given = {
        **CLASSIFIER,
        "classlabels_ints": (5, 7, 9),
        "coefficients": (0.0,) * 6,
        "support_vectors": (1.0, 1.0, 1.0),
        "vectors_per_class": (1, 1, 1),
    }
    cycle, _ = svm_classifier(np.zeros((1, 1)), **{**given, "rho": (1.0, -1.0, 1.0)})
    assert cycle.tolist() == [5]
    even, _ = svm_classifier(np.zeros((1, 1)), **{**given, "rho": (0.0, 0.0, 0.0)})
    assert even.tolist() == [9]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_probabilities(classes):
    counts, vectors, coefficients, rho = machine(classes)
    slope, shift = RNG.normal(size=rho.size), RNG.normal(size=rho.size)
    x = RNG.normal(size=(9, 3))
    given = {
        **CLASSIFIER,
        "kernel_type": "RBF",
        "classlabels_ints": tuple(range(classes)),
        "coefficients": tuple(coefficients.ravel()),
        "rho": tuple(rho),
        "support_vectors": tuple(vectors.ravel()),
        "vectors_per_class": counts,
        "prob_a": tuple(slope),
        "prob_b": tuple(shift),
    }
    _, scores = svm_classifier(x, **given)
    np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-6)
    for row, p in zip(x, scores.astype(float), strict=True):
        ratio = np.zeros((classes, classes))
        results = outcomes(row, "RBF", counts, vectors, coefficients, rho)
        for pair, result, a, b in zip(combinations(range(classes), 2), results, slope, shift, strict=True):
            ratio[pair] = 1 / (1 + math.exp(result * a + b))
            ratio[pair[::-1]] = 1 - ratio[pair]
        optimum = best_coupling(ratio)
        np.testing.assert_allclose(p, optimum, atol=0.02)
    logistic, _ = svm_classifier(x, **{**given, "post_transform": "LOGISTIC"})[::-1]
    np.testing.assert_allclose(logistic, 1 / (1 + np.exp(-scores)), rtol=1e-5)


def best_coupling(ratio):
    """The minimum of Σ (p_j r_ij - p_i r_ji)² with Σ p = 1, from its linear equations."""
    size = len(ratio)
    q = -ratio.T * ratio
    np.fill_diagonal(q, (ratio**2).sum(0))
    equations = np.block([[q, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    return np.linalg.solve(equations, [0] * size + [1])[:size]


def test_coupling_finds_probabilities_that_agree():
    p = RNG.dirichlet([2.0] * 4, size=50)
    pairs = list(combinations(range(4), 2))
    beats = np.stack([p[:, i] / (p[:, i] + p[:, j]) for i, j in pairs], 1)
    np.testing.assert_allclose(_coupled(beats, pairs, 4), p, atol=0.01)


def test_without_support_vectors():
    x = np.array([[1.0, 2.0], [-1.0, 0.5]], np.float32)
    given = {**CLASSIFIER, "classlabels_ints": (5, 7, 9), "coefficients": (0.5, 0.25, -0.5, 0.1, 0.2, 0.3)}
    labels, scores = svm_classifier(x, **{**given, "rho": (0.125,)})
    raw = [[1.0, -0.3, 0.8], [-0.375, 0.55, -0.05]]
    np.testing.assert_allclose(scores, np.array(raw) + 0.125, rtol=1e-5)
    assert labels.tolist() == [5, 7]
    _, each = svm_classifier(x, **{**given, "rho": (0.0, 1.0, 2.0)})
    np.testing.assert_allclose(each, np.add(raw, [0, 1, 2]), rtol=1e-5)
    regressed = svm_regressor(x, **{**REGRESSOR, "coefficients": (0.5, 0.25), "rho": (0.5,)})
    np.testing.assert_allclose(regressed, [[1.5], [0.125]], rtol=1e-6)
    with pytest.raises(ValueError, match="needs support vectors"):
        svm_regressor(x, **{**REGRESSOR, "coefficients": (0.5, 0.25), "rho": (0.5,), "kernel_type": "RBF"})


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_regressor(kind, transform):
    vectors, coefficients = RNG.normal(size=(4, 3)), RNG.normal(size=4)
    x = RNG.normal(size=(6, 3)).astype(np.float32)
    given = {
        **REGRESSOR,
        "kernel_type": kind,
        "coefficients": tuple(coefficients),
        "rho": (0.25,),
        "n_supports": 4,
        "support_vectors": tuple(vectors.ravel()),
    }
    raw = [0.25 + sum(c * kernel(kind, row, v) for c, v in zip(coefficients, vectors, strict=True)) for row in x]
    got = svm_regressor(x, **{**given, "post_transform": transform})
    assert got.dtype == np.float32
    wanted = [1 / (1 + math.exp(-v)) for v in raw] if transform == "LOGISTIC" else raw
    np.testing.assert_allclose(got.ravel(), wanted, rtol=1e-5, atol=1e-6)
    one_class = svm_regressor(x, **{**given, "one_class": 1, "post_transform": transform})
    assert one_class.ravel().tolist() == [1 if v > 0 else -1 for v in raw]
    assert svm_regressor(x[0], **given).shape == (1, 1)


GOOD = {
    **CLASSIFIER,
    "classlabels_ints": (5, 7),
    "coefficients": (1.0, -1.0),
    "rho": (0.0,),
    "support_vectors": (1.0, 0.0, 0.0, 1.0),
    "vectors_per_class": (1, 1),
}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"vectors_per_class": (1,)}, r"vectors_per_class \[1\] does not fit 2 classes"),
        ({"vectors_per_class": (1, 2)}, "support_vectors has 4 elements for 3"),
        ({"coefficients": (1.0,)}, "1 coefficients, expected 1 for each of 2 vectors"),
        ({"rho": ()}, "rho has 0 elements, expected 1"),
        ({"prob_a": (1.0,)}, "prob_b has 0 elements, expected 1"),
        ({"kernel_type": "COSINE"}, "kernel_type 'COSINE'"),
        ({"kernel_type": "RBF", "kernel_params": None}, "kernel_params"),
        ({"classlabels_ints": ()}, "expected one of"),
        ({"support_vectors": None}, "2 coefficients for 2 scores of 2 features"),
    ],
)
def test_classifier_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        svm_classifier(np.zeros((1, 2)), **{**GOOD, **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"coefficients": (1.0,)}, "1 coefficients for 2 support vectors"),
        ({"support_vectors": (1.0,) * 3}, "support_vectors has 3 elements for 2 of 2 features"),
        ({"rho": (1.0, 2.0)}, "rho has 2 elements"),
    ],
)
def test_regressor_refuses(given, message):
    good = {**REGRESSOR, "n_supports": 2, "coefficients": (1.0, 1.0), "rho": (0.0,), "support_vectors": (1.0,) * 4}
    with pytest.raises(ValueError, match=message):
        svm_regressor(np.zeros((1, 2)), **{**good, **given})


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_as_libsvm(classes):
    svm = pytest.importorskip("sklearn.svm")
    x = RNG.normal(size=(60, 3))
    y = RNG.integers(0, classes, 60)
    model = svm.SVC(decision_function_shape="ovo", gamma=0.5).fit(x + y[:, np.newaxis] / 4, y)
    labels, scores = svm_classifier(
        x,
        **{
            **CLASSIFIER,
            "kernel_type": "RBF",
            "kernel_params": (0.5, 0.0, 0.0),
            "classlabels_ints": tuple(range(classes)),
            "coefficients": tuple(model._dual_coef_.ravel()),
            "rho": tuple(model._intercept_),
            "support_vectors": tuple(model.support_vectors_.ravel()),
            "vectors_per_class": tuple(model.n_support_.tolist()),
        },
    )
    assert labels.tolist() == model.predict(x).tolist()
    decided = model.decision_function(x)
    np.testing.assert_allclose(scores[:, 0] if classes == 2 else scores, decided, rtol=1e-5, atol=1e-6)

"""Compiled support vector machines: what the readable kernels give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxeval.fast import replacement
from onnxeval.ops.traditionalml.svm import svm_classifier, svm_regressor
from tests.fast.guarded import guarded

TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
SIMILARITIES = ["LINEAR", "POLY", "RBF", "SIGMOID"]


def floats(rng, count):
    return tuple(rng.normal(size=count).astype(np.float32).tolist())


def drawn(data, rng):
    """Rows, and what both machines say of their support vectors."""
    shape = data.draw(st.sampled_from([(1, 1), (3, 4), (5,), (70, 3), (0, 2), (2, 17)]))
    x = guarded((rng.normal(size=shape) * 2).astype(data.draw(st.sampled_from([np.float32, np.float64, np.int64]))))
    if x.dtype.kind == "f" and data.draw(st.integers(0, 9)) == 0:
        x[..., 0] = np.nan
    kind = data.draw(st.sampled_from(SIMILARITIES))
    parameters = {"kernel_type": kind, "kernel_params": (0.25, 0.5, float(data.draw(st.integers(1, 3))))}
    return x, {**parameters, "post_transform": data.draw(st.sampled_from(TRANSFORMS))}


def compare(kernel, attributes, x):
    quick = replacement(kernel, [None], attributes)
    assert quick is not None
    with np.errstate(all="ignore"):
        results = [each(x, **attributes) for each in (quick, kernel)]
    for got, wanted in zip(*(each if isinstance(each, tuple) else (each,) for each in results), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)
        else:
            np.testing.assert_array_equal(got, wanted)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_regressors_are_the_readable_ones(threads, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x, attributes = drawn(data, rng)
    vectors = data.draw(st.sampled_from([1, 2, 9, 40]))
    attributes |= {
        "coefficients": floats(rng, vectors),
        "n_supports": vectors,
        "one_class": data.draw(st.integers(0, 1)),
        "rho": floats(rng, 1),
        "support_vectors": floats(rng, vectors * x.shape[-1]),
    }
    compare(svm_regressor, attributes, x)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_classifiers_are_the_readable_ones(threads, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x, attributes = drawn(data, rng)
    classes = data.draw(st.integers(2, 5))
    counts = tuple(rng.integers(1, 6, classes).tolist())
    pairs = classes * (classes - 1) // 2
    labels, is_named, is_likely = tuple(range(9, 9 + classes)), data.draw(st.booleans()), data.draw(st.booleans())
    attributes |= {
        "classlabels_ints": None if is_named else labels,
        "classlabels_strings": tuple(map(str, labels)) if is_named else None,
        "coefficients": floats(rng, (classes - 1) * sum(counts)),
        "prob_a": floats(rng, pairs) if is_likely else None,
        "prob_b": floats(rng, pairs) if is_likely else None,
        "rho": floats(rng, pairs),
        "support_vectors": floats(rng, sum(counts) * x.shape[-1]),
        "vectors_per_class": counts,
    }
    compare(svm_classifier, attributes, x)


REGRESSOR = {
    "coefficients": (1.0, 2.0),
    "kernel_params": (0.5, 0.0, 2.0),
    "kernel_type": "RBF",
    "n_supports": 2,
    "one_class": 0,
    "post_transform": "NONE",
    "rho": (0.5,),
    "support_vectors": (1.0, 2.0, 3.0, 4.0),
}


def test_what_is_wrong_is_left_to_the_readable_kernel(kernels):
    assert replacement(svm_regressor, [None], REGRESSOR) is not None
    for change in (
        {"n_supports": 3},
        {"n_supports": 0},
        {"kernel_type": "OTHER"},
        {"kernel_params": (1.0,)},
        {"rho": None},
        {"post_transform": "PROBIT"},
        {"support_vectors": (1.0, 2.0, 3.0)},
    ):
        assert replacement(svm_regressor, [None], {**REGRESSOR, **change}) is None
    with pytest.raises(ValueError, match="support_vectors has 4 elements for 2 of 3 features"):
        replacement(svm_regressor, [None], REGRESSOR)(np.zeros((1, 3), np.float32), **REGRESSOR)


def test_sizes_are_held_against_the_buffers(kernels):
    x, support, weights, pairs = np.zeros((4, 2)), np.zeros((2, 7)), np.zeros((7, 3)), np.zeros(3)
    chosen, out, labels = np.zeros(4, np.int64), np.zeros((4, 3), np.float32), np.zeros(3, np.int64)
    right = [x, 2, 0.5, 0.0, 1.0, 3, support, weights, pairs, pairs, pairs, None, 0, 3, 0, labels, chosen, out]
    kernels.run_svm(*right)
    kernels.run_svm(*right[:6], None, weights[:2].copy(), *right[8:])
    wrong = [
        (6, None),
        (0, x[:3]),
        (0, np.zeros((4, 3))),
        (1, 4),
        (1, -1),
        (5, 2),
        (5, 0),
        (5, 1),
        (5, -3),
        (5, 1 << 20),
    ]
    wrong += [(6, support[:1]), (7, weights[:, :2]), (7, weights[0]), (8, None), (8, pairs[:2])]
    wrong += [(9, None), (10, pairs[:1]), (12, 2), (13, 1), (13, 2), (15, labels[:2]), (16, None), (17, out[:, :2])]
    for place, value in wrong:
        arguments = right.copy()
        arguments[place] = value
        with pytest.raises((TypeError, ValueError)):
            kernels.run_svm(*arguments)

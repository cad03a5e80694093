"""The losses against the loops of their text."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.math import losses as _  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
DIGITS = {np.float16: 4e-3, ml_dtypes.bfloat16: 3e-2, np.float32: 1e-5, np.float64: 1e-12}


def nll(x, target, weight=None, *, ignore_index=None, reduction="mean", version=22):
    kernel = STANDARD["", "NegativeLogLikelihoodLoss", version]
    return kernel(x, target, weight, ignore_index=ignore_index, reduction=reduction)


def by_loops(x, target, weight, ignore_index, reduction):
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for place in np.ndindex(target.shape):
        c = int(target[place])
        if c != ignore_index:
            weights[place] = 1 if weight is None else weight[c]
            losses[place] = -x[(place[0], c, *place[1:])] * weights[place]
    return {"none": losses, "sum": losses.sum(), "mean": losses.sum() / weights.sum()}[reduction]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(("weighted", "ignore_index"), list(itertools.product([False, True], [None, 2, -1, 10])))
@pytest.mark.parametrize("more", [(), (2,), (2, 3)])
def test_against_loops(dtype, reduction, weighted, ignore_index, more):
    rng = np.random.default_rng(0)
    x = -rng.uniform(0, 3, (4, 3, *more)).astype(dtype)
    target = rng.integers(0, 3, (4, *more)).astype(np.int32 if weighted else np.int64)
    if ignore_index is not None:
        target.reshape(-1)[1] = ignore_index
    weight = rng.uniform(0.5, 2, 3).astype(dtype) if weighted else None
    expected = by_loops(
        x.astype(float), target, None if weight is None else weight.astype(float), ignore_index, reduction
    )
    result = nll(x, target, weight, ignore_index=ignore_index, reduction=reduction)
    assert result.dtype == dtype
    np.testing.assert_allclose(np.asarray(result).astype(float), expected, rtol=DIGITS[dtype])
    both = STANDARD["", "SoftmaxCrossEntropyLoss", 13](
        x, target, weight, ignore_index=ignore_index, reduction=reduction
    )
    loss, log_prob = both
    total = np.exp(x.astype(float)).sum(1, keepdims=True)
    logs = x.astype(float) - np.log(total)
    np.testing.assert_allclose(log_prob.astype(float), logs, rtol=DIGITS[dtype], atol=DIGITS[dtype])
    expected = by_loops(logs, target, None if weight is None else weight.astype(float), ignore_index, reduction)
    np.testing.assert_allclose(np.asarray(loss).astype(float), expected, rtol=DIGITS[dtype])
    assert loss.dtype == log_prob.dtype == dtype


@pytest.mark.parametrize("version", [12, 13, 22])
def test_the_examples_of_the_text(version):
    x = np.array([[[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]], [[0.0, 1.0], [2.0, 2.0], [1.0, 2]]], np.float32)
    target, weight = np.array([[2, 1], [0, 2]]), np.array([0.2, 0.3, 0.1], np.float32)
    assert nll(x, target, reduction="none", version=version).tolist() == [[-3, -2], [0, -2]]
    np.testing.assert_allclose(nll(x, target, weight, reduction="sum", version=version), -1.1, rtol=1e-6)
    np.testing.assert_allclose(nll(x, target, weight, version=version), -1.1 / 0.7, rtol=1e-6)


def test_an_ignored_infinity_is_no_loss():
    x = np.array([[-np.inf, -1.0], [-np.inf, -2.0]], np.float32)
    assert nll(x, np.array([0, 1]), ignore_index=0, reduction="none").tolist() == [0, 2]
    assert nll(x, np.array([0, 1]), ignore_index=0) == 2
    assert math.isnan(nll(x, np.array([0, 0]), ignore_index=0))


@pytest.mark.parametrize(
    ("shape", "target", "weight", "reduction", "text"),
    [
        ((2, 3), [0, 3], None, "mean", r"class 3 is outside \[0, 3\)"),
        ((2, 3), [0, -1], None, "mean", "class -1 is outside"),
        ((2, 3), [0], None, "mean", r"classes of shape \[1\] do not fit scores of \[2, 3\]"),
        ((2, 3, 2), [0, 1], None, "mean", "do not fit"),
        ((2,), [0, 1], None, "mean", "do not fit"),
        ((2, 3), [0, 1], (2,), "mean", r"weight has shape \[2\], expected \[3\]"),
        ((2, 3), [0, 1], None, "max", "reduction 'max'"),
    ],
)
def test_what_is_refused(shape, target, weight, reduction, text):
    with pytest.raises(ValueError, match=text):
        nll(np.ones(shape), np.array(target), None if weight is None else np.ones(weight), reduction=reduction)
    with pytest.raises(ValueError, match=f"{text}|expected 2 at least"):
        STANDARD["", "SoftmaxCrossEntropyLoss", 12](
            np.ones(shape),
            np.array(target),
            None if weight is None else np.ones(weight),
            ignore_index=None,
            reduction=reduction,
        )

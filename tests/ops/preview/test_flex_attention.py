from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.preview.flex_attention import flex_attention

RNG = np.random.default_rng(13)
FLOAT, FLOAT16, DOUBLE, BFLOAT = 1, 10, 11, 16  # element types


def run(q, k, v, **attributes):
    given = dict.fromkeys(("scale", "softmax_precision", "score_mod", "prob_mod"))
    return flex_attention(q, k, v, **(given | attributes))


def inputs(heads=4, dtype=np.float32):
    shapes = (2, heads, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6)
    return tuple(RNG.normal(size=shape).astype(dtype) for shape in shapes)


def by_hand(q, k, v, scale=0.5, score_mod=lambda x: x, prob_mod=lambda x: x):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    y = np.empty((*q.shape[:3], v.shape[3]))
    for b, h in np.ndindex(q.shape[:2]):
        shared = h // (q.shape[1] // k.shape[1])
        scores = score_mod(q[b, h] @ k[b, shared].T * scale)
        powers = np.exp(scores)
        y[b, h] = prob_mod(powers / powers.sum(axis=1, keepdims=True)) @ v[b, shared]
    return y


def graph(function):
    return lambda x: (function(x),)


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("scale", [None, 0.25])
def test_without_changes(heads, scale):
    x = inputs(heads)
    got = run(*x, scale=scale)
    np.testing.assert_allclose(got, by_hand(*x, scale=scale or 0.5), rtol=1e-5, atol=1e-6)


def test_sub_graphs_change_scores_and_probabilities():
    x = inputs()
    hidden = np.triu(np.full((3, 5), -np.inf, np.float32), 1)
    got = run(*x, score_mod=graph(lambda s: s + hidden), prob_mod=graph(lambda p: p * p))
    wanted = by_hand(*x, score_mod=lambda s: s + hidden, prob_mod=lambda p: p * p)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "precision", "seen"),
    [
        (np.float16, None, np.float32),
        (ml_dtypes.bfloat16, None, np.float32),
        (np.float64, None, np.float64),
        (np.float32, FLOAT16, np.float16),
        (np.float32, BFLOAT, ml_dtypes.bfloat16),
        (np.float16, DOUBLE, np.float64),
    ],
)
def test_sub_graphs_see_the_precision(dtype, precision, seen):
    x = inputs(dtype=dtype)
    types = []

    def note(values):
        types.append(values.dtype)
        return values

    got = run(*x, softmax_precision=precision, score_mod=graph(note), prob_mod=graph(note))
    assert got.dtype == dtype
    assert types == [seen, seen]
    np.testing.assert_allclose(got.astype(np.float64), by_hand(*x), rtol=0.03, atol=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:1], r"score_mod gave float32\[1, 4, 3, 5\] for float32\[2, 4, 3, 5\]"),
        (lambda x: x.astype(np.float64), "score_mod gave float64"),
    ],
)
def test_sub_graphs_keep_shape_and_type(change, message):
    with pytest.raises(ValueError, match=message):
        run(*inputs(), score_mod=graph(change))


def test_refusals():
    q, k, v = inputs()
    with pytest.raises(ValueError, match="ranks 3, 4 and 4"):
        run(q[0], k, v)
    with pytest.raises(ValueError, match="3 heads of Q cannot share 2"):
        run(q[:, :3], k, v)
    with pytest.raises(ValueError, match="softmax_precision 6 is int32"):
        run(q, k, v, softmax_precision=6)

"""QAttention: the attention of what its input and weights stand for."""

import numpy as np
import pytest
from ops.contrib.codes import BYTES, F32, draw, scale
from ops.contrib.nodes import assert_agree, ours

import onnxeval

BATCH, STEPS, FEATURES, HEADS, SIZE, PAST = 2, 5, 8, 2, 4, 3
WIDTH = HEADS * SIZE


def node(weights=np.int8, per_column=False, zero_points=True, mask=None, past=False, dtype=F32):
    random = np.random.default_rng(0)
    columns = (3 * WIDTH,) if per_column else ()
    return [
        draw((BATCH, STEPS, FEATURES), np.uint8),
        draw((FEATURES, 3 * WIDTH), weights, 1),
        random.standard_normal(3 * WIDTH).astype(dtype),
        scale(0.02).astype(dtype),
        np.asarray(random.random(columns) * 0.01 + 0.001, dtype),
        None if mask is None else np.array(mask, np.int32),
        np.array(120, np.uint8) if zero_points else None,
        (draw(columns, weights, 2) if per_column else np.array(3, weights)) if zero_points else None,
        random.standard_normal((2, BATCH, HEADS, PAST, SIZE)).astype(dtype) if past else None,
    ]


def expected(inputs, seen, factor=None, filter_value=-10000.0):
    """(Y, present) head by head; ``seen`` (batch, queries, keys) are the keys that are not hidden."""
    x, w, b, x_scale, w_scale, _, x_zero, w_zero, past = inputs
    x = (x.astype(float) - (0 if x_zero is None else float(x_zero))) * float(x_scale)
    w = (w.astype(float) - (0 if w_zero is None else w_zero.astype(float))) * w_scale.astype(float)
    q, k, v = (part.reshape(BATCH, STEPS, HEADS, SIZE).transpose(0, 2, 1, 3) for part in np.split(x @ w + b, 3, axis=2))
    if past is not None:
        k, v = np.concatenate([past[0], k], axis=2), np.concatenate([past[1], v], axis=2)
    scores = q @ k.swapaxes(2, 3) * (factor or SIZE**-0.5) + np.where(seen, 0, filter_value)[:, None]
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    y = (powers / powers.sum(axis=-1, keepdims=True)) @ v
    return y.transpose(0, 2, 1, 3).reshape(BATCH, STEPS, WIDTH), np.stack([k, v])


ALL = np.ones((BATCH, STEPS, STEPS), bool)


@pytest.mark.parametrize("weights", BYTES)
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("zero_points", [False, True])
def test_formula(weights, per_column, zero_points) -> None:
    inputs = node(weights, per_column, zero_points)
    y, present = ours("QAttention", inputs, outputs=2, num_heads=HEADS)
    wanted = expected(inputs, ALL)
    np.testing.assert_allclose(y, wanted[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(present, wanted[1], rtol=1e-5, atol=1e-5)


def test_causal_with_a_past() -> None:
    inputs = node(past=True)
    seen = np.tril(np.ones((STEPS, PAST + STEPS), bool), PAST)[None].repeat(BATCH, axis=0)
    y, present = ours("QAttention", inputs, outputs=2, num_heads=HEADS, unidirectional=1)
    wanted = expected(inputs, seen, filter_value=-np.inf)
    np.testing.assert_allclose(y, wanted[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(present, wanted[1], rtol=1e-5, atol=1e-5)


def test_lengths_scale_and_filter_value() -> None:
    inputs = node(mask=[3, 5])
    seen = (np.arange(STEPS) < inputs[5][:, None])[:, None].repeat(STEPS, axis=1)
    given = ours("QAttention", inputs, num_heads=HEADS, scale=0.3, mask_filter_value=-2.0)
    np.testing.assert_allclose(given, expected(inputs, seen, 0.3, -2.0)[0], rtol=1e-4, atol=1e-4)


def test_float16() -> None:
    inputs = node(dtype=np.float16)
    given = ours("QAttention", inputs, num_heads=HEADS)
    assert given.dtype == np.float16
    np.testing.assert_allclose(given, expected(inputs, ALL)[0], rtol=1e-2, atol=1e-2)


MASKS = [None, [3, 5], [4, 5, 1, 0], [[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], np.tril(np.ones((2, STEPS, STEPS)))]


@pytest.mark.parametrize("mask", range(len(MASKS)))
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_masks_as_onnxruntime(mask, unidirectional) -> None:
    how = {"num_heads": HEADS, "unidirectional": unidirectional, "outputs": 2}
    assert_agree("QAttention", node(mask=MASKS[mask]), rtol=1e-4, atol=1e-4, **how)


@pytest.mark.parametrize("weights", BYTES)
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("zero_points", [False, True])
def test_as_onnxruntime(weights, per_column, zero_points) -> None:
    inputs = node(weights, per_column, zero_points, past=True)
    assert_agree("QAttention", inputs, rtol=1e-4, atol=1e-4, num_heads=HEADS, outputs=2, unidirectional=1)


@pytest.mark.parametrize(
    ("place", "value", "attributes", "message"),
    [
        (1, draw((7, 24), np.int8), {}, "input, weights and bias have shapes"),
        (2, np.zeros(23, F32), {}, "input, weights and bias have shapes"),
        (4, np.ones(5, F32), {}, "weight_scale of shape"),
        (5, np.zeros((2, 3, 4), np.int32), {}, "the mask has shape"),
        (8, np.zeros((2, 2, 2, 3, 5), F32), {}, "does not continue in"),
        (8, np.zeros((2, 2, 2, 3, 4), F32), {"past_present_share_buffer": 1}, "nothing tells how much"),
        (0, draw((2, 5, 8), np.uint8), {"num_heads": 3}, "a multiple of 3 heads"),
    ],
)
def test_refusals(place, value, attributes, message) -> None:
    inputs = node()
    inputs[place] = value
    with pytest.raises(onnxeval.NodeError, match=message):
        ours("QAttention", inputs, **{"num_heads": HEADS, **attributes})

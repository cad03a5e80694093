"""Attention against loops over batches, heads, queries and keys, in double precision, written from the text."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import onnxeval.ops.nn.attention  # noqa: F401  registers the kernels
from onnxeval.registry import STANDARD

RNG = np.random.default_rng(5)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT, FLOAT16, DOUBLE, BFLOAT = 1, 10, 11, 16  # element types


def run(*inputs, version=25, **attributes):
    given = {
        "is_causal": 0,
        "kv_num_heads": None,
        "q_num_heads": None,
        "qk_matmul_output_mode": 0,
        "scale": None,
        "softcap": 0.0,
        "softmax_precision": None,
    }
    slots = 7 if version > 23 else 6
    with np.errstate(invalid="ignore"):
        return STANDARD["", "Attention", version](*(inputs + (None,) * (slots - len(inputs))), **(given | attributes))


def by_hand(
    q,
    k,
    v,
    mask=None,
    past_key=None,
    past_value=None,
    lengths=None,
    *,
    is_causal=0,
    scale=None,
    softcap=0.0,
    left_window_size=-1,
    right_window_size=-1,
    qk_matmul_output_mode=0,
):
    """(Y, present key, present value, scores) of tensors of rank 4."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    past = 0
    if past_key is not None:
        past = past_key.shape[2]
        k, v = np.concatenate([past_key, k], axis=2), np.concatenate([past_value, v], axis=2)
    batch, heads, n_queries, size = q.shape
    n_keys, sharing = k.shape[2], heads // k.shape[1]
    scale = 1 / math.sqrt(size) if scale is None else scale
    y = np.zeros((batch, heads, n_queries, v.shape[3]))
    stages = np.zeros((4, batch, heads, n_queries, n_keys))
    full = None
    if mask is not None:
        missing = n_keys - mask.shape[-1]
        value = False if mask.dtype == np.bool_ else -np.inf
        wide = mask if mask.dtype == np.bool_ else mask.astype(np.float64)
        padded = np.concatenate([wide, np.full((*mask.shape[:-1], missing), value)], axis=-1)
        full = np.broadcast_to(padded, (batch, heads, n_queries, n_keys))
    for b, h, i in np.ndindex(batch, heads, n_queries):
        offset = past if lengths is None else int(lengths[b]) - n_queries
        biases = []
        for j in range(n_keys):
            bias = 0.0
            if full is not None and full.dtype == np.bool_:
                bias += 0.0 if full[b, h, i, j] else -math.inf
            elif full is not None:
                bias += float(full[b, h, i, j])
            if is_causal and j > i + offset:
                bias += -math.inf
            if left_window_size >= 0 and j < i + offset - left_window_size:
                bias += -math.inf
            if right_window_size >= 0 and j > i + offset + right_window_size:
                bias += -math.inf
            if lengths is not None and j >= lengths[b]:
                bias += -math.inf
            biases.append(bias)
            score = scale * sum(q[b, h, i, d] * k[b, h // sharing, j, d] for d in range(size))
            capped = softcap * math.tanh(score / softcap) if softcap else score
            stages[:3, b, h, i, j] = score, capped, capped + bias
        if any(bias > -math.inf for bias in biases):
            top = max(stages[2, b, h, i])
            powers = [math.exp(s - top) for s in stages[2, b, h, i]]
            stages[3, b, h, i] = [p / sum(powers) for p in powers]
        y[b, h, i] = sum((stages[3, b, h, i, j] * v[b, h // sharing, j] for j in range(n_keys)), np.zeros(v.shape[3]))
    return y, k, v, stages[qk_matmul_output_mode]


def inputs(batch=2, heads=4, kv_heads=2, n_queries=3, n_keys=5, size=4, v_size=6, dtype=np.float32):
    def random(*shape):
        return RNG.normal(size=shape).astype(dtype)

    return (
        random(batch, heads, n_queries, size),
        random(batch, kv_heads, n_keys, size),
        random(batch, kv_heads, n_keys, v_size),
    )


def assert_close(got, wanted, rtol=1e-5, atol=1e-6):
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g.astype(np.float64), w, rtol=rtol, atol=atol)


@pytest.mark.parametrize("version", [23, 24, 25])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("attributes", [{}, {"scale": 0.3}, {"softcap": 0.5}, {"is_causal": 1}, {"scale": -2.0}])
def test_heads_may_share_keys(kv_heads, version, attributes):
    x = inputs(kv_heads=kv_heads)
    assert_close(run(*x, version=version, **attributes), by_hand(*x, **attributes))


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", [np.bool_, np.float32])
def test_stages_of_the_scores(mode, dtype):
    x = inputs()
    mask = RNG.random((3, 5)) < 0.6 if dtype == np.bool_ else RNG.normal(size=(3, 5)).astype(np.float32)
    how = {"is_causal": 1, "softcap": 0.7, "qk_matmul_output_mode": mode}
    assert_close(run(*x, mask, **how), by_hand(*x, mask, **how))


@pytest.mark.parametrize(
    "shape",
    [(5,), (1,), (3,), (3, 5), (1, 5), (4, 3, 5), (4, 1, 2), (2, 4, 3, 5), (2, 1, 3, 5), (1, 4, 1, 4), (2, 1, 1, 1)],
)
@pytest.mark.parametrize("dtype", [np.bool_, np.float32])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_masks_of_every_rank(shape, dtype, is_causal):
    """A mask with fewer keys goes on with -inf, also one with a single key."""
    x = inputs()
    mask = RNG.random(shape) < 0.7 if dtype == np.bool_ else RNG.normal(size=shape).astype(np.float32)
    for version in (24, 25):
        got = run(*x, mask, version=version, is_causal=is_causal)
        assert_close(got, by_hand(*x, mask, is_causal=is_causal))


def test_a_rank_zero_mask_reaches_every_key():
    x = inputs()
    assert_close(run(*x, np.array(True)), by_hand(*x))


def test_version_23_broadcasts_along_the_keys():
    x = inputs()
    mask = np.array([[True], [False], [True]])
    got = run(*x, mask, version=23)
    assert_close(got, by_hand(*x, np.broadcast_to(mask, (3, 5))))
    assert not got[0][:, :, 1].any()
    with pytest.raises(ValueError, match=r"attn_mask of shape \[3, 4\] does not broadcast to 5 keys"):
        run(*x, np.ones((3, 4), np.bool_), version=23)


@pytest.mark.parametrize("version", [23, 24, 25])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_the_past_comes_first(version, is_causal):
    q, k, v = inputs(n_queries=3, n_keys=3)
    _, past_key, past_value = inputs(n_keys=2)
    mask = RNG.normal(size=(3, 5)).astype(np.float32)
    got = run(q, k, v, mask, past_key, past_value, version=version, is_causal=is_causal)
    assert_close(got, by_hand(q, k, v, mask, past_key, past_value, is_causal=is_causal))


@pytest.mark.parametrize("version", [24, 25])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("lengths", [[5, 3], [1, 0], [4, 4]])
def test_padding(version, is_causal, lengths):
    """The frontier counts the valid keys: with fewer keys than queries the first queries see none and are zero."""
    x = inputs()
    lengths = np.array(lengths)
    how = {"is_causal": is_causal, "qk_matmul_output_mode": 3}
    got = run(*x, None, None, None, lengths, version=version, **how)
    assert_close(got, by_hand(*x, lengths=lengths, **how))
    mask = RNG.random((2, 1, 3, max(lengths))) < 0.5
    assert_close(run(*x, mask, None, None, lengths, **how), by_hand(*x, mask, lengths=lengths, **how))


@pytest.mark.parametrize("left", [-1, 0, 2, 100])
@pytest.mark.parametrize("right", [-1, 0, 1])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_windows(left, right, is_causal):
    how = {"left_window_size": left, "right_window_size": right, "is_causal": is_causal}
    x = inputs(n_queries=4, n_keys=6)
    assert_close(run(*x, **how), by_hand(*x, **how))
    lengths = np.array([6, 3])
    assert_close(run(*x, None, None, None, lengths, **how), by_hand(*x, lengths=lengths, **how))
    _, past_key, past_value = inputs(n_keys=2)
    got = run(*x, None, past_key, past_value, **how)
    assert_close(got, by_hand(*x, None, past_key, past_value, **how))


def test_the_window_drawn_in_the_text():
    x = inputs(n_queries=4, n_keys=6)
    *_, probabilities = run(*x, left_window_size=2, right_window_size=1, qk_matmul_output_mode=3)
    drawn = ["##....", "###...", "####..", ".####."]
    for i, row in enumerate(drawn):
        np.testing.assert_array_equal(probabilities[0, 0, i] > 0, [mark == "#" for mark in row])


def test_heads_side_by_side():
    q, k, v = inputs()
    _, past_key, past_value = inputs(n_keys=2)

    def flat(x):
        return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)

    how = {"is_causal": 1, "qk_matmul_output_mode": 3}
    wanted = run(q, k, v, None, past_key, past_value, **how)
    got = run(flat(q), flat(k), flat(v), None, past_key, past_value, q_num_heads=4, kv_num_heads=2, **how)
    assert_close(got, (flat(wanted[0]), *wanted[1:]), rtol=0, atol=0)


def test_rows_without_a_key_are_zero():
    x = inputs()
    for mask in (np.zeros((3, 5), np.bool_), np.full((3, 5), -np.inf, np.float32)):
        y, _, _, probabilities = run(*x, mask, qk_matmul_output_mode=3)
        assert not y.any()
        assert not probabilities.any()
    y, *_ = run(*inputs(n_keys=0))
    np.testing.assert_array_equal(y, np.zeros((2, 4, 3, 6)))


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
def test_half_precision_is_rounded_at_the_end(dtype):
    x = inputs(dtype=dtype)
    mask = RNG.normal(size=(3, 5)).astype(dtype)
    wide = run(*(t.astype(np.float32) for t in (*x, mask)), qk_matmul_output_mode=2)
    for g, w in zip(run(*x, mask, qk_matmul_output_mode=2), wide, strict=True):
        assert g.dtype == dtype
        np.testing.assert_array_equal(g, w.astype(dtype))


@pytest.mark.parametrize(("precision", "narrow"), [(FLOAT16, np.float16), (BFLOAT, BFLOAT16)])
def test_softmax_precision_rounds_scores_and_probabilities(precision, narrow):
    x = inputs()
    *_, scores = run(*x)
    *_, probabilities = run(*x, softmax_precision=precision, qk_matmul_output_mode=3)
    rounded = scores.astype(narrow).astype(np.float64)
    powers = np.exp(rounded - rounded.max(axis=-1, keepdims=True))
    assert probabilities.dtype == np.float32
    expected = (powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32).astype(narrow)
    np.testing.assert_allclose(probabilities, expected.astype(np.float32), rtol=2 * ml_dtypes.finfo(narrow).eps)


def test_softmax_precision_may_be_wider():
    x = inputs(dtype=np.float16)
    for precision in (FLOAT, DOUBLE):
        y, *_, probabilities = run(*x, softmax_precision=precision, qk_matmul_output_mode=3)
        assert y.dtype == probabilities.dtype == np.float16
        np.testing.assert_allclose(y.astype(np.float64), by_hand(*x)[0], rtol=5e-3, atol=5e-3)


def test_double():
    x = inputs(dtype=np.float64)
    assert_close(run(*x), by_hand(*x), rtol=1e-12, atol=1e-12)


def test_values_may_have_another_type():
    q, k, v = inputs()
    y, _, present, _ = run(q.astype(np.float16), k.astype(np.float16), v.astype(np.float64))
    assert (y.dtype, present.dtype) == (np.float16, np.float64)


def test_large_scores_do_not_overflow():
    q, k, v = inputs()
    y, *_ = run((q * 1e18).astype(np.float32), (k * 1e18).astype(np.float32), v, scale=1e-36)
    assert_close((y,), by_hand(q, k, v, scale=1.0)[:1], rtol=1e-4, atol=1e-5)


Q, K, V = inputs()
PAST = np.zeros((2, 2, 1, 4), np.float32)


@pytest.mark.parametrize(
    ("given", "attributes", "message"),
    [
        ((Q, K, V), {"qk_matmul_output_mode": 4}, "qk_matmul_output_mode 4"),
        ((Q, K, V), {"left_window_size": -2}, "window sizes -2 and -1"),
        ((Q, K, V), {"softmax_precision": 7}, "softmax_precision 7 is int64"),
        ((Q, K, V, None, PAST), {}, "come together"),
        ((Q, K, V, None, PAST, PAST[..., :1], np.array([1, 1])), {}, "does not go together"),
        ((Q, K, V, None, PAST, PAST), {}, r"past_value of shape \[2, 2, 1, 4\] does not continue in \[2, 2, 5, 6\]"),
        ((Q, K, V, None, None, None, np.array([1, 6])), {}, r"nonpad_kv_seqlen \[1, 6\] leave \[0, 5\]"),
        ((Q, K, V, None, None, None, np.array([1])), {}, r"nonpad_kv_seqlen has shape \[1\]"),
        ((Q, K, V, np.ones(3, np.bool_), None, None, np.array([1, 4])), {}, r"leave \[0, 3\]"),
        ((Q, K, V, np.ones((2, 5), np.bool_)), {}, r"attn_mask of shape \[2, 5\] does not broadcast to \[2, 4, 3, 5\]"),
        ((Q, K, V, np.ones((1, 1, 1, 1, 5), np.bool_)), {}, "does not broadcast"),
        ((Q, K, V, np.ones((3, 6), np.bool_)), {}, "does not broadcast"),
        ((Q, K[:1], V), {}, "do not fit"),
        ((Q, K[..., :3], V), {}, "do not fit"),
        ((Q, K, V[:, :, :4]), {}, "do not fit"),
        ((Q[:, :3], K, V), {}, "3 heads of Q cannot share 2 heads"),
        ((Q[0], K[0], V[0]), {}, "given is None"),
        ((Q[0], K[0], V[0]), {"q_num_heads": 3, "kv_num_heads": 2}, "a number of heads that divides 4, given is 3"),
        ((Q[0], K, V), {"q_num_heads": 2, "kv_num_heads": 2}, "Q has rank 3, K or V has rank 4"),
        ((Q, K[0], V), {}, "ranks 4, 3 and 4"),
    ],
)
def test_refusals(given, attributes, message):
    with pytest.raises(ValueError, match=message):
        run(*given, **attributes)


def test_masks_of_integers_are_added():
    mask = np.array([[2, 0, -1, 0, 3]] * 3, np.int32)
    for got, wanted in zip(run(Q, K, V, mask), run(Q, K, V, mask.astype(np.float32)), strict=True):
        np.testing.assert_array_equal(got, wanted)

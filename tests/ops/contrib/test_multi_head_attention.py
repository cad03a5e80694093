"""MultiHeadAttention, Attention and their decoding form against loops in float64, and against onnxruntime."""

import math

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import FLOAT, assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(16)
BATCH, STEPS, HEADS, SIZE, PAST = 4, 3, 2, 4, 5
HIDDEN = HEADS * SIZE


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def whole(*numbers):
    return np.array(numbers, np.int32)


def split(x):
    return x.astype(np.float64).reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def joined(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def by_hand(q, k, v, hidden=None, bias=None, *, causal=False, past=0, scale=None, filter_value=-10000.0):
    """(Y, scores) of (B, N, time, size); ``hidden(b, i, j)`` says which keys the mask hides."""
    batch, heads, steps, size = q.shape
    n_keys = k.shape[2]
    scores = np.zeros((batch, heads, steps, n_keys))
    y = np.zeros((batch, heads, steps, v.shape[3]))
    for b, h, i in np.ndindex(batch, heads, steps):
        for j in range(n_keys):
            score = q[b, h, i] @ k[b, h, j] * (scale or 1 / math.sqrt(size))
            if causal and j > i + past:
                score += float(np.finfo(np.float32).min)
            if hidden is not None and hidden(b, i, j):
                score += filter_value
            if bias is not None:
                score += bias[b % bias.shape[0], h % bias.shape[1], i, j]
            scores[b, h, i, j] = score
        powers = np.exp(scores[b, h, i] - scores[b, h, i].max())
        y[b, h, i] = powers / powers.sum() @ v[b, h]
    return y, scores


Q, K, V = normal(BATCH, STEPS, HIDDEN), normal(BATCH, STEPS, HIDDEN), normal(BATCH, STEPS, HIDDEN)
#: No row of this hides every key: those scores would have lost their digits beside the filter value.
SEEN = whole([1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 0, 0])
SEEN_BY_EACH = RNG.integers(0, 2, (BATCH, STEPS, STEPS)).astype(np.int32)
SEEN_BY_EACH[:, :, 0] = 1
ENDS, STARTS = whole(2, 3, 1, 3), whole(0, 0, 0, 0)

MASKS = {
    "none": (None, None),
    "lengths": (ENDS, lambda b, i, j: j >= ENDS[b]),
    "lengths and sums": (np.concatenate([ENDS, whole(*range(10))]), lambda b, i, j: j >= ENDS[b]),
    "keys": (SEEN, lambda b, i, j: not SEEN[b, j]),
    "queries and keys": (SEEN_BY_EACH, lambda b, i, j: not SEEN_BY_EACH[b, i, j]),
}
CLOSE = {"rtol": 1e-3, "atol": 2e-3}  # of scores beside -10000


def assert_close(results, expected, rtol=1e-4, atol=2e-3):
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("bias_shape", [None, (BATCH, HEADS), (1, HEADS), (BATCH, 1), (1, 1)])
def test_multi_head_attention_masks(mask, causal, bias_shape) -> None:
    tensor, hidden = MASKS[mask]
    bias = None if bias_shape is None else normal(*bias_shape, STEPS, STEPS)
    inputs = [Q, K, V, None, tensor, bias]
    how = {"num_heads": HEADS, "unidirectional": causal, "outputs": (0, 3), "declared": FLOAT}
    y, scores = by_hand(split(Q), split(K), split(V), hidden, bias, causal=causal)
    assert_close(ours("MultiHeadAttention", inputs, **how), (joined(y), scores))
    assert_agree("MultiHeadAttention", inputs, **how, **CLOSE)


@pytest.mark.parametrize("attributes", [{"scale": 0.7}, {"scale": 0.0}, {"mask_filter_value": -1.5}])
def test_multi_head_attention_attributes(attributes) -> None:
    inputs = [Q, K, V, None, SEEN]
    y, _ = by_hand(
        *map(split, (Q, K, V)),
        MASKS["keys"][1],
        scale=attributes.get("scale"),
        filter_value=attributes.get("mask_filter_value", -10000.0),
    )
    np.testing.assert_allclose(
        ours("MultiHeadAttention", inputs, num_heads=HEADS, **attributes), joined(y), rtol=1e-4, atol=1e-5
    )
    assert_agree("MultiHeadAttention", inputs, num_heads=HEADS, **attributes, rtol=1e-4, atol=1e-5)


def test_bias_and_values_of_another_size() -> None:
    value, bias = normal(BATCH, STEPS, HEADS * 3), normal(2 * HIDDEN + HEADS * 3)
    parts = np.split(bias, [HIDDEN, 2 * HIDDEN])
    q, k, v = (split(x + part) for x, part in zip((Q, K, value), parts, strict=True))
    y, _ = by_hand(q, k, v)
    how = {"num_heads": HEADS, "outputs": 3}
    assert_close(ours("MultiHeadAttention", [Q, K, value, bias], **how), (joined(y), k, v), atol=1e-5)
    assert_agree("MultiHeadAttention", [Q, K, value, bias], **how)


def test_packed_tensors() -> None:
    packed = np.stack([x.reshape(BATCH, STEPS, HEADS, SIZE) for x in (Q, K, V)], axis=3)
    bias = normal(3 * HIDDEN)
    expected = ours("MultiHeadAttention", [Q, K, V, bias], num_heads=HEADS)
    given = ours("MultiHeadAttention", [packed, None, None, bias], num_heads=HEADS)
    np.testing.assert_array_equal(given, expected)
    pair = packed[:, :, :, 1:].copy()
    expected = ours("MultiHeadAttention", [Q, K, V], num_heads=HEADS)
    np.testing.assert_array_equal(ours("MultiHeadAttention", [Q, pair, None], num_heads=HEADS), expected)


@pytest.mark.parametrize("with_bias", [False, True])
def test_cross_attention_to_keys_that_are_split_already(with_bias) -> None:
    """The bias is the queries' alone then."""
    k, v, bias = normal(BATCH, HEADS, 7, SIZE), normal(BATCH, HEADS, 7, SIZE), normal(3 * HIDDEN)
    q = split(Q + bias[:HIDDEN]) if with_bias else split(Q)
    seen = np.ones((BATCH, 7), np.int32)
    seen[1, 2:5] = 0
    y, scores = by_hand(q, k.astype(np.float64), v.astype(np.float64), lambda b, i, j: not seen[b, j])
    inputs = [Q, k, v, bias if with_bias else None, seen]
    how = {"num_heads": HEADS, "outputs": (0, 3), "declared": FLOAT}
    assert_close(ours("MultiHeadAttention", inputs, **how), (joined(y), scores))
    assert_agree("MultiHeadAttention", inputs, **how, **CLOSE)


@pytest.mark.parametrize("causal", [0, 1])
def test_past(causal) -> None:
    past_key, past_value = normal(BATCH, HEADS, PAST, SIZE), normal(BATCH, HEADS, PAST, SIZE)
    k, v = np.concatenate([past_key, split(K)], axis=2), np.concatenate([past_value, split(V)], axis=2)
    seen = np.concatenate([np.ones((BATCH, PAST), np.int32), SEEN], axis=1)
    bias = normal(1, HEADS, STEPS, PAST + STEPS)
    y, scores = by_hand(split(Q), k, v, lambda b, i, j: not seen[b, j], bias, causal=causal, past=PAST)
    inputs = [Q, K, V, None, seen, bias, past_key, past_value]
    how = {"num_heads": HEADS, "outputs": 4, "declared": FLOAT, "unidirectional": causal}
    assert_close(ours("MultiHeadAttention", inputs, **how), (joined(y), k, v, scores))
    assert_agree("MultiHeadAttention", inputs, **how, **CLOSE)


@pytest.mark.parametrize("filled", [0, 5])
def test_a_buffer_is_filled_so_far(filled) -> None:
    buffers = [normal(BATCH, HEADS, 10, SIZE), normal(BATCH, HEADS, 10, SIZE)]
    presents = [x.astype(np.float64) for x in buffers]
    for present, new in zip(presents, (K, V), strict=True):
        present[:, :, filled : filled + STEPS] = split(new)
    k, v = (present[:, :, : filled + STEPS] for present in presents)
    y, scores = by_hand(split(Q), k, v)
    inputs = [Q, K, V, None, None, None, *buffers, whole(filled)]
    how = {"num_heads": HEADS, "outputs": 4, "declared": FLOAT}
    assert_close(ours("MultiHeadAttention", inputs, **how), (joined(y), *presents, scores), atol=1e-5)
    assert_agree("MultiHeadAttention", inputs, **how)


def decoding(filled=5):
    """(inputs, keys, values) of one token a row: a buffer of two beams, two entries, and who comes from where."""
    buffers = [normal(BATCH, HEADS, 10, SIZE), normal(BATCH, HEADS, 10, SIZE)]
    beams = RNG.integers(0, 2, (2, 2, 10)).astype(np.int32)
    ways = []
    for buffer, new in zip(buffers, (K, V), strict=True):
        all_of_it = np.zeros((BATCH, HEADS, filled + 1, SIZE))
        for row, t in np.ndindex(BATCH, filled):
            entry, beam = divmod(row, 2)
            all_of_it[row, :, t] = buffer[2 * entry + beams[entry, beam, t], :, t]
        all_of_it[:, :, filled] = split(new[:, :1])[:, :, 0]
        ways.append(all_of_it)
    return buffers, beams, *ways


def test_beams() -> None:
    buffers, beams, k, v = decoding()
    y, scores = by_hand(split(Q[:, :1]), k, v)
    inputs = [Q[:, :1], K[:, :1], V[:, :1], None, None, None, *buffers, whole(5), beams]
    how = {"num_heads": HEADS, "outputs": (0, 1, 2, 3), "declared": FLOAT}
    given = ours("MultiHeadAttention", inputs, **how)
    assert_close((given[0], given[3]), (joined(y), scores), atol=1e-5)
    assert_agree("MultiHeadAttention", inputs, **how)

    inputs = [Q[:, :1], K[:, :1], V[:, :1], None, None, *buffers, whole(5), whole(2), beams]
    how = {"num_heads": HEADS, "outputs": 4, "declared": FLOAT, "past_present_share_buffer": 1, "output_qk": 1}
    given = ours("DecoderMaskedMultiHeadAttention", inputs, **how)
    assert_close((given[0], given[3]), (joined(y), scores), atol=1e-5)
    assert_agree("DecoderMaskedMultiHeadAttention", inputs, **how)


def test_a_bias_of_each_entry_stays_with_it_among_beams() -> None:
    """onnxruntime 1.32 gives all of them the bias of the first."""
    buffers, beams, k, v = decoding()
    bias = normal(BATCH, HEADS, 1, 6)
    y, _ = by_hand(split(Q[:, :1]), k, v, bias=bias)
    inputs = [Q[:, :1], K[:, :1], V[:, :1], None, None, bias, *buffers, whole(5), beams]
    np.testing.assert_allclose(ours("MultiHeadAttention", inputs, num_heads=HEADS), joined(y), rtol=1e-4, atol=1e-5)


def test_decoding_one_token() -> None:
    q, k, v = Q[:, :1], K[:, :1], V[:, :1]
    buffers = [normal(BATCH, HEADS, 10, SIZE) for _ in range(2)]
    bias, added = normal(3 * HIDDEN), normal(1, HEADS, 1, 6)
    seen = np.ones((BATCH, 6), np.int32)
    seen[0, 2] = seen[2, 4] = 0
    parts = np.split(bias, 3)
    presents = [x.astype(np.float64) for x in buffers]
    for present, new, part in zip(presents, (k, v), parts[1:], strict=True):
        present[:, :, 5:6] = split(new + part)
    keys, values = (present[:, :, :6] for present in presents)
    y, _ = by_hand(split(q + parts[0]), keys, values, lambda b, i, j: not seen[b, j], added)
    tail = [seen, added, *buffers, whole(5), None, None, bias]
    how = {"num_heads": HEADS, "outputs": 3, "past_present_share_buffer": 1}
    assert_close(ours("DecoderMaskedMultiHeadAttention", [q, k, v, *tail], **how), (joined(y), *presents), atol=1e-4)
    assert_agree("DecoderMaskedMultiHeadAttention", [q, k, v, *tail], **how, **CLOSE)
    packed = [np.concatenate([q, k, v], axis=2), None, None, *tail]
    for one, other in zip(
        ours("DecoderMaskedMultiHeadAttention", packed, **how),
        ours("DecoderMaskedMultiHeadAttention", [q, k, v, *tail], **how),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_decoding_with_a_past_that_grows_and_across() -> None:
    q, k, v = Q[:, :1], K[:, :1], V[:, :1]
    pasts = [normal(BATCH, HEADS, PAST, SIZE) for _ in range(2)]
    results = ours("DecoderMaskedMultiHeadAttention", [q, k, v, None, None, *pasts], num_heads=HEADS, outputs=3)
    keys, values = (np.concatenate([p, split(x)], axis=2) for p, x in zip(pasts, (k, v), strict=True))
    assert_close(results, (joined(by_hand(split(q), keys, values)[0]), keys, values), atol=1e-5)
    y = ours("DecoderMaskedMultiHeadAttention", [q, *pasts], num_heads=HEADS)
    expected = by_hand(split(q), *(p.astype(np.float64) for p in pasts))[0]
    np.testing.assert_allclose(y, joined(expected), rtol=1e-4, atol=1e-5)
    assert_agree("DecoderMaskedMultiHeadAttention", [q, *pasts], num_heads=HEADS)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision(dtype) -> None:
    q, k, v = (x.astype(dtype) for x in (Q, K, V))
    y = ours("MultiHeadAttention", [q, k, v], num_heads=HEADS)
    assert y.dtype == dtype
    eps = float(ml_dtypes.finfo(dtype).eps)
    expected = joined(by_hand(split(q), split(k), split(v))[0])
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=eps, atol=eps)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([Q, K, None], r"there is no value beside a key of shape \[4, 3, 8\]"),
        ([Q, None, None], r"a packed tensor has shape \[4, 3, 8\], expected \[B, L, 2, 3, H\]"),
        ([Q, K, V, normal(5)], r"the bias has shape \[5\], expected \[24\]"),
        ([Q, K, V, None, whole(1, 2)], r"the mask has shape \[2\] for \[4, 3, 3\]"),
        ([Q, K, V, None, None, normal(3, 1, 3, 3)], r"attention_bias has shape \[3, 1, 3, 3\]"),
        ([Q, K, V, None, None, None, normal(4, 2, 5, 4)], "past_key and past_value come together"),
        ([Q, K, V, None, None, None, normal(4, 2, 5, 3), normal(4, 2, 5, 4)], "past_key of shape .* does not continue"),
        ([Q, K, V, None, None, None, normal(4, 2, 5, 4), normal(4, 2, 5, 4), whole(3)], "3 are there and 3 are new"),
        ([normal(4, 3, 9), K, V], r"query has shape \[4, 3, 9\], expected \[batch, time, a multiple of 2 heads\]"),
    ],
)
def test_faults(inputs, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours("MultiHeadAttention", inputs, num_heads=HEADS)

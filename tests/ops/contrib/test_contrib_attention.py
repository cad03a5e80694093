"""Attention of com.microsoft: MultiHeadAttention of a projection, whose own tests hold the loops."""

import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours
from ops.contrib.test_multi_head_attention import (
    BATCH,
    CLOSE,
    ENDS,
    HEADS,
    HIDDEN,
    MASKS,
    PAST,
    SIZE,
    STEPS,
    assert_close,
    by_hand,
    joined,
    normal,
    split,
    whole,
)

from onnxeval.errors import NodeError

X, WEIGHTS, BIAS = normal(BATCH, STEPS, 6), normal(6, 3 * HIDDEN), normal(3 * HIDDEN)


def projected(x=X, weights=WEIGHTS, bias=BIAS):
    product = x.astype(np.float64) @ weights.astype(np.float64) + (0 if bias is None else bias)
    return [split(part) for part in np.split(product, 3, axis=2)]


FROM = whole(2, 3, 2, 3, 0, 1, 1, 0)
LARGE = np.ones((BATCH, 1, 10, 10), np.int32)
LARGE[:, :, :, 2] = 0
MORE_MASKS = MASKS | {
    "ends and starts": (FROM, lambda b, i, j: not FROM[BATCH + b] <= j < FROM[b]),
    "one for all": (whole([0]), None),
    "one for each entry": (whole([0], [1], [0], [1]), None),
    "longest by longest": (LARGE, lambda b, i, j: j == 2),
}


@pytest.mark.parametrize("mask", MORE_MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_masks(mask, causal) -> None:
    tensor, hidden = MORE_MASKS[mask]
    bias = normal(1, HEADS, STEPS, STEPS)
    q, k, v = projected()
    y, _ = by_hand(q, k, v, hidden, bias, causal=causal)
    inputs = [X, WEIGHTS, BIAS, tensor, None, bias]
    how = {"num_heads": HEADS, "unidirectional": causal, "outputs": 2}
    assert_close(ours("Attention", inputs, **how), (joined(y), np.stack([k, v])))
    if tensor is None or tensor.ndim < 4:  # which onnxruntime has no CPU kernel for
        assert_agree("Attention", inputs, **how, **CLOSE)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("steps", [STEPS, 1])
def test_past(causal, steps) -> None:
    past = normal(2, BATCH, HEADS, PAST, SIZE)
    x = X[:, :steps]
    q, k, v = projected(x)
    keys, values = (np.concatenate([old, new], axis=2) for old, new in zip(past, (k, v), strict=True))
    lengths = ENDS + PAST if steps > 1 else whole(*[PAST + 1] * BATCH)
    y, _ = by_hand(q, keys, values, lambda b, i, j: j >= lengths[b], causal=causal, past=PAST)
    inputs = [x, WEIGHTS, BIAS, lengths, past]
    how = {"num_heads": HEADS, "unidirectional": causal, "outputs": 2}
    assert_close(ours("Attention", inputs, **how), (joined(y), np.stack([keys, values])))
    assert_agree("Attention", inputs, **how, **CLOSE)


def test_a_shared_buffer_is_filled_so_far() -> None:
    buffer = normal(2, BATCH, HEADS, 10, SIZE)
    q, k, v = projected()
    present = buffer.astype(np.float64)
    present[:, :, :, 4 : 4 + STEPS] = np.stack([k, v])
    y, _ = by_hand(q, *present[:, :, :, : 4 + STEPS], causal=True, past=4)
    inputs = [X, WEIGHTS, BIAS, None, buffer, None, whole(4)]
    how = {"num_heads": HEADS, "unidirectional": 1, "past_present_share_buffer": 1, "outputs": 2}
    assert_close(ours("Attention", inputs, **how), (joined(y), present), atol=1e-5)


def test_sizes_of_the_parts_and_no_bias() -> None:
    weights = normal(6, 2 * HIDDEN + HEADS * 3)
    parts = np.split(X.astype(np.float64) @ weights, [HIDDEN, 2 * HIDDEN], axis=2)
    y, _ = by_hand(*map(split, parts), scale=0.5)
    how = {"num_heads": HEADS, "qkv_hidden_sizes": [HIDDEN, HIDDEN, HEADS * 3], "scale": 0.5}
    np.testing.assert_allclose(ours("Attention", [X, weights], **how), joined(y), rtol=1e-4, atol=1e-5)
    assert_agree("Attention", [X, weights], **how, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dim", [0, 2])
def test_rotation(dim) -> None:
    past = normal(2, BATCH, HEADS, PAST, SIZE)
    q, k, v = projected()
    width = dim or SIZE
    for x in (q, k):
        before = x.copy()
        for s, i in np.ndindex(STEPS, width // 2):
            angle = (PAST + s) / 10000 ** (2 * i / width)
            a, b = before[:, :, s, i], before[:, :, s, i + width // 2]
            x[:, :, s, i] = np.cos(angle) * a - np.sin(angle) * b
            x[:, :, s, i + width // 2] = np.sin(angle) * a + np.cos(angle) * b
    keys, values = (np.concatenate([old, new], axis=2) for old, new in zip(past, (k, v), strict=True))
    y, _ = by_hand(q, keys, values, causal=True, past=PAST)
    how = {"num_heads": HEADS, "unidirectional": 1, "do_rotary": 1, "outputs": 2, "rotary_embedding_dim": dim or None}
    given = ours("Attention", [X, WEIGHTS, BIAS, None, past], **how)
    assert_close(given, (joined(y), np.stack([keys, values])), atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ([X, normal(5, 24)], {}, r"shapes \[4, 3, 6\] and \[5, 24\]"),
        ([X, normal(6, 22)], {}, r"weights of 22 columns do not hold queries, keys and values of sizes \[7, 7, 7\]"),
        ([X, WEIGHTS], {"qkv_hidden_sizes": [8, 4, 12]}, r"of sizes \[8, 4, 12\]"),
        ([X, WEIGHTS, normal(3)], {}, r"the bias has shape \[3\], expected \[24\]"),
        ([X, WEIGHTS, BIAS, whole(1)], {}, r"the mask has shape \[1\] for \[4, 3, 3\]"),
        ([X, WEIGHTS, BIAS, None, normal(2, 4, 2, 5)], {}, r"past has shape .*, expected \[2, 4, 2, P, 4\]"),
        (
            [X, WEIGHTS, BIAS, None, normal(2, 4, 2, 5, 4)],
            {"past_present_share_buffer": 1},
            "past_present_share_buffer needs past_sequence_length",
        ),
        ([X, WEIGHTS], {"do_rotary": 1, "rotary_embedding_dim": 6}, "rotary_embedding_dim 6 is no even part"),
        ([X, normal(6, 22)], {"qkv_hidden_sizes": [8, 8, 6]}, "they make no present"),
    ],
)
def test_faults(inputs, attributes, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours("Attention", inputs, num_heads=HEADS, outputs=2, **attributes)


@pytest.mark.parametrize("in_buffer", [False, True])
@pytest.mark.parametrize("beams", [1, 2])
def test_decoding_a_token_at_a_time(in_buffer, beams) -> None:
    room = PAST + 3 if in_buffer else PAST
    past = normal(2, BATCH, HEADS, room, SIZE)
    x, mask = X[:, :1], np.ones((BATCH, PAST + 1), np.int32)
    mask[1, 2] = 0
    q, k, v = projected(x)
    source = np.arange(BATCH)[:, None].repeat(PAST, axis=1)
    indirection = None
    if beams > 1:
        indirection = np.random.default_rng(3).integers(0, beams, (BATCH // beams, beams, room)).astype(np.int32)
        first = np.arange(BATCH) // beams * beams
        source = first[:, None] + indirection.reshape(BATCH, room)[:, :PAST]
    before = [np.stack([half[rows, :, np.arange(PAST)].swapaxes(0, 1) for rows in source]) for half in past]
    keys, values = (np.concatenate([old, new], axis=2) for old, new in zip(before, (k, v), strict=True))
    y, _ = by_hand(q, keys, values, lambda b, i, j: mask[b, j] == 0)
    present = np.zeros((2, BATCH, HEADS, max(room, PAST + 1), SIZE))
    present[:, :, :, :room] = past
    present[:, :, :, PAST] = np.stack([k, v])[:, :, :, 0]
    inputs = [x, WEIGHTS, BIAS, mask, past, None, whole(PAST), whole(beams), indirection]
    how = {"num_heads": HEADS, "past_present_share_buffer": int(in_buffer), "outputs": 2}
    assert_close(ours("DecoderMaskedSelfAttention", inputs, **how), (joined(y), present), atol=1e-5)


def test_faults_of_decoding() -> None:
    past = normal(2, BATCH, HEADS, PAST, SIZE)
    with pytest.raises(NodeError, match="expected one token a row"):
        ours("DecoderMaskedSelfAttention", [X, WEIGHTS, BIAS, None, past, None, whole(PAST)], num_heads=HEADS)
    inputs = [X[:, :1], WEIGHTS, BIAS, None, past, None, whole(PAST), whole(2)]
    with pytest.raises(NodeError, match="beams need cache_indirection"):
        ours("DecoderMaskedSelfAttention", inputs, num_heads=HEADS)

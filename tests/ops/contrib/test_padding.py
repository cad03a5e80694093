"""Batches without padding, and biases by position, against formulas; onnxruntime has them for devices alone."""

import itertools

import numpy as np
import pytest
from ops.contrib.nodes import ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(25)
COUNTS = np.array([1, 2, 0, 4], np.int32)
PLACES = np.array([[0, 4, 5, 12], [13, 14, 15, 1], [2, 3, 6, 7], [8, 9, 10, 11]], np.int32)
SUMS = np.array([0, 1, 3, 3, 7], np.int32)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_padding_out_and_in(dtype) -> None:
    x = normal(4, 4, 3).astype(dtype)
    tokens, places, sums, longest = ours("RemovePadding", [x, COUNTS], outputs=4)
    np.testing.assert_array_equal(tokens, np.concatenate([x[b, :count] for b, count in enumerate(COUNTS)]))
    for given, expected in ((places, PLACES), (sums, SUMS), (longest, np.array([4], np.int32))):
        assert given.dtype == np.int32
        np.testing.assert_array_equal(given, expected)
    padded = np.where((np.arange(4) < COUNTS[:, None])[..., None], x, 0)
    back = ours("RestorePadding", [tokens, places])
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, padded)


def test_padding_faults() -> None:
    with pytest.raises(NodeError, match="cannot hold -1 to 5 tokens"):
        ours("RemovePadding", [normal(2, 4, 3), np.array([-1, 5], np.int32)])
    with pytest.raises(NodeError, match="the input and the counts"):
        ours("RemovePadding", [normal(2, 4, 3), np.array([1], np.int32)])
    with pytest.raises(NodeError, match="no order of 2 tokens"):
        ours("RestorePadding", [normal(2, 3), np.array([[0, 1, 1]], np.int32)])
    with pytest.raises(NodeError, match="no order of 4 tokens"):
        ours("RestorePadding", [normal(4, 3), np.array([[0, 1, 2]], np.int32)])


def packed_by_hand(q, k, v, heads, scale=None, bias=None):
    """Attention of each sequence by itself."""
    results = []
    for b, (start, end) in enumerate(itertools.pairwise(SUMS)):
        if start == end:
            continue
        q1, k1, v1 = (x[start:end].astype(np.float64).reshape(end - start, heads, -1) for x in (q, k, v))
        scores = np.einsum("qnh,knh->nqk", q1, k1) * (scale or q1.shape[2] ** -0.5)
        if bias is not None:
            scores = scores + np.broadcast_to(bias, (4, heads, 4, 4))[b, :, : end - start, : end - start]
        results.append(np.einsum("nqk,knh->qnh", softmax(scores), v1).reshape(end - start, -1))
    return np.concatenate(results)


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("sizes", [None, [6, 6, 4]])
@pytest.mark.parametrize("bias_shape", [None, (1, 2, 4, 4), (4, 1, 4, 4)])
def test_packed_attention(scale, sizes, bias_shape) -> None:
    widths = sizes or [6, 6, 6]
    x, weights, bias = normal(7, 5), normal(5, sum(widths)), normal(sum(widths))
    more = None if bias_shape is None else normal(*bias_shape)
    parts = np.split(x @ weights + bias, np.cumsum(widths)[:2], axis=1)
    expected = packed_by_hand(*parts, 2, scale, more)
    inputs = [x, weights, bias, PLACES, SUMS, more]
    y = ours("PackedAttention", inputs, num_heads=2, scale=scale, qkv_hidden_sizes=sizes)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_packed_multi_head_attention(packed, with_bias, dtype) -> None:
    q, k, v = (normal(7, 6).astype(dtype) for _ in range(3))
    bias = normal(18).astype(dtype) if with_bias else None
    more = normal(1, 1, 4, 4).astype(dtype)
    biased = [q, k, v] if bias is None else [x + part for x, part in zip((q, k, v), np.split(bias, 3), strict=True)]
    expected = packed_by_hand(*biased, 2, None, more)
    given = [np.stack([x.reshape(7, 2, 3) for x in (q, k, v)], axis=2), None, None] if packed else [q, k, v]
    y = ours("PackedMultiHeadAttention", [*given, bias, PLACES, SUMS, more], num_heads=2)
    assert y.dtype == dtype
    close = 1e-5 if dtype == np.float32 else 1e-2
    np.testing.assert_allclose(y, expected, rtol=close, atol=close)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: normal(7, 2, 2, 3), 1: None, 2: None}, "a packed query has shape"),
        ({2: None}, "come together"),
        ({1: normal(7, 4)}, "query, key and value have shapes"),
        ({3: normal(17)}, "the bias has shape"),
        ({5: np.array([0, 1, 3, 3, 6], np.int32)}, "do not end at"),
        ({5: np.array([0, 1, 3, 7], np.int32)}, "do not end at"),
        ({6: normal(1, 1, 3, 3)}, "attention_bias has shape"),
    ],
)
def test_packed_multi_head_attention_faults(change, message) -> None:
    inputs = [*(normal(7, 6) for _ in range(3)), normal(18), PLACES, SUMS, None]
    for place, x in change.items():
        inputs[place] = x
    with pytest.raises(NodeError, match=message):
        ours("PackedMultiHeadAttention", inputs, num_heads=2)


def bucket_by_hand(ahead, buckets, both_sides, furthest):
    """The bucket of T5 of a key that is so far ahead of its query."""
    first = 0
    if both_sides:
        buckets //= 2
        first = buckets if ahead > 0 else 0
        distance = abs(ahead)
    else:
        distance = max(-ahead, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    steps = np.log(distance / exact) / np.log(furthest / exact) * (buckets - exact)
    return first + min(exact + int(steps + 1e-6), buckets - 1)


@pytest.mark.parametrize("both_sides", [0, 1])
@pytest.mark.parametrize(("buckets", "furthest", "length"), [(4, 128, 2), (32, 128, 200), (8, 20, 33)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_relative_position_bias(buckets, furthest, length, both_sides, dtype) -> None:
    by_head = normal(3, buckets).astype(dtype)
    table = by_head.reshape(buckets, 3)  # the shape is the other way round, the memory is not
    size = np.array([length], np.int64)
    expected = np.zeros((1, 3, length, length), dtype)
    for q, k in np.ndindex(length, length):
        expected[0, :, q, k] = by_head[:, bucket_by_hand(k - q, buckets, both_sides, furthest)]
    y = ours("RelativePositionBias", [table, size, size], is_bidirectional=both_sides, max_distance=furthest)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, expected)


def test_relative_position_bias_as_published() -> None:
    """The example of onnxruntime's tests: four buckets, of them two ahead."""
    table = np.array([[1, 4, 7, 10], [2, 5, 8, 11], [3, 6, 9, 12]], np.float32).reshape(4, 3)
    size = np.array([2], np.int64)
    y = ours("RelativePositionBias", [table, size, size], is_bidirectional=1, max_distance=128)
    assert y.reshape(-1).tolist() == [1, 10, 4, 1, 2, 11, 5, 2, 3, 12, 6, 3]


def test_relative_position_bias_faults() -> None:
    with pytest.raises(NodeError, match="lengths are 2 and 3"):
        ours("RelativePositionBias", [normal(4, 3), np.array([2]), np.array([3])], max_distance=9)
    with pytest.raises(NodeError, match="2 buckets cannot hold"):
        ours("RelativePositionBias", [normal(2, 3), *[np.array([2])] * 2], max_distance=9, is_bidirectional=1)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gated_relative_position_bias(packed, dtype) -> None:
    n, h, d = 2, 3, 8
    tokens, bias = normal(7, n * h).astype(dtype), normal(n * h).astype(dtype)
    x = np.zeros((16, n * h), dtype)
    x[PLACES.reshape(-1)[:7]] = tokens
    x = x.reshape(4, 4, n * h)
    position, weight = normal(1, n, 4, 4).astype(dtype), normal(h, d).astype(dtype)
    shift, eco = normal(d).astype(dtype), normal(1, n, 1, 1).astype(dtype)
    heads = (x.astype(np.float64) + bias).reshape(4, 4, n, h).transpose(0, 2, 1, 3)
    halves = (heads @ weight + shift).reshape(4, n, 4, 2, d // 2).sum(axis=-1)
    u, r = np.split(1 / (1 + np.exp(-halves)), 2, axis=-1)
    expected = (u * (r * eco - 1) + 2) * position
    inputs = [tokens if packed else x, bias, position, weight, shift, eco, PLACES if packed else None]
    y = ours("GatedRelativePositionBias", inputs, num_heads=n)
    assert y.dtype == dtype
    close = 1e-5 if dtype == np.float32 else 5e-3
    np.testing.assert_allclose(y, expected, rtol=close, atol=close)


def test_gated_relative_position_bias_faults() -> None:
    inputs = [normal(2, 4, 6), normal(6), normal(1, 2, 4, 4), normal(3, 8), normal(8), normal(1, 2, 1, 1)]
    for place, wrong, message in (
        (0, normal(2, 4, 5), "query_layer has shape"),
        (2, normal(1, 1, 4, 4), "rel_pos has shape"),
        (3, normal(3, 7), "bias has shape"),
    ):
        with pytest.raises(NodeError, match=message):
            ours("GatedRelativePositionBias", [wrong if at == place else x for at, x in enumerate(inputs)], num_heads=2)

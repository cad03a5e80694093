"""SparseAttention against loops in float64, and against onnxruntime."""

import math

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import ours, theirs_sharing

from onnxeval.errors import NodeError

RNG = np.random.default_rng(19)
BATCH, STEPS, HEADS, KV_HEADS, SIZE, BLOCK, ROOM = 2, 40, 4, 2, 16, 16, 64
HIDDEN, KV_HIDDEN = HEADS * SIZE, KV_HEADS * SIZE
#: The example of the text.
LAYOUTS = np.array(
    [
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]],
        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]],
    ]
)
COLUMNS = np.array([[0, 0, 1, 1, 2, 1, 2, 3, -1], [0, 0, 1, 0, 1, 2, 0, 2, 3]], np.int32)
ROWS = np.array([[0, 1, 3, 5, 8], [0, 1, 3, 6, 9]], np.int32)
EVERY = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "sparse_block_size": BLOCK, "outputs": 3}


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


COS, SIN = normal(ROOM, SIZE // 2), normal(ROOM, SIZE // 2)


def call(steps, lengths, total, rows=ROWS, columns=COLUMNS, turning=()):
    batch = len(lengths)
    tensors = [normal(batch, steps, HIDDEN), normal(batch, steps, KV_HIDDEN), normal(batch, steps, KV_HIDDEN)]
    caches = [normal(batch, KV_HEADS, ROOM, SIZE) for _ in range(2)]
    numbers = [np.array([total], np.int32), np.array(lengths, np.int32)]
    return [*tensors, *caches, rows, columns, *numbers, *turning]


def split(x, heads):
    return x.astype(np.float64).reshape(*x.shape[:2], heads, SIZE).transpose(0, 2, 1, 3)


def turned(vector, position):
    half = SIZE // 2
    product = (vector[:half] + 1j * vector[half:]) * (COS[position].astype(np.float64) + 1j * SIN[position])
    return np.concatenate([product.real, product.imag])


def by_hand(inputs, layouts=LAYOUTS, scale=None, rotary=False):
    """(Y, keys, values), rows of padding left zero."""
    q, k, v = (split(x, n) for x, n in zip(inputs[:3], (HEADS, KV_HEADS, KV_HEADS), strict=True))
    lengths = inputs[8]
    keys, values = np.zeros((2, len(q), KV_HEADS, ROOM, SIZE))
    y = np.zeros_like(q)
    for b, length in enumerate(lengths):
        count = min(q.shape[2], length)
        past = length - count
        for h in range(KV_HEADS):
            keys[b, h, :past], values[b, h, :past] = inputs[3][b, h, :past], inputs[4][b, h, :past]
            for s in range(count):
                keys[b, h, past + s] = turned(k[b, h, s], past + s) if rotary else k[b, h, s]
                values[b, h, past + s] = v[b, h, s]
        for n, s in np.ndindex(HEADS, count):
            here, h = past + s, n // (HEADS // KV_HEADS)
            layout = layouts[n % len(layouts)]
            seen = [j for j in range(here + 1) if layout[here // BLOCK, j // BLOCK]]
            vector = turned(q[b, n, s], here) if rotary else q[b, n, s]
            powers = np.exp([vector @ keys[b, h, j] * (scale or 1 / math.sqrt(SIZE)) for j in seen])
            y[b, n, s] = powers / powers.sum() @ values[b, h, seen]
    return y.transpose(0, 2, 1, 3).reshape(len(q), -1, HIDDEN), keys, values


def assert_right(given, expected, lengths, entries):
    for b in entries:
        count = min(given[0].shape[1], lengths[b])
        np.testing.assert_allclose(given[0][b, :count], expected[0][b, :count], rtol=1e-4, atol=1e-5)
        for one, other in zip(given[1:], expected[1:], strict=True):
            np.testing.assert_allclose(one[b, :, : lengths[b]], other[b, :, : lengths[b]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("steps", "lengths", "total"),
    [(40, (40, 40), 40), (40, (20, 40), 40), (1, (50, 50), 50), (1, (50, 33), 50), (10, (45,), 45), (10, (45, 30), 45)],
)
@pytest.mark.parametrize("rotary", [False, True])
def test_loops_and_onnxruntime(steps, lengths, total, rotary) -> None:
    inputs = call(steps, lengths, total, turning=(COS, SIN) if rotary else ())
    how = EVERY | {"do_rotary": int(rotary), "scale": 0.4 if rotary else None}
    expected = by_hand(inputs, scale=0.4 if rotary else None, rotary=rotary)
    assert_right(ours("SparseAttention", inputs, **how), expected, lengths, range(len(lengths)))
    # onnxruntime 1.32 mixes up the rows of entries that are shorter than the longest
    whole = [b for b, length in enumerate(lengths) if length == total]
    assert_right(theirs_sharing("SparseAttention", inputs, {3: 1, 4: 2}, **how), expected, lengths, whole)


def test_one_layout_for_all_heads_and_packed_tensors() -> None:
    inputs = call(40, (40, 40), 40, ROWS[1:], COLUMNS[1:])
    expected = by_hand(inputs, LAYOUTS[1:])
    assert_right(ours("SparseAttention", inputs, **EVERY), expected, (40, 40), (0, 1))
    packed = [np.concatenate(inputs[:3], axis=2), None, None, *inputs[3:]]
    assert_right(ours("SparseAttention", packed, **EVERY), expected, (40, 40), (0, 1))


def test_half_precision() -> None:
    inputs = call(1, (50, 50), 50)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        narrow = [x.astype(dtype) if x.dtype == np.float32 else x for x in inputs]
        given = ours("SparseAttention", narrow, **EVERY)
        assert {x.dtype for x in given} == {np.dtype(dtype)}
        wide = [x.astype(np.float32) if x.dtype == dtype else x for x in narrow]
        eps = float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(given[0].astype(np.float64), by_hand(wide)[0], rtol=eps, atol=eps)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (5, np.array([[0, 1, 3, 5, 20], [0, 1, 3, 6, 9]], np.int32), "do not cut 9 columns into rows"),
        (6, np.array([[0, 0, 1, 1, 2, 1, 2, 7, -1]] * 2, np.int32), "leave the 4 blocks"),
        (5, ROWS[:, :4], "3 blocks of 16 tokens do not hold 50"),
        (7, np.array([70], np.int32), "the cache holds 64 tokens, total_sequence_length is 70"),
        (8, np.array([50, 51], np.int32), r"leave \[0, 49\]"),
        (4, normal(2, 2, 60, 16), "past_key and past_value have shapes"),
    ],
)
def test_faults(place, value, message) -> None:
    inputs = call(1, (50, 50), 50)
    inputs[place] = value
    with pytest.raises(NodeError, match=message):
        ours("SparseAttention", inputs, **EVERY)

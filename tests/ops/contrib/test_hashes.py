"""MurmurHash3 and the hashes of n-grams, against the algorithms written out and against onnxruntime."""

import struct

import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(24)
MASK = (1 << 32) - 1
BOUNDS = {np.int32: 2**31, np.int64: 2**63}


def murmur(data, seed):
    """32 bits of MurmurHash3 for x86, from its public description."""

    def rotated(v, bits):
        return (v << bits | v >> (32 - bits)) & MASK

    def scrambled(v):
        return rotated(v * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK

    h = seed
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        (word,) = struct.unpack("<I", data[start : start + 4])
        h = (rotated(h ^ scrambled(word), 13) * 5 + 0xE6546B64) & MASK
    if whole < len(data):
        h ^= scrambled(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    return h ^ h >> 16


def test_the_algorithm_itself() -> None:
    assert murmur(b"", 1) == 0x514E28B7
    assert murmur(b"\xff\xff\xff\xff", 0) == 0x76293B50
    assert murmur(b"Hello, world!", 0x9747B28C) == 0x24884CBA


@pytest.mark.parametrize(("seed", "positive"), [(0, 1), (0, 0), (2**32 - 1, 1), (77, 0)])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64", "string"])
def test_murmur_hash(dtype, seed, positive) -> None:
    if dtype == "string":
        x = np.array([["", "a", "ab"], ["abc", "abcd", "Größe €"]], object)
        data = [text.encode() for text in x.reshape(-1)]
    else:
        x = (RNG.normal(size=(2, 3)) * 1e6).astype(dtype)
        data = [value.tobytes() for value in x.reshape(-1)]
    expected = np.array([murmur(one, seed) for one in data], np.uint32).reshape(2, 3)
    y = ours("MurmurHash3", [x], seed=seed, positive=positive)
    assert y.dtype == (np.uint32 if positive else np.int32)
    np.testing.assert_array_equal(y.view(np.uint32), expected)
    assert_agree("MurmurHash3", [x], seed=seed, positive=positive)


def test_murmur_hash_of_nothing_and_faults() -> None:
    assert ours("MurmurHash3", [np.zeros((0, 3), np.int32)]).shape == (0, 3)
    with pytest.raises(NodeError, match="no unsigned number of 32 bits"):
        ours("MurmurHash3", [np.zeros(1, np.int32)], seed=-1)


def hashes_by_hand(ids, multipliers, sizes, past, offsets, end, segments, reset, pad):
    """Written token by token from the text, with integers that do not overflow, wrapped at each step."""
    bound = BOUNDS[ids.dtype.type]

    def wrapped(v):
        return (v + bound) % (2 * bound) - bound

    n_most = len(multipliers)
    blank = pad if end is None else end
    heads = len(sizes) // (n_most - 1)
    y = np.zeros((*ids.shape, len(sizes)), ids.dtype)
    for b, row in enumerate(ids.tolist()):
        before = [blank] * (n_most - 1) if past is None else past[b].tolist()
        line = before + row
        for t in range(len(row)):
            here = t + n_most - 1
            mix = wrapped(line[here] * int(multipliers[0]))
            for back in range(1, n_most):
                place = here - back
                hidden = end is not None and reset and end in line[place:here]
                if segments is not None and place < here:
                    first = max(place, n_most - 1) - (n_most - 1)
                    hidden |= len(set(segments[b, first : t + 1].tolist())) > 1
                mix ^= wrapped((blank if hidden else line[place]) * int(multipliers[back]))
                for head in range(heads):
                    column = (back - 1) * heads + head
                    offset = 0 if offsets is None else int(offsets[column])
                    y[b, t, column] = wrapped(mix % int(sizes[column]) + offset)
    whole = np.concatenate([np.full((len(ids), n_most - 1), blank, ids.dtype) if past is None else past, ids], axis=1)
    return y, whole[:, ids.shape[1] :]


@pytest.mark.parametrize("reset", [0, 1])
@pytest.mark.parametrize("end", [None, 3])
@pytest.mark.parametrize("with_segments", [False, True])
@pytest.mark.parametrize("with_past", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_ngram_hash_mapping(dtype, with_past, with_segments, end, reset) -> None:
    ids = RNG.integers(0, 6, (3, 8)).astype(dtype)
    multipliers = RNG.integers(1, BOUNDS[dtype] - 1, 3).astype(dtype) | 1
    sizes = RNG.integers(5, 97, 4).astype(dtype)
    past = RNG.integers(0, 6, (3, 2)).astype(dtype) if with_past else None
    offsets = RNG.integers(0, 1000, 4).astype(dtype) if with_past else None
    segments = np.cumsum(RNG.integers(0, 2, (3, 8)), axis=1).astype(np.int32) if with_segments else None
    inputs = [ids, multipliers, sizes, past, offsets, None if end is None else np.array(end, dtype), segments]
    how = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 1, "reset_on_eos": reset, "outputs": 2}
    expected, present = hashes_by_hand(ids, multipliers, sizes, past, offsets, end, segments, reset, 1)
    y, last = ours("NGramHashMapping", inputs, **how)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(last, present)
    assert_agree("NGramHashMapping", inputs, **how)


@pytest.mark.parametrize(
    ("place", "given", "message"),
    [
        (0, np.zeros(3, np.int64), "input_ids have shape"),
        (1, np.ones(2, np.int64), "multipliers have shape"),
        (2, np.ones(3, np.int64), "vocab_sizes have shape"),
        (2, np.zeros(4, np.int64), "expected positive numbers"),
        (3, np.zeros((2, 3), np.int64), "past_ids have shape"),
        (5, np.zeros(2, np.int64), "eos_token_id has shape"),
        (6, np.zeros((1, 3), np.int32), "segment_ids have shape"),
    ],
)
def test_ngram_hash_mapping_faults(place, given, message) -> None:
    inputs = [np.zeros((2, 3), np.int64), np.ones(3, np.int64), np.ones(4, np.int64), None, None, None, None]
    inputs[place] = given
    with pytest.raises(NodeError, match=message):
        ours("NGramHashMapping", inputs, max_ngram_size=3, n_head_per_ngram=2, pad_id=1)

"""Hashes of elements, and of n-grams of tokens."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import STRING, Tensor
from onnxeval.ops.contrib._attention import single
from onnxeval.ops.contrib._typed import FLOAT32, FLOAT64, INT32, INT64, microsoft_op
from onnxeval.values import shape_text

_UINT32 = np.dtype(np.uint32)


@microsoft_op("MurmurHash3", "T", T=(_UINT32, INT32, np.dtype(np.uint64), INT64, FLOAT32, FLOAT64, STRING))
def murmur_hash(x: Tensor, *, positive: int = 1, seed: int = 0) -> Tensor:
    """The 32 bits of MurmurHash3 of the bytes of each element, little-endian or UTF-8; int32 unless ``positive``.

    Source: com.microsoft.MurmurHash3-1.
    """
    if not 0 <= seed < 1 << 32:
        raise ValueError(f"seed {seed} is no unsigned number of 32 bits")
    if x.dtype == STRING:
        texts = [str(text).encode("utf-8", "surrogateescape") for text in x.reshape(-1)]
        hashes = np.array([_hash_of(np.frombuffer(text, np.uint8)[np.newaxis], seed)[0] for text in texts], np.uint32)
    else:
        data = np.ascontiguousarray(x.astype(x.dtype.newbyteorder("<"))).reshape(-1)
        hashes = _hash_of(data.view(np.uint8).reshape(x.size, x.dtype.itemsize), seed)
    return hashes.view(np.uint32 if positive else np.int32).reshape(x.shape)


@microsoft_op("NGramHashMapping", "MMMMMMS", M=(INT32, INT64), S=(INT32,))
def ngram_hash_mapping(
    input_ids: Tensor,
    multipliers: Tensor,
    vocab_sizes: Tensor,
    past_ids: Tensor | None,
    head_offsets: Tensor | None,
    eos_token_id: Tensor | None,
    segment_ids: Tensor | None,
    *,
    max_ngram_size: int,
    n_head_per_ngram: int,
    pad_id: int,
    reset_on_eos: int = 0,
) -> tuple[Tensor, Tensor]:
    """(hashes (B, S, heads), the last ids (B, N - 1)) of ids (B, S), N being ``max_ngram_size``.

    For each n from 2 to N the last n ids, each times its multiplier, are combined by xor; each of ``n_head_per_ngram``
    heads takes that modulo its size (heads,), plus its offset (heads,). Before the first id stand ``past_ids``
    (B, N - 1), and where these are not given the id of the end of a sequence or else ``pad_id``. That id also stands
    for all up to the last end before an id, with ``reset_on_eos``, and for all ids of segments before. Integers wrap.

    Raises ValueError where shapes do not fit together and for sizes that are not positive.
    Source: com.microsoft.NGramHashMapping-1.
    """
    history = max_ngram_size - 1
    heads = history * n_head_per_ngram
    if history < 1 or n_head_per_ngram < 1:
        raise ValueError(f"max_ngram_size {max_ngram_size} is below 2 or n_head_per_ngram {n_head_per_ngram} below 1")
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids have shape {shape_text(input_ids.shape)}, expected [B, S]")
    if multipliers.ndim != 1 or len(multipliers) < max_ngram_size:
        raise ValueError(f"multipliers have shape {shape_text(multipliers.shape)}, expected [{max_ngram_size}]")
    batch, length = input_ids.shape
    expected = {
        "vocab_sizes": (vocab_sizes, (heads,)),
        "head_offsets": (head_offsets, (heads,)),
        "past_ids": (past_ids, (batch, history)),
        "segment_ids": (segment_ids, (batch, length)),
    }
    for name, (given, shape) in expected.items():
        if given is not None and given.shape != shape:
            raise ValueError(f"{name} have shape {shape_text(given.shape)}, expected {shape_text(shape)}")
    if np.any(vocab_sizes < 1):
        raise ValueError(f"vocab_sizes hold {vocab_sizes.min()}, expected positive numbers")
    end = single(eos_token_id, "eos_token_id")
    blank = input_ids.dtype.type(pad_id if end is None else end)
    if past_ids is None:
        past_ids = np.full((batch, history), blank)
    ids = np.concatenate([past_ids, input_ids], axis=1)
    starts = np.zeros(ids.shape, np.int64)  # the first place that each id looks back to
    if end is not None and reset_on_eos:
        ends = np.where(ids == end, np.arange(1, ids.shape[1] + 1), 0)
        starts[:, 1:] = np.maximum.accumulate(ends, axis=1)[:, :-1]
    if segment_ids is not None:
        changes = np.zeros(ids.shape, np.int64)
        changed = segment_ids[:, 1:] != segment_ids[:, :-1]
        changes[:, history + 1 :] = np.where(changed, np.arange(history + 1, ids.shape[1]), 0)
        starts = np.maximum(starts, np.maximum.accumulate(changes, axis=1))
    mix = input_ids * multipliers[0]
    hashes = []
    places = np.arange(history, history + length)
    for back in range(1, max_ngram_size):
        seen = np.where(places - back >= starts[:, history:], ids[:, history - back : history - back + length], blank)
        mix = mix ^ (seen * multipliers[back])
        sizes = vocab_sizes[(back - 1) * n_head_per_ngram : back * n_head_per_ngram]
        hashes.append(np.mod(mix[:, :, np.newaxis], sizes))
    result = np.concatenate(hashes, axis=2)
    if head_offsets is not None:
        result = result + head_offsets
    return result, ids[:, length:]


def _hash_of(data: Tensor, seed: int) -> Tensor:
    """Rows of bytes (n, length) -> uint32 (n,)."""
    count, length = data.shape
    whole = length // 4 * 4
    words = np.ascontiguousarray(data[:, :whole]).view("<u4").astype(np.uint32)
    h = np.full(count, seed, np.uint32)
    for word in words.T:
        h = _rotated(h ^ _scrambled(word), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    if length > whole:
        rest = np.zeros((count, 4), np.uint8)
        rest[:, : length - whole] = data[:, whole:]
        h = h ^ _scrambled(rest.view("<u4")[:, 0].astype(np.uint32))
    h = h ^ np.uint32(length)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.asarray(h ^ (h >> np.uint32(16)))


def _scrambled(word: Tensor) -> Tensor:
    return _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotated(x: Tensor, bits: int) -> Tensor:
    return np.asarray((x << np.uint32(bits)) | (x >> np.uint32(32 - bits)))

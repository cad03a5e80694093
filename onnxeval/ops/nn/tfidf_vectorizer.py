"""TfIdfVectorizer: how often each n-gram of a pool occurs in a sequence."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from onnxeval.dtypes import STRING, Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.registry import op


@op("TfIdfVectorizer", versions=(9,))
def tfidf_vectorizer(
    x: Tensor,
    *,
    mode: str,
    min_gram_length: int,
    max_gram_length: int,
    max_skip_count: int,
    ngram_counts: tuple[int, ...],
    ngram_indexes: tuple[int, ...],
    pool_int64s: tuple[int, ...] | None,
    pool_strings: tuple[str, ...] | None,
    weights: tuple[float, ...] | None,
    allocate: Allocate,
) -> Tensor:
    """(C,) -> (max(ngram_indexes) + 1,), or (N, C) -> (N, max(ngram_indexes) + 1), float32: weighted counts of n-grams.

    An n-gram is n tokens at equal distances, from 1 to ``max_skip_count`` + 1; a single token counts once. ``mode`` is
    "TF": the counts, "IDF": the weight of what occurs, or "TFIDF": counts times weights. ValueError where the pool is
    missing, given twice, of another type than ``x``, or does not fit the counts and indexes. Source: TfIdfVectorizer-9.
    """
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ValueError(f"mode {mode!r} is none of 'TF', 'IDF', 'TFIDF'")
    if x.ndim not in (1, 2):
        raise ValueError(f"the input has rank {x.ndim}, expected 1 or 2")
    if not 1 <= min_gram_length <= max_gram_length or max_skip_count < 0:
        raise ValueError(f"lengths {min_gram_length} to {max_gram_length} with {max_skip_count} skips make no sense")
    places = _places(_pool(x, pool_int64s, pool_strings), ngram_counts)
    if len(places) != len(ngram_indexes) or min(ngram_indexes, default=-1) < 0:
        raise ValueError(f"the {len(places)} n-grams of the pool do not fit ngram_indexes {list(ngram_indexes)}")
    if weights is not None and len(weights) != len(ngram_indexes):
        raise ValueError(f"{len(weights)} weights for {len(ngram_indexes)} n-grams")
    lengths = [n for n in {len(gram) for gram in places} if min_gram_length <= n <= max_gram_length]
    scale = np.ones(len(places), np.float32) if mode == "TF" or weights is None else np.array(weights, np.float32)
    rows = x if x.ndim == 2 else x[np.newaxis]
    output = allocate((len(rows), max(ngram_indexes) + 1), np.dtype(np.float32))
    output[...] = 0
    columns = np.array(ngram_indexes, np.int64)
    for row, tokens in zip(output, rows.tolist(), strict=True):
        counts = _counts(tokens, places, lengths, max_skip_count)
        np.add.at(row, columns, scale * (np.minimum(counts, 1) if mode == "IDF" else counts))
    return output if x.ndim == 2 else output[0]


def _pool(x: Tensor, integers: tuple[int, ...] | None, strings: tuple[str, ...] | None) -> tuple[Any, ...]:
    pool = strings if integers is None else integers
    if pool is None or (integers is not None and strings is not None):
        raise ValueError("one of pool_int64s and pool_strings must be given, and not both")
    if (x.dtype == STRING) != (pool is strings):
        raise ValueError(f"the pool holds {'strings' if pool is strings else 'integers'}, the input does not")
    return pool


def _places(pool: tuple[Any, ...], starts: tuple[int, ...]) -> dict[tuple[Any, ...], int]:
    """Each n-gram of the pool -> its number; those of length n begin at ``starts[n - 1]``."""
    places: dict[tuple[Any, ...], int] = {}
    for n, (start, end) in enumerate(pairwise([*starts, len(pool)]), start=1):
        if not 0 <= start <= end <= len(pool) or (end - start) % n or (n == 1 and start):
            raise ValueError(
                f"ngram_counts {list(starts)} do not fit a pool of {len(pool)}: {n}-grams in [{start}, {end})"
            )
        for at in range(start, end, n):
            if pool[at : at + n] in places:
                raise ValueError(f"the n-gram {list(pool[at : at + n])} is in the pool twice")
            places[pool[at : at + n]] = len(places)
    return places


def _counts(tokens: list[Any], places: dict[tuple[Any, ...], int], lengths: list[int], skips: int) -> Tensor:
    counts = np.zeros(len(places), np.int64)
    for n in lengths:
        longest = 1 if n == 1 else min(skips + 1, (len(tokens) - 1) // (n - 1))
        for distance in range(1, longest + 1):
            last = (n - 1) * distance
            for at in range(len(tokens) - last):
                place = places.get(tuple(tokens[at : at + last + 1 : distance]))
                if place is not None:
                    counts[place] += 1
    return counts

"""Where the entries of a batch stand in time when tokens are added to a cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.values import shape_text


@dataclass(frozen=True, slots=True)
class Times:
    """Numbers of tokens, (batch,) each; ``total`` is the longest there may be, ``length`` that of the present."""

    queries: Tensor  # rows of the queries that are no padding
    first_query: Tensor  # the position of the first of them
    new: Tensor  # rows of the keys that are no padding
    past: Tensor  # tokens before them
    kept: Tensor  # how many of those the cache holds, from row 0 on
    dropped: Tensor  # rows that the cache drops after this call
    total: int
    length: int
    is_prompt: bool

    @property
    def after(self) -> Tensor:
        return self.past + self.new


def times_of(
    seqlens_k: Tensor,
    query_seqlens: Tensor | None,
    total: int,
    n_queries: int,
    n_keys: int,
    past_length: int | None,
    window: int | None,
) -> Times:
    """What GroupQueryAttention's lengths mean.

    ``n_queries`` and ``n_keys`` are the rows of this call, ``past_length`` those of the cache, ``window`` is how many
    tokens a sliding cache needs, None where the cache does not slide. Raises ValueError where they contradict each
    other.
    """
    after = seqlens_k.reshape(-1).astype(np.int64) + 1
    rows = past_length or 0
    if n_keys not in (n_queries, 0) or (not n_keys and not rows):
        raise ValueError(f"{n_queries} queries meet {n_keys} new keys and a cache of {rows}")
    is_prompt = query_seqlens is None and n_queries == total
    if query_seqlens is None:
        queries = np.minimum(n_queries, after)
        if window is None and not (total == rows + n_keys or n_keys <= total <= rows):
            raise ValueError(f"total_sequence_length {total} does not fit a cache of {rows} and {n_keys} new keys")
    else:
        queries = query_seqlens.reshape(-1).astype(np.int64)
        if past_length is None or len(queries) != len(after) or n_keys != n_queries:
            raise ValueError("query_seqlens needs a past, new keys and a number for each entry of the batch")
        if np.any((queries < 0) | (queries > np.minimum(n_queries, after))):
            raise ValueError(
                f"query_seqlens {queries.tolist()} leave [0, {n_queries}] or exceed {after.tolist()} tokens"
            )
    if np.any((after < 1) | (after > total)):
        raise ValueError(f"seqlens_k {(after - 1).tolist()} leave [0, {total - 1}], of total_sequence_length {total}")
    new = queries if n_keys else np.zeros_like(queries)
    past = after - new
    kept, dropped = past, np.zeros_like(past)
    length = max(total, rows)
    if window is not None:
        kept = _resident(past, rows, window)
        dropped = kept + new - _resident(after, rows, window)
        length = rows
    if np.any(kept > rows):
        raise ValueError(f"the cache holds {rows} rows, {past.tolist()} tokens are to be in it")
    return Times(queries, after - queries, new, past, kept, dropped, total, length, is_prompt)


def for_batch(x: Tensor, name: str, batch: int) -> Tensor:
    """``x`` of one number for each entry of the batch; ValueError where it has others."""
    if x.size != batch:
        raise ValueError(f"{name} has shape {shape_text(x.shape)}, expected [{batch}]")
    return x


def _resident(tokens: Tensor, capacity: int, window: int) -> Tensor:
    """How many of so many tokens a sliding cache holds."""
    if capacity < window:
        raise ValueError(f"a sliding cache of {shape_text((capacity,))} rows cannot hold a window of {window}")
    step = capacity - window + 1
    return np.where(tokens <= capacity, tokens, tokens - step * -(-(tokens - capacity) // step))

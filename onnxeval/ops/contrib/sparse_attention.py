"""SparseAttention: attention over a cache, of which each head sees some blocks alone."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._attention import scores_of, weighted
from onnxeval.ops.contrib._attention import join_heads, single
from onnxeval.ops.contrib._cache_times import Times, for_batch, times_of
from onnxeval.ops.contrib._grouped import columns_of, grouped_heads, probabilities_of, rotated, seen_keys
from onnxeval.ops.contrib._kv_cache import joined_cache
from onnxeval.ops.contrib._typed import FLOATS, INT32, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("SparseAttention", "TTTTTMMMMTT", T=FLOATS, M=(INT32,))
def sparse_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    past_key: Tensor,
    past_value: Tensor,
    block_row_indices: Tensor,
    block_col_indices: Tensor,
    total_sequence_length: Tensor,
    key_total_sequence_lengths: Tensor,
    cos_cache: Tensor | None,
    sin_cache: Tensor | None,
    *,
    do_rotary: int = 0,
    kv_num_heads: int,
    num_heads: int,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sparse_block_size: int,
    allocate: Allocate,
) -> tuple[Tensor, Tensor, Tensor]:
    """(Y, present key, present value) of queries (B, S, N * H), keys and values (B, S, Nk * H), or all in one.

    The past is a buffer (B, Nk, longest, H); an entry of the batch has ``key_total_sequence_lengths`` tokens after this
    call, the last S of them new. A query sees the keys up to its own in the blocks of ``sparse_block_size`` tokens that
    the row of its block holds: ``block_row_indices`` (layouts, blocks + 1) and ``block_col_indices`` are rows of a
    sparse matrix, and heads take the layouts in turn. Rows of a present behind the last token are zeros. Sums are in
    float32.

    Raises ValueError where shapes, lengths and blocks do not fit together. Source: com.microsoft.SparseAttention-1.
    """
    q, k, v = grouped_heads(query, key, value, num_heads, kv_num_heads)
    lengths = for_batch(key_total_sequence_lengths, "key_total_sequence_lengths", len(q))
    total = single(total_sequence_length, "total_sequence_length") or 0
    shape = (*k.shape[:2], past_key.shape[2] if past_key.ndim == 4 else 0, k.shape[3])
    if past_key.shape != shape or past_value.shape != shape:
        shapes = f"{shape_text(past_key.shape)} and {shape_text(past_value.shape)}"
        raise ValueError(f"past_key and past_value have shapes {shapes}, expected {shape_text(shape)}")
    if total > shape[2]:
        raise ValueError(f"the cache holds {shape[2]} tokens, total_sequence_length is {total}")
    times = times_of(lengths - 1, None, total, q.shape[2], k.shape[2], shape[2], None)
    if do_rotary:
        q, k = (rotated(x, cos_cache, sin_cache, None, times, rotary_interleaved) for x in (q, k))
    presents, columns = [], []
    for new, past in ((k, past_key), (v, past_value)):
        written = new.astype(query.dtype)
        presents.append(joined_cache(past, times.kept, written, times.new, times.dropped, times.length, allocate))
        columns.append(np.concatenate([past[:, :, : times.kept.max(initial=0)], written], axis=2).astype(np.float32))
    positions, valid = columns_of(times, columns[0].shape[2], k.shape[2])
    keys, values = (np.where(valid[:, np.newaxis, :, np.newaxis], x, np.float32(0)) for x in columns)
    layouts = _block_masks(block_row_indices, block_col_indices, num_heads)
    seen = seen_keys(times, positions, valid, q.shape[2], -1, 1)
    seen = seen & _in_blocks(layouts, times, positions, q.shape[2], num_heads, sparse_block_size)
    probabilities = probabilities_of(scores_of(q, keys, scale or None), seen, None, 0)
    return join_heads(weighted(probabilities, values)).astype(query.dtype), presents[0], presents[1]


def _block_masks(rows: Tensor, columns: Tensor, heads: int) -> Tensor:
    """(layouts, blocks, blocks) bool of the sparse matrices."""
    if rows.ndim != 2 or columns.ndim != 2 or len(rows) != len(columns) or not len(rows) or heads % len(rows):
        shapes = f"{shape_text(rows.shape)} and {shape_text(columns.shape)}"
        raise ValueError(f"block_row_indices and block_col_indices have shapes {shapes}, there are {heads} heads")
    blocks = rows.shape[1] - 1
    masks = np.zeros((len(rows), blocks, blocks), np.bool_)
    for mask, bounds, listed in zip(masks, rows, columns, strict=True):
        counts = np.diff(bounds)
        if bounds[0] or np.any(counts < 0) or bounds[-1] > len(listed):
            raise ValueError(f"block_row_indices {bounds.tolist()} do not cut {len(listed)} columns into rows")
        used = listed[: bounds[-1]]
        if np.any((used < 0) | (used >= blocks)):
            raise ValueError(f"block_col_indices {used.tolist()} leave the {blocks} blocks")
        mask[np.repeat(np.arange(blocks), counts), used] = True
    return masks


def _in_blocks(layouts: Tensor, times: Times, positions: Tensor, n_queries: int, heads: int, block_size: int) -> Tensor:
    """(B, N, S, columns): whether the block of the key is in the row of the query's block."""
    blocks = layouts.shape[1]
    if block_size < 1 or times.total > blocks * block_size:
        raise ValueError(f"{blocks} blocks of {block_size} tokens do not hold {times.total}")
    last = blocks * block_size - 1  # padding may lie behind it
    places = np.minimum(times.first_query[:, np.newaxis] + np.arange(n_queries), last) // block_size
    keys = np.minimum(positions, last) // block_size
    by_layout = layouts[:, places[:, :, np.newaxis], keys[:, np.newaxis]].transpose(1, 0, 2, 3)
    return by_layout[:, np.arange(heads) % len(layouts)]

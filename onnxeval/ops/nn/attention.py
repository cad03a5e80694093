"""Attention: scaled dot products of queries and keys, masked and normalised, weigh the values.

Version 24 added ``nonpad_kv_seqlen`` and masks shorter than the keys, 25 the window. The texts of 23 and 24 were
corrected in place: softcap comes before the mask, the causal frontier counts the cached keys, rows without a key are
zero.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import DType, Tensor
from onnxeval.ops._attention import precision_of, require_matching, scores_of, softmax, weighted, working_dtype
from onnxeval.ops._cast import convert
from onnxeval.registry import op


@op("Attention", versions=(24, 25))
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    nonpad_kv_seqlen: Tensor | None,
    *,
    is_causal: int,
    kv_num_heads: int | None,
    q_num_heads: int | None,
    qk_matmul_output_mode: int,
    scale: float | None,
    softcap: float,
    softmax_precision: int | None,
    left_window_size: int = -1,
    right_window_size: int = -1,
    n_outputs: int = 4,
) -> tuple[Tensor, ...]:
    """(Y, present key, present value, scores) of (batch, heads, time, size) or (batch, time, heads * size).

    The scores are taken where ``qk_matmul_output_mode`` says: 0 after the product, 1 after softcap, 2 after the mask, 3
    after softmax. Sums are in float32 at least; probabilities are rounded to the type of ``q`` only where
    ``softmax_precision`` is given, as its text asks. Masks of integers, which the text leaves out, are added as the
    function body does it. Raises ValueError for shapes, heads and lengths that do not fit. Source: Attention-25.
    """
    if qk_matmul_output_mode not in (0, 1, 2, 3):
        raise ValueError(f"qk_matmul_output_mode {qk_matmul_output_mode} is none of 0, 1, 2, 3")
    if left_window_size < -1 or right_window_size < -1:
        raise ValueError(f"window sizes {left_window_size} and {right_window_size} are below -1")
    is_flat = q.ndim == 3
    if is_flat:
        q, k, v = (_split(x, heads) for x, heads in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads)))
    else:
        _require_heads("q_num_heads", q_num_heads, q)
        _require_heads("kv_num_heads", kv_num_heads, k)
    n_past = _past_length(past_key, past_value, nonpad_kv_seqlen)
    k, v = _extended(past_key, k, "past_key"), _extended(past_value, v, "past_value")
    require_matching(q, k, v)
    batch, _, n_queries, _ = q.shape
    shape = (*q.shape[:3], k.shape[2])
    if nonpad_kv_seqlen is not None:
        _require_lengths(nonpad_kv_seqlen, batch, k.shape[2], attn_mask)
    offsets = np.array([n_past]) if nonpad_kv_seqlen is None else nonpad_kv_seqlen - n_queries
    window = left_window_size, 0 if is_causal else right_window_size
    visible = _in_window(offsets, shape[2:], window) & _valid(nonpad_kv_seqlen, k.shape[2])

    dtype = working_dtype(q, k, v)
    product = scores_of(q.astype(dtype), k.astype(dtype), scale)
    capped = softcap * np.tanh(product / softcap) if softcap else product
    bias = _bias(visible, attn_mask, shape, dtype)
    biased = capped + bias
    probabilities = softmax(biased if softmax_precision is None else convert(biased, precision_of(softmax_precision)))
    without_key = np.max(bias, axis=-1, keepdims=True, initial=-np.inf) == -np.inf
    probabilities = np.where(without_key, np.zeros((), probabilities.dtype), probabilities)
    if softmax_precision is not None:
        probabilities = convert(probabilities, q.dtype)
    y = convert(weighted(probabilities.astype(dtype), v.astype(dtype)), q.dtype)
    stage = (product, capped, biased, probabilities)[qk_matmul_output_mode]
    return (_joined(y) if is_flat else y, k, v, convert(stage, q.dtype))[:n_outputs]


@op("Attention", versions=(23,))
def attention_without_padding(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    *,
    is_causal: int,
    kv_num_heads: int | None,
    q_num_heads: int | None,
    qk_matmul_output_mode: int,
    scale: float | None,
    softcap: float,
    softmax_precision: int | None,
    n_outputs: int = 4,
) -> tuple[Tensor, ...]:
    """As version 25, with masks that broadcast along the keys and are not padded. Source: Attention-23."""
    for name, x in (("K", k), ("past_key", past_key)):
        if x is not None and x.ndim not in (3, 4):
            raise ValueError(f"{name} has rank {x.ndim}, expected 3 or 4")
    if attn_mask is not None and attn_mask.ndim:
        n_keys = k.shape[-2] + (past_key.shape[-2] if past_key is not None else 0)
        if attn_mask.shape[-1] not in (1, n_keys):
            raise ValueError(f"attn_mask of shape {list(attn_mask.shape)} does not broadcast to {n_keys} keys")
        attn_mask = np.broadcast_to(attn_mask, (*attn_mask.shape[:-1], n_keys))
    return attention(
        q,
        k,
        v,
        attn_mask,
        past_key,
        past_value,
        None,
        is_causal=is_causal,
        kv_num_heads=kv_num_heads,
        q_num_heads=q_num_heads,
        qk_matmul_output_mode=qk_matmul_output_mode,
        scale=scale,
        softcap=softcap,
        softmax_precision=softmax_precision,
        n_outputs=n_outputs,
    )


def _split(x: Tensor, heads: int | None) -> Tensor:
    """(batch, time, heads * size) -> (batch, heads, time, size)."""
    if x.ndim != 3:
        raise ValueError(f"Q has rank 3, K or V has rank {x.ndim}")
    batch, time, hidden = x.shape
    if not heads or heads < 0 or hidden % heads:
        raise ValueError(f"inputs of rank 3 need a number of heads that divides {hidden}, given is {heads}")
    return x.reshape(batch, time, heads, hidden // heads).transpose(0, 2, 1, 3)


def _require_heads(name: str, heads: int | None, x: Tensor) -> None:
    """An input of rank 4 has its heads on an axis of their own; the attribute need not be there, but must not lie."""
    if heads is not None and x.ndim == 4 and heads != x.shape[1]:
        raise ValueError(f"{name} is {heads}, an input of shape {list(x.shape)} has {x.shape[1]} heads")


def _joined(x: Tensor) -> Tensor:
    """(batch, heads, time, size) -> (batch, time, heads * size)."""
    batch, heads, time, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, time, heads * size)


def _past_length(past_key: Tensor | None, past_value: Tensor | None, lengths: Tensor | None) -> int:
    if past_key is None and past_value is None:
        return 0
    if past_key is None or past_value is None:
        raise ValueError("past_key and past_value come together, one of them is absent")
    if lengths is not None:
        raise ValueError("nonpad_kv_seqlen does not go together with past_key and past_value")
    if past_key.ndim != 4:
        raise ValueError(f"past_key has rank {past_key.ndim}, expected 4")
    return int(past_key.shape[2])


def _extended(past: Tensor | None, new: Tensor, name: str) -> Tensor:
    """``new`` (batch, heads, time, size) after what came before it."""
    if past is None:
        return new
    if past.ndim != 4 or new.ndim != 4 or past.shape[:2] + past.shape[3:] != new.shape[:2] + new.shape[3:]:
        raise ValueError(f"{name} of shape {list(past.shape)} does not continue in {list(new.shape)}")
    return np.concatenate([past, new], axis=2)


def _require_lengths(lengths: Tensor, batch: int, n_keys: int, attn_mask: Tensor | None) -> None:
    if lengths.shape != (batch,):
        raise ValueError(f"nonpad_kv_seqlen has shape {list(lengths.shape)}, expected [{batch}]")
    longest = attn_mask.shape[-1] if attn_mask is not None and attn_mask.ndim else n_keys
    if np.any(lengths < 0) or np.any(lengths > min(n_keys, longest)):
        raise ValueError(f"nonpad_kv_seqlen {lengths.tolist()} leave [0, {min(n_keys, longest)}]")


def _in_window(offsets: Tensor, shape: tuple[int, ...], window: tuple[int, int]) -> Tensor:
    """(batch or 1, 1, queries, keys): whether key j is at most so far left and right of i + offset; -1 is any far."""
    left, right = window
    n_queries, n_keys = shape
    distance = np.arange(n_keys) - (offsets[:, None, None] + np.arange(n_queries)[:, None])
    seen = np.ones(distance.shape, np.bool_)
    if left >= 0:
        seen &= distance >= -left
    if right >= 0:
        seen &= distance <= right
    return seen[:, None]


def _valid(lengths: Tensor | None, n_keys: int) -> Tensor:
    """(batch or 1, 1, 1, keys): whether a key is no padding."""
    keys = np.arange(n_keys)
    valid = keys[None] >= 0 if lengths is None else keys < lengths[:, None]
    return valid[:, None, None]


def _bias(visible: Tensor, attn_mask: Tensor | None, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """What is added to the scores of ``shape``: -inf where a key is not to be seen, else the mask's number or 0."""
    hidden = np.asarray(-np.inf, dtype)
    if attn_mask is None:
        return np.where(visible, np.zeros((), dtype), hidden)
    if attn_mask.dtype == np.bool_:
        mask = np.where(attn_mask, np.zeros((), dtype), hidden)
    else:
        mask = attn_mask.astype(dtype)
    missing = shape[-1] - mask.shape[-1] if mask.ndim else 0
    if missing > 0:
        mask = np.concatenate([mask, np.full((*mask.shape[:-1], missing), hidden)], axis=-1)
    sizes = zip(reversed(mask.shape), reversed(shape), strict=False)
    if mask.ndim > 4 or any(size not in (1, wanted) for size, wanted in sizes):
        raise ValueError(f"attn_mask of shape {list(attn_mask.shape)} does not broadcast to {list(shape)}")
    return np.where(visible, mask, hidden)

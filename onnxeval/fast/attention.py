"""Attention in one pass over the keys, without ever holding all scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replacement, replaces, replayable
from onnxeval.fast._checks import common_shape, contiguous, is_float32, is_plain
from onnxeval.fast.engine import native
from onnxeval.fast.halves import half_of
from onnxeval.ops._attention import attend, attend_by_operators
from onnxeval.ops.math.matmul import matmul
from onnxeval.ops.math.softmax import softmax
from onnxeval.ops.nn.attention import attention, attention_without_padding
from onnxeval.registry import Kernel

#: What a query gets that has no weights, as attention.h numbers it: NaN; zeros; zeros where no key is to be seen, else
#: NaN; and zeros also where weights are NaN.
UNSEEN_NAN, UNSEEN_ZERO, HIDDEN_ZERO, NAN_ZERO = range(4)

_BOOL = np.dtype(bool)


def attended(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    scale: float,
    unseen: int,
    lengths: Tensor | None = None,
    softcap: float = 0.0,
    offset: int = 0,
    window: tuple[int, int] = (-1, -1),
) -> Tensor | None:
    """What each query gets, (batch, time, heads, size); None where that is for the readable kernel.

    q (batch, heads, time, size), k and v (batch or 1, fewer heads, keys, size); the mask is added or bool, and
    broadcasts into the scores. A query stands beside key ``offset`` + its number, or that many after the end of the
    keys where there are ``lengths``. Raises IndexError where these are outside.
    """
    kernels = native()
    assert kernels is not None
    if not all(map(is_float32, (q, k, v))) or not q.ndim == k.ndim == v.ndim == 4 or not q.size:
        return None
    batch, heads, n_queries, size = q.shape
    groups, n_keys = k.shape[1:3]
    fits = k.shape[0] in (1, batch) and v.shape[:3] == k.shape[:3] and k.shape[3] == size and n_keys and groups
    if not fits or heads % groups or not v.shape[3]:
        return None
    if mask is not None:
        shape = (batch, heads, n_queries, n_keys)
        if not (is_float32(mask) or is_plain(mask, _BOOL)) or common_shape(mask.shape, shape) != shape:
            return None
    result = empty((batch, n_queries, heads, v.shape[3]), np.float32)
    out = result.transpose(0, 2, 1, 3)
    kernels.attend(
        _in_order(q), k, _in_order(v), mask, lengths, out, scale, softcap, offset, window[0], window[1], unseen
    )
    return result


def _in_order(x: Tensor) -> Tensor:
    """With the elements of the last axis beside each other."""
    return x if x.strides[-1] == x.itemsize else contiguous(x)


@replaces(attend)
def bind_attend(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """Attention that a model spells out."""
    product = replacement(matmul, [None, None], {}) or matmul
    over_last = replacement(softmax, [None], {"axis": -1}) or softmax

    @replayable
    def attend_natively(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, scale: float, nan_to_zero: bool
    ) -> Tensor:
        if half_of((query, key, value, mask)) is not None:
            return attend_by_operators(
                query,
                key,
                value,
                mask,
                scale=scale,
                nan_to_zero=nan_to_zero,
                product=product,
                softmax=lambda scores: over_last(scores, axis=-1),
            )
        rank = query.ndim
        if rank in (3, 4) and key.ndim == value.ndim == rank and (mask is None or mask.ndim <= rank):
            q, k, v = (_with_heads(x) for x in (query, key.swapaxes(-1, -2), value))
            if k.shape[1] in (1, q.shape[1]):  # else the product refuses them
                unseen = NAN_ZERO if nan_to_zero else UNSEEN_NAN
                result = attended(q, k, v, _with_heads(mask), scale=scale, unseen=unseen)
                if result is not None:
                    return result[:, :, 0] if rank == 3 else result.transpose(0, 2, 1, 3)
        return attend(query, key, value, mask, scale=scale, nan_to_zero=nan_to_zero)

    return attend_natively


def _with_heads(x: Any) -> Any:
    """(batch, time, size) as one head; anything else as it is."""
    return x[:, np.newaxis] if x is not None and x.ndim == 3 else x


#: The element types that ``softmax_precision`` may name without a second rounding: none, float32.
_PRECISIONS = (None, 1)


def _binder(readable: Kernel) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel | None]:
    def bind(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
        if attributes.get("n_outputs", 4) > 3 or attributes["softmax_precision"] not in _PRECISIONS:
            return None  # the scores are asked for, or rounded

        @replayable
        def heads_attended(*inputs: Any, **given: Any) -> Any:
            try:
                result = _attention(*inputs, **given)
            except IndexError:  # a length: the readable kernel says which
                result = None
            return readable(*inputs, **given) if result is None else result

        return heads_attended

    return bind


for _readable in (attention, attention_without_padding):
    replaces(_readable, rounded=3)(_binder(_readable))


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    lengths: Tensor | None = None,
    *,
    is_causal: int,
    kv_num_heads: int | None,
    q_num_heads: int | None,
    scale: float | None,
    softcap: float,
    left_window_size: int = -1,
    right_window_size: int = -1,
    n_outputs: int,
    **_: Any,
) -> tuple[Tensor, ...] | None:
    """None where this is for the readable kernel."""
    is_flat = q.ndim == 3
    if is_flat:
        split = [_split(x, heads) for x, heads in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads))]
    else:
        counts = ((q, q_num_heads), (k, kv_num_heads))
        split = [q, k, v] if all(heads in (None, *x.shape[1:2]) for x, heads in counts) else [None]
    if not all(map(is_float32, (*split, *(each for each in (past_key, past_value) if each is not None)))):
        return None
    q, k, v = (each for each in split if each is not None)
    if not q.ndim == k.ndim == v.ndim == 4 or len(k) != len(q) or min(left_window_size, right_window_size) < -1:
        return None
    offset = 0
    if past_key is not None and past_value is not None and lengths is None:
        pairs = [_extended(past, new) for past, new in ((past_key, k), (past_value, v))]
        if pairs[0] is None or pairs[1] is None:
            return None
        (k, v), offset = (pairs[0], pairs[1]), past_key.shape[2]
    elif past_key is not None or past_value is not None:
        return None
    if lengths is not None:
        if not is_plain(lengths, np.dtype(np.int64)) or lengths.shape != (len(q),):
            return None
        offset = -q.shape[2]
    if mask is not None and mask.ndim and mask.shape[-1] != k.shape[2]:
        return None  # which fills up a short mask
    y = attended(
        q,
        k,
        v,
        mask,
        scale=1 / math.sqrt(q.shape[3] or 1) if scale is None else scale,
        unseen=HIDDEN_ZERO,
        lengths=None if lengths is None else contiguous(lengths),
        softcap=softcap,
        offset=offset,
        window=(left_window_size, 0 if is_causal else right_window_size),
    )
    if y is None:
        return None
    return (y.reshape(*y.shape[:2], -1) if is_flat else y.transpose(0, 2, 1, 3), k, v)[:n_outputs]


def _split(x: Tensor, heads: int | None) -> Tensor | None:
    """(batch, time, heads * size) -> (batch, heads, time, size)."""
    if x.ndim != 3 or not heads or heads < 0 or x.shape[2] % heads:
        return None
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def _extended(past: Tensor, new: Tensor) -> Tensor | None:
    """``new`` after what came before it."""
    if past.ndim != 4 or past.shape[:2] + past.shape[3:] != new.shape[:2] + new.shape[3:]:
        return None
    kernels = native()
    assert kernels is not None
    whole = empty((*past.shape[:2], past.shape[2] + new.shape[2], past.shape[3]), np.float32)
    kernels.concat((past, new), whole, 2)
    return whole

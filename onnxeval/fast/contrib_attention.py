"""The attention operators of onnxruntime, where nobody asks for their scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import is_float32
from onnxeval.fast.attention import UNSEEN_NAN, UNSEEN_ZERO, attended
from onnxeval.fast.cached_attention import cached
from onnxeval.fast.contrib_rows import sum_of
from onnxeval.fast.plain_heads import PlainHeads
from onnxeval.fast.products import MatrixProduct
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.contrib._projection import product_of, projected
from onnxeval.ops.contrib._typed import typed
from onnxeval.ops.contrib.attention import attention, filled, operands_of, stacked
from onnxeval.ops.contrib.group_query_attention import GroupedOperands, group_query_attention, grouped_operands
from onnxeval.ops.contrib.multi_head_attention import multi_head_attention, multi_head_operands
from onnxeval.registry import Kernel, signature_of

#: What a hidden key's score gets, where no attribute says so.
_FILTER = -10000.0


@replaces(multi_head_attention, rounded=3)
def bind_multi_head_attention(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """MultiHeadAttention without its scores."""
    if attributes["n_outputs"] > 3:
        return None
    is_causal = bool(attributes.get("unidirectional", 0))
    plain = None if is_causal else PlainHeads(attributes.get("mask_filter_value", _FILTER))

    def quick(
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        bias: Tensor | None,
        mask: Tensor | None,
        added: Tensor | None,
        past_key: Tensor | None,
        past_value: Tensor | None,
        *others: Tensor | None,
        scale: float = 0.0,
        n_outputs: int,
        **given: Any,
    ) -> Any:
        if plain is not None and all(x is None for x in others):
            parts = _shifted(query, key, value, bias)
            q, k, v, *_ = multi_head_operands(*parts, *[None] * 6, **given)
            results = plain(q, k, v, (past_key, past_value), mask, added, scale)
            if results is not None:
                return results[:n_outputs]
        rest = (key, value, bias, mask, added, past_key, past_value, *others)
        q, keys, values, total, *present = multi_head_operands(query, *rest, **given)
        y = attended(q, keys, values, total, scale=_factor(scale, q), unseen=UNSEEN_NAN)
        if y is None:
            return None
        return (y.reshape(*y.shape[:2], -1), *[_own(x) for x in present])[:n_outputs]

    return replayable(_or_readable(multi_head_attention, quick))


@replaces(attention, rounded=2)
def bind_attention(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """Attention that projects its input itself."""
    multiply = MatrixProduct(constants, {})
    is_other = any(attributes.get(name, 0) for name in ("unidirectional", "do_rotary", "past_present_share_buffer"))
    plain = None if is_other else PlainHeads(attributes.get("mask_filter_value", _FILTER))

    def product(x: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
        found = multiply(x, weights, bias=bias)
        return product_of(x, weights, bias) if found is None else found

    def quick(
        x: Tensor,
        weights: Tensor,
        bias: Tensor | None,
        mask: Tensor | None,
        past: Tensor | None,
        added: Tensor | None,
        past_sequence_length: Tensor | None,
        *,
        past_present_share_buffer: int = 0,
        qkv_hidden_sizes: Sequence[int] = (),
        scale: float = 0.0,
        n_outputs: int,
        **given: Any,
    ) -> Any:
        length = filled(past, past_sequence_length, past_present_share_buffer)
        parts = projected(x, weights, bias, qkv_hidden_sizes, product)
        if plain is not None and (past is None or (past.ndim == 5 and len(past) == 2)):
            q, k, v, *_ = operands_of(parts, None, None, None, None, **given)
            before = (None, None) if past is None else (past[0], past[1])
            results = plain(q, k, v, before, mask, added, scale, stacks=n_outputs > 1)
            if results is not None:
                return results[:n_outputs]
        q, keys, values, total, *present = operands_of(parts, mask, past, added, length, **given)
        y = attended(q, keys, values, total, scale=_factor(scale, q), unseen=UNSEEN_NAN)
        if y is None:
            return None
        joined = y.reshape(*y.shape[:2], -1)
        return (joined,) if n_outputs < 2 else (joined, stacked(q, *present))

    return replayable(_or_readable(attention, quick))


@replaces(group_query_attention)
def bind_group_query_attention(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """GroupQueryAttention without its scores, and without what else adds to the sum of a softmax."""
    if attributes.get("qk_output") or attributes.get("smooth_softmax") == 1:
        return None
    plain = cached(attributes)
    others = _or_readable(group_query_attention, _grouped)

    @replayable
    def grouped(*inputs: Any, allocate: Allocate, **given: Any) -> Any:
        try:
            result = None if plain is None else plain(*inputs, allocate=allocate)
        except IndexError:  # a length or a position: the readable kernel says which
            result = None
        return others(*inputs, allocate=allocate, **given) if result is None else result

    return grouped


def _grouped(query: Tensor, *rest: Any, scale: float = 0.0, softcap: float = 0.0, **given: Any) -> Any:
    if rest[_HEAD_SINK - 1] is not None:
        return None
    operands = grouped_operands(query, *rest, **given)
    q, keys, values, mask, present, *_ = operands
    local, causal = given.get("local_window_size", -1), given.get("causal", 1)
    offset, window = 0, (-1, -1)
    hides_none = q.shape[2] == 1 and local < 1
    # What is not looked at is no part of a sum, but nothing times what is not finite is
    if _is_in_order(operands) and (hides_none or np.isfinite(values.sum())):
        offset, window = int(operands.times.first_query[0]), (max(-1, local - 1), 0 if causal else -1)
    else:
        seen = operands.seen(local, causal)
        mask = seen if mask is None else np.where(seen, mask, np.float32(-np.inf))
    y = attended(
        q,
        keys,
        values,
        mask,
        scale=_factor(scale, q),
        unseen=UNSEEN_ZERO,
        softcap=softcap if softcap > 0 else 0.0,
        offset=offset,
        window=window,
    )
    return None if y is None else (y.reshape(*y.shape[:2], -1).astype(query.dtype, copy=False), *present)


def _is_in_order(operands: GroupedOperands) -> bool:
    """Whether column i holds token i of every item of the batch, and queries begin with the same token."""
    positions, starts = operands.positions, operands.times.first_query
    is_one = bool(operands.valid.all()) and len(starts) > 0 and bool((starts == starts[0]).all())
    return is_one and bool((positions == np.arange(positions.shape[1])).all())


def _shifted(query: Tensor, key: Tensor | None, value: Tensor | None, bias: Tensor | None) -> tuple[Any, ...]:
    """Queries, keys, values and the bias, which is added already where all three are (batch, time, features)."""
    floats = (query, key, value, bias)
    if key is None or value is None or bias is None or not all(map(is_float32, floats)):
        return floats
    if not query.ndim == key.ndim == value.ndim == 3:
        return floats
    ends = (0, query.shape[2], query.shape[2] + key.shape[2], query.shape[2] + key.shape[2] + value.shape[2])
    if bias.shape != ends[3:]:
        return floats
    pairs = zip((query, key, value), pairwise(ends), strict=True)
    return (*[sum_of(x, bias[start:end]) for x, (start, end) in pairs], None)


_HEAD_SINK = signature_of(group_query_attention).positional.index("head_sink")


def _own(x: Tensor) -> Tensor:
    """An array that shares no memory with an input."""
    return x if x.base is None else x.copy()


def _factor(scale: float, q: Tensor) -> float:
    return scale or 1 / math.sqrt(q.shape[3] or 1)


def _or_readable(readable: Kernel, quick: Callable[..., Any]) -> Kernel:
    """The quick one, which checks types too; the readable one says what is wrong with inputs."""
    types = signature_of(readable).types
    assert types is not None
    checked = typed(types.letters, **types.allowed)(quick)

    def either(*inputs: Any, **given: Any) -> Any:
        try:
            result = checked(*inputs, **given)
        except (ValueError, TypeError, IndexError):
            result = None
        return readable(*inputs, **given) if result is None else result

    return either

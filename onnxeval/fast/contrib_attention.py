"""The attention operators of onnxruntime, where nobody asks for their scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces
from onnxeval.fast.attention import UNSEEN_NAN, UNSEEN_ZERO, attended
from onnxeval.ops.contrib._typed import typed
from onnxeval.ops.contrib.group_query_attention import group_query_attention, grouped_operands
from onnxeval.ops.contrib.multi_head_attention import multi_head_attention, multi_head_operands
from onnxeval.registry import Kernel, signature_of


@replaces(multi_head_attention)
def bind_multi_head_attention(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """MultiHeadAttention without its scores."""
    if attributes["n_outputs"] > 3:
        return None

    def quick(query: Tensor, *rest: Any, scale: float = 0.0, n_outputs: int, **given: Any) -> Any:
        q, keys, values, bias, *present = multi_head_operands(query, *rest, **given)
        y = attended(q, keys, values, bias, scale=_factor(scale, q), unseen=UNSEEN_NAN)
        if y is None:
            return None
        return tuple([x.astype(query.dtype) for x in (y.reshape(*y.shape[:2], -1), *present)[:n_outputs]])

    return _or_readable(multi_head_attention, quick)


@replaces(group_query_attention)
def bind_group_query_attention(_: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """GroupQueryAttention without its scores, and without what else adds to the sum of a softmax."""
    if attributes.get("qk_output") or attributes.get("smooth_softmax") == 1:
        return None

    def quick(query: Tensor, *rest: Any, scale: float = 0.0, softcap: float = 0.0, **given: Any) -> Any:
        if rest[_HEAD_SINK - 1] is not None:
            return None
        q, keys, values, bias, seen, present, *_ = grouped_operands(query, *rest, **given)
        mask = seen if bias is None else np.where(seen, bias, np.float32(-np.inf))
        y = attended(
            q, keys, values, mask, scale=_factor(scale, q), unseen=UNSEEN_ZERO, softcap=softcap if softcap > 0 else 0.0
        )
        return None if y is None else (y.reshape(*y.shape[:2], -1).astype(query.dtype), *present)

    return _or_readable(group_query_attention, quick)


_HEAD_SINK = signature_of(group_query_attention).positional.index("head_sink")


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

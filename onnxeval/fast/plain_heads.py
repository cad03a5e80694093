"""Attention of heads that were split already, its mask, past and present by compiled kernels alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast._checks import FLOAT32, TYPES, common_shape, is_float32, is_plain, moved
from onnxeval.fast.attention import UNSEEN_NAN, attended
from onnxeval.fast.engine import native

_BOOL, _INT32 = np.dtype(bool), np.dtype(np.int32)

#: Their numbers in arrays.h.
_ADD, _BELOW, _WHERE = 0, 7, 13


class PlainHeads:
    """What each query gets, and keys and values with those before them; hidden keys have ``filter_value`` added."""

    def __init__(self, filter_value: float) -> None:
        self._none = np.zeros(1, np.int32)
        self._nothing = np.zeros(1, np.float32)
        self._filter = np.array([filter_value], np.float32)
        kernels = native()
        assert kernels is not None
        self._kernels: Any = kernels

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        past: tuple[Tensor | None, Tensor | None],
        mask: Tensor | None,
        added: Tensor | None,
        scale: float,
        *,
        stacks: bool = False,
    ) -> tuple[Tensor, ...] | None:
        """(batch, time, features), keys, values; these two in one where it ``stacks``. None where others must do it.

        The mask is (batch, keys) of integers, what is ``added`` is (batch or 1, heads or 1, queries, keys).
        """
        if not all(map(is_float32, (q, k, v))) or not q.ndim == k.ndim == v.ndim == 4 or not k.size or not v.size:
            return None
        befores = [None if each is None else each.shape for each in past]
        if any(
            shape is not None and (len(shape) != 4 or shape[:2] + shape[3:] != new.shape[:2] + new.shape[3:])
            for shape, new in zip(befores, (k, v), strict=True)
        ) or not all(each is None or is_float32(each) for each in past):
            return None
        if (past[0] is None) != (past[1] is None) or (stacks and (k.shape != v.shape or befores[0] != befores[1])):
            return None
        n_past = 0 if past[0] is None else past[0].shape[2]
        shape = (*q.shape[:3], n_past + k.shape[2])
        if len(k) != len(q) or k.shape[1] != q.shape[1]:
            return None
        if mask is not None and not (is_plain(mask, _INT32) and mask.shape == (shape[0], shape[3])):
            return None
        is_whole = added is None or (added.ndim == 4 and added.shape[2:] == shape[2:])
        if added is not None and not (is_float32(added) and is_whole and common_shape(added.shape, shape) == shape):
            return None
        present = empty((2, *k.shape[:2], shape[3], k.shape[3]), np.float32) if stacks else None
        keys, values = (
            self._extended(before, new, None if present is None else present[place])
            for place, (before, new) in enumerate(zip(past, (k, v), strict=True))
        )
        factor = scale or 1 / math.sqrt(q.shape[3] or 1)
        y = attended(q, keys, values, self._bias(mask, added), scale=factor, unseen=UNSEEN_NAN)
        if y is None:
            return None
        return (y.reshape(*y.shape[:2], -1), *((keys, values) if present is None else (present,)))

    def _extended(self, before: Tensor | None, new: Tensor, out: Tensor | None) -> Tensor:
        """What is new after what came before, in memory of its own."""
        if before is None and out is None:
            return moved(new, new.shape)
        length = new.shape[2] + (0 if before is None else before.shape[2])
        whole = empty((*new.shape[:2], length, new.shape[3]), np.float32) if out is None else out
        self._kernels.concat((new,) if before is None else (before, new), whole, 2)
        return whole

    def _bias(self, mask: Tensor | None, added: Tensor | None) -> Tensor | None:
        """What is added to scores."""
        if mask is None:
            return added
        apply, code = self._kernels.apply, TYPES[FLOAT32]
        shape = (mask.shape[0], 1, 1, mask.shape[1])
        seen, hidden = empty(shape, np.bool_), empty(shape, np.float32)
        apply(_BELOW, TYPES[_INT32], TYPES[_INT32], seen, (self._none, mask.reshape(shape)))
        apply(_WHERE, code, code, hidden, (seen, self._nothing, self._filter))
        if added is None:
            return hidden
        both = common_shape(shape, added.shape)
        assert both is not None
        total = empty(both, np.float32)
        apply(_ADD, code, code, total, (hidden, added))
        return total

"""Elements as those of another type."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType, Tensor
from onnxeval.fast._checks import TYPES, is_plain
from onnxeval.fast.engine import native

#: Its number in arrays.h.
_CAST = 14

_HALVES = frozenset({np.dtype(np.float16), BFLOAT16})


def converted_to(x: Tensor, target: DType) -> Tensor | None:
    """``x`` in another of these types, rounded once; None where that is for the readable kernel."""
    kernels = native()
    assert kernels is not None
    own = x.dtype
    if own == target or own not in TYPES or not is_plain(x, own):
        return None
    if {own, target} & _HALVES and np.float32 not in (own, target):
        return None
    result = np.empty(x.shape, target)
    kernels.apply(_CAST, TYPES[own], TYPES[target], _lent(result), (_lent(x),))
    return result


def _lent(x: Tensor) -> Tensor:
    return x.view(np.uint16) if x.dtype == BFLOAT16 else x

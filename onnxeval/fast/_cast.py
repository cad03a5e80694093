"""Elements as those of another type."""

from __future__ import annotations

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import DType, Tensor
from onnxeval.fast._checks import HALVES, TYPES, bits, is_plain
from onnxeval.fast.engine import native

#: Its number in arrays.h.
_CAST = 14


def converted_to(x: Tensor, target: DType) -> Tensor | None:
    """``x`` in another of these types, rounded once; None where that is for the readable kernel."""
    kernels = native()
    assert kernels is not None
    own = x.dtype
    if own == target or own not in TYPES or not is_plain(x, own):
        return None
    if {own, target} & HALVES and np.float32 not in (own, target):
        return None
    result = empty(x.shape, target)
    kernels.apply(_CAST, TYPES[own], TYPES[target], bits(result), (bits(x),))
    return result

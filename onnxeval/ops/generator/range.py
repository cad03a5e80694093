"""Range: numbers in equal steps. 16-bit floats, and ``stash_type`` for them, arrived in version 27."""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import BFLOAT16, Tensor, dtype_of, is_float
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._cast import convert
from onnxeval.registry import op

_FLOAT32 = 1  # the element type


@op("Range", versions=(11, 27))
def range_of(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = _FLOAT32, allocate: Allocate) -> Tensor:
    """start, start + delta, start + 2 delta, ... up to ``limit``, which is excluded: a tensor of rank 1.

    There are max(ceil((limit - start) / delta), 0) elements. Floats compute in their own type, 16-bit ones in that of
    ``stash_type``. ValueError where an input is not a scalar, ``delta`` is 0 or the count is not finite.
    Source: Range-27.
    """
    for name, bound in (("start", start), ("limit", limit), ("delta", delta)):
        if bound.size != 1:
            raise ValueError(f"{name} is of shape {list(bound.shape)}, expected a scalar")
    if delta.item() == 0:
        raise ValueError("delta is 0")
    if not is_float(start.dtype):
        first, step = start.item(), delta.item()
        count = max(-((first - limit.item()) // step), 0)
        output = allocate((count,), start.dtype)
        output[...] = first + np.arange(count, dtype=np.int64) * step
        return output
    stash = dtype_of(stash_type) if start.dtype in (np.float16, BFLOAT16) else start.dtype
    first, last, step = (convert(bound.reshape(()), stash) for bound in (start, limit, delta))
    steps = ((last - first) / step).item()
    if not math.isfinite(steps):
        raise ValueError(f"start {start.item()}, limit {limit.item()}, delta {delta.item()}: {steps} steps")
    count = max(math.ceil(steps), 0)
    output = allocate((count,), start.dtype)
    output[...] = convert(first + np.arange(count).astype(stash) * step, start.dtype)
    return output

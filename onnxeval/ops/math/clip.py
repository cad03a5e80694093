"""Clip.

The bounds are attributes in versions 1 and 6, inputs since 11. Since 13 the text says that `max` wins where the bounds
cross; the older texts leave it open and follow it here.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._scalar import scalar
from onnxeval.registry import op

_FLOAT32_LIMIT = float(np.finfo(np.float32).max)


@op("Clip", versions=(11, 12, 13))
def clip(x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """Keep x within [low, high]; a bound that is absent, or NaN, bounds nothing. NaN elements stay.

    Raises ValueError where a bound is not a scalar. Source: the function body of Clip-13.
    """
    own = None
    if low is not None and not np.isnan(scalar(low, name="min")):
        x = own = np.maximum(x, low.reshape(()))
    if high is not None and not np.isnan(scalar(high, name="max")):
        x = np.minimum(x, high.reshape(()), out=own if x.ndim else None)
    return x


@op("Clip", versions=(1, 6))
def clip_attributes(x: Tensor, *, min: float | None, max: float | None) -> Tensor:
    """Keep x within [min, max], within the type's limits where they are absent: infinities become finite.

    Version 6 writes float32's limits as the defaults: they stand for the limits of any type. Source: Clip-6.
    """
    limit = float(np.finfo(x.dtype).max)
    low = -limit if min is None or min == -_FLOAT32_LIMIT else min
    high = limit if max is None or max == _FLOAT32_LIMIT else max
    return clip(x, np.array(low, x.dtype), np.array(high, x.dtype))

"""LRN with an exponent of a few quarters, in one pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32
from onnxeval.fast.engine import native
from onnxeval.ops.nn.lrn import lrn
from onnxeval.registry import Kernel


@replaces(lrn)
def bind_lrn(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """LRN by square roots: the exponent is one of 1/4, 1/2, 3/4 and 1, mostly 3/4."""
    kernels = native()
    assert kernels is not None
    quarters, size = 4 * attributes["beta"], attributes["size"]
    if quarters not in (1, 2, 3, 4) or size < 1:
        return None

    @replayable
    def normalised(x: Tensor, *, size: int, alpha: float, beta: float, bias: float) -> Any:
        if not is_float32(x) or x.ndim < 2 or not x.size:
            return lrn(x, size=size, alpha=alpha, beta=beta, bias=bias)
        result = empty(x.shape, np.float32)
        channels, pixels = x.shape[1], math.prod(x.shape[2:])
        below, above = min((size - 1) // 2, channels), min(size // 2, channels)
        kernels.normalise_channels(
            contiguous(x), result, channels, pixels, below, above, alpha / size, bias, int(quarters)
        )
        return result

    return normalised

"""Products of 8-bit integers with constant weights, exact, by the instructions that processors have for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces
from onnxeval.fast._checks import contiguous
from onnxeval.fast.engine import native
from onnxeval.ops.math.quantized_matmul import matmul_integer
from onnxeval.registry import Kernel

EIGHT_BITS = (np.dtype(np.int8), np.dtype(np.uint8))


def packed_integers(weights: Tensor | None, zero_point: Tensor | None) -> Any:
    """(K, N) weights as the compiled kernels want them; None where they are not constant matrices of 8-bit integers.

    The zero point is one number or one a column.
    """
    kernels = native()
    assert kernels is not None
    if weights is None or weights.dtype not in EIGHT_BITS or weights.ndim != 2 or not weights.size:
        return None
    zeros = np.zeros(weights.shape[1], np.int32)
    if zero_point is not None:
        if zero_point.dtype != weights.dtype or zero_point.size not in (1, weights.shape[1]) or zero_point.ndim > 1:
            return None
        zeros += zero_point.reshape(-1).astype(np.int32)
    return kernels.Integers(contiguous(weights), zeros)


@replaces(matmul_integer)
def bind_matmul_integer(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """MatMulInteger with one zero point for all of the left factor."""
    kernels = native()
    assert kernels is not None
    if len(constants) > 3 and constants[3] is not None:
        packed = packed_integers(constants[1], constants[3])
    else:
        packed = packed_integers(constants[1], None)
    if packed is None:
        return None
    weights, known_zero = constants[1], constants[3] if len(constants) > 3 else None
    assert weights is not None

    def multiplied(
        a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None, **given: Any
    ) -> Tensor:
        fits = a.dtype in EIGHT_BITS and a.ndim >= 2 and a.size and a.shape[-1] == weights.shape[0]
        if not fits or b_zero_point is not known_zero or (a_zero_point is not None and a_zero_point.size != 1):
            return matmul_integer(a, b, a_zero_point, b_zero_point, **given)
        rows = contiguous(a).reshape(-1, a.shape[-1])
        zeros = np.full(len(rows), 0 if a_zero_point is None else a_zero_point.item(), np.int32)
        result = np.empty((*a.shape[:-1], weights.shape[1]), np.int32)
        kernels.multiply_integers(rows, zeros, packed, result, 0.0, None, None)
        return result

    return multiplied

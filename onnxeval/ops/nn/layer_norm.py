"""LayerNormalization and RMSNormalization: standardise, or scale by the root mean square, from an axis on."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import BFLOAT16, Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._cast import convert
from onnxeval.ops.nn._moments import centred, mean_over, require_broadcast, stash_dtype
from onnxeval.registry import op


@op("LayerNormalization", versions=(17,))
def layer_normalization(
    x: Tensor, scale: Tensor, bias: Tensor | None, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Tensor, Tensor, Tensor]:
    """(Y, mean, 1 / standard deviation): standardised over ``axis`` and all after it, then scaled and shifted.

    Mean and deviation have the type that ``stash_type`` names (float32 or bfloat16), in which the standardising is
    computed; the scale and the bias are applied in the type of ``x``. Source: LayerNormalization-17.
    """
    dtype = stash_dtype(stash_type, (np.dtype(np.float32), BFLOAT16))
    axes = tuple(range(normalise_axis(axis, x.ndim), x.ndim))
    require_broadcast(scale, "Scale", x.shape)
    deviation, mean, variance = centred(convert(x, dtype), axes)
    inverse = np.reciprocal(np.sqrt(variance + dtype.type(epsilon)))
    result = convert(deviation * inverse, x.dtype) * scale
    if bias is not None:
        require_broadcast(bias, "B", x.shape)
        result = result + bias
    return result, mean, inverse


@op("RMSNormalization", versions=(23,))
def rms_normalization(x: Tensor, scale: Tensor, *, axis: int, epsilon: float, stash_type: int) -> Tensor:
    """``x`` / sqrt(mean of squares + epsilon) over ``axis`` and all after it, times ``scale``.

    The quotient is computed in the type that ``stash_type`` names and takes that of ``x``; the result has that of
    ``scale``. Source: RMSNormalization-23.
    """
    dtype = stash_dtype(stash_type)
    axes = tuple(range(normalise_axis(axis, x.ndim), x.ndim))
    require_broadcast(scale, "scale", x.shape)
    values = convert(x, dtype)
    root = np.sqrt(mean_over(values * values, axes) + dtype.type(epsilon))
    result: Tensor = convert(convert(values / root, x.dtype), scale.dtype) * scale
    return result

"""Layer normalisation as onnxruntime writes it: of a sum, by the root mean square, and before opset 17.

LayerNormalization and SimplifiedLayerNormalization stand in the domain of the standard, which has no such versions.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._cast import convert
from onnxeval.ops.contrib._typed import FLOATS, FLOATS_AND_DOUBLE, microsoft_op, typed
from onnxeval.ops.nn._moments import accumulator, centred, mean_over, require_broadcast, stash_dtype
from onnxeval.registry import op
from onnxeval.values import shape_text


@op("LayerNormalization", versions=(1,))
@typed("TVV", T=FLOATS_AND_DOUBLE, V=FLOATS_AND_DOUBLE)
def layer_normalization(
    x: Tensor, scale: Tensor, bias: Tensor | None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """(Y, mean, 1 / standard deviation): standardised over ``axis`` and all after it, then scaled and shifted.

    As LayerNormalization-17, but the scale and the bias may be of another type than ``x``, and Y has theirs. Sums are
    in float32 at least, mean and deviation of the type that ``stash_type`` names.
    Source: onnxruntime's ai.onnx.LayerNormalization-1.
    """
    stash = stash_dtype(stash_type)
    dtype = accumulator(x.dtype, stash)
    axes = tuple(range(normalise_axis(axis, x.ndim), x.ndim))
    require_broadcast(scale, "scale", x.shape)
    deviation, mean, variance = centred(x.astype(dtype), axes)
    inverse = np.reciprocal(np.sqrt(variance + dtype.type(epsilon)))
    y = deviation * inverse * scale.astype(dtype)
    if bias is not None:
        require_broadcast(bias, "B", x.shape)
        y = y + bias.astype(dtype)
    return convert(y, scale.dtype), convert(mean, stash), convert(inverse, stash)


@op("SimplifiedLayerNormalization", versions=(1,))
@typed("TV", T=FLOATS_AND_DOUBLE, V=FLOATS_AND_DOUBLE)
def simplified_layer_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Tensor, Tensor]:
    """(Y, 1 / root mean square) over ``axis`` and all after it; Y = ``x`` times that times ``scale``, of its type.

    Source: onnxruntime's ai.onnx.SimplifiedLayerNormalization-1.
    """
    stash = stash_dtype(stash_type)
    dtype = accumulator(x.dtype, stash)
    axes = tuple(range(normalise_axis(axis, x.ndim), x.ndim))
    require_broadcast(scale, "scale", x.shape)
    values = x.astype(dtype)
    inverse = np.reciprocal(np.sqrt(mean_over(values * values, axes) + dtype.type(epsilon)))
    return convert(values * inverse * scale.astype(dtype), scale.dtype), convert(inverse, stash)


@microsoft_op("SkipLayerNormalization", "TTTTT", T=FLOATS)
def skip_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None, bias: Tensor | None, *, epsilon: float = 1e-12
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(Y, mean, 1 / standard deviation, sum): the sum (..., H) of x, skip and bias, standardised over the last axis.

    ``skip`` has the shape of ``x`` or lacks its batch, the others have (H,). Mean and deviation are float32.
    Source: com.microsoft.SkipLayerNormalization-1.
    """
    total = _sum(x, skip, bias)
    offset = None if beta is None else _vector(beta, "beta", x)
    y, mean, inverse = layer_normalization(total, _vector(gamma, "gamma", x), offset, axis=-1, epsilon=epsilon)
    return convert(y, x.dtype), mean, inverse, convert(total, x.dtype)


@microsoft_op("SkipSimplifiedLayerNormalization", "TTTT", T=FLOATS)
def skip_simplified_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None, *, epsilon: float = 1e-12
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(Y, 0, 1 / root mean square, sum): the sum (..., H) of x, skip and bias, divided by its root mean square.

    What is subtracted in the place of a mean is 0. Source: com.microsoft.SkipSimplifiedLayerNormalization-1.
    """
    total = _sum(x, skip, bias)
    y, inverse = simplified_layer_normalization(total, _vector(gamma, "gamma", x), axis=-1, epsilon=epsilon)
    return convert(y, x.dtype), np.zeros_like(inverse), inverse, convert(total, x.dtype)


def _sum(x: Tensor, skip: Tensor, bias: Tensor | None) -> Tensor:
    """The sum in float32."""
    if x.ndim not in (2, 3):
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [N, H] or [B, S, H]")
    if skip.shape not in (x.shape, x.shape[1:], (1, *x.shape[1:])):
        raise ValueError(f"skip has shape {shape_text(skip.shape)}, the input {shape_text(x.shape)}")
    total = x.astype(np.float32) + skip.astype(np.float32)
    return total if bias is None else total + _vector(bias, "bias", x)


def _vector(weights: Tensor, name: str, x: Tensor) -> Tensor:
    if weights.shape != x.shape[-1:]:
        raise ValueError(f"{name} has shape {shape_text(weights.shape)}, expected {shape_text(x.shape[-1:])}")
    return weights.astype(np.float32)

"""The family of Gelu with what onnxruntime fuses into it: a bias before, a product before or after."""

from __future__ import annotations

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, FLOATS, FLOATS_AND_DOUBLE, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("Gelu", "T", T=FLOATS_AND_DOUBLE)
@in_float32
def gelu(x: Tensor) -> Tensor:
    """The product of x and the normal distribution function of x. Source: com.microsoft.Gelu-1."""
    return curves.gelu(x)


@microsoft_op("BiasGelu", "T", T=FLOATS_AND_DOUBLE)
@in_float32
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """`gelu` of x (..., C) + bias (C,). Source: com.microsoft.BiasGelu-1."""
    return curves.gelu(_biased(x, bias))


@microsoft_op("FastGelu", "T", T=FLOATS_AND_DOUBLE)
@in_float32
def fast_gelu(x: Tensor, bias: Tensor | None) -> Tensor:
    """The estimate of Gelu by tanh of x (..., C), or of x + bias (C,). Source: com.microsoft.FastGelu-1."""
    return curves.gelu(x if bias is None else _biased(x, bias), "tanh")


@microsoft_op("QuickGelu", "T", T=FLOATS_AND_DOUBLE)
@in_float32
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    """The product x sigmoid(``alpha`` x). Source: com.microsoft.QuickGelu-1."""
    return x * curves.sigmoid(alpha * x)


@microsoft_op("GemmFastGelu", "T", T=FLOATS)
@in_float32
def gemm_fast_gelu(x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """`fast_gelu` of the matrix product x w. Source: com.microsoft.GemmFastGelu-1."""
    return fast_gelu(standard("math", "MatMul", 13)(x, w), bias)


@microsoft_op("BiasSplitGelu", "T", T=(FLOAT32, FLOAT16))
@in_float32
def bias_split_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """(N, S, D), (D,) -> (N, S, D / 2): the left half of x + bias times `gelu` of the right half.

    Source: com.microsoft.BiasSplitGelu-1.
    """
    if x.ndim != 3 or x.shape[2] % 2:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [N, S, D] with an even D")
    half = x.shape[2] // 2
    biased = _biased(x, bias)
    return biased[..., :half] * curves.gelu(biased[..., half:])


def _biased(x: Tensor, bias: Tensor) -> Tensor:
    if bias.ndim != 1 or not x.ndim or bias.shape[0] != x.shape[-1]:
        shapes = f"{shape_text(bias.shape)} and {shape_text(x.shape)}"
        raise ValueError(f"bias and input have shapes {shapes}, the bias is to be as long as the last axis")
    return x + bias

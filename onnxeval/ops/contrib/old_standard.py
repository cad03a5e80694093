"""Operators that stood in the standard as experiments until opset 9 and that old converters wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib._curves import softplus
from onnxeval.ops.contrib._standard import standard
from onnxeval.ops.contrib._typed import ANY, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, K, typed
from onnxeval.registry import op
from onnxeval.values import shape_text


def old_op(op_type: str) -> Callable[[K], K]:
    """Register version 1 of an operator of one input, a float of 16, 32 or 64 bits."""

    def register(kernel: K) -> K:
        return op(op_type, versions=(1,))(typed("T", T=(FLOAT16, FLOAT32, FLOAT64))(in_float32(kernel)))

    return register


@old_op("Affine")
def affine(x: Tensor, *, alpha: float = 1.0, beta: float = 0.0) -> Tensor:
    """``alpha`` x + ``beta``. Source: onnxruntime's ai.onnx.Affine-1."""
    return np.asarray(alpha * x + beta)


@old_op("Scale")
def scale(x: Tensor, *, scale: float = 1.0) -> Tensor:
    """``scale`` x. Source: onnxruntime's ai.onnx.Scale-1."""
    return np.asarray(scale * x)


@old_op("ScaledTanh")
def scaled_tanh(x: Tensor, *, alpha: float, beta: float) -> Tensor:
    """``alpha`` tanh(``beta`` x). Source: onnxruntime's ai.onnx.ScaledTanh-1."""
    return np.asarray(alpha * np.tanh(beta * x))


@old_op("ParametricSoftplus")
def parametric_softplus(x: Tensor, *, alpha: float, beta: float) -> Tensor:
    """``alpha`` ln(exp(``beta`` x) + 1). Source: onnxruntime's ai.onnx.ParametricSoftplus-1."""
    return np.asarray(alpha * softplus(np.asarray(beta * x)))


@old_op("ImageScaler")
def image_scaler(x: Tensor, *, bias: Sequence[float] | None = None, scale: float = 1.0) -> Tensor:
    """(N, C, H, W): ``scale`` x, and the ``bias`` of its channel added. Source: onnxruntime's ai.onnx.ImageScaler-1."""
    _require_image(x)
    scaled: Tensor = x * scale
    if bias is None:
        return scaled
    if len(bias) != x.shape[1]:
        raise ValueError(f"bias has {len(bias)} values, the input {x.shape[1]} channels")
    shifted: Tensor = scaled + np.asarray(bias, x.dtype)[:, None, None]
    return shifted


@old_op("Crop")
def crop(x: Tensor, *, border: Sequence[int], scale: Sequence[int] | None = None) -> Tensor:
    """(N, C, H, W) without ``border`` (left, top, right, bottom), or ``scale`` (height, width) from its left and top.

    Raises ValueError where there is less than that. Source: onnxruntime's ai.onnx.Crop-1.
    """
    _require_image(x)
    if len(border) != 4 or any(size < 0 for size in border):
        raise ValueError(f"border {list(border)} is not four sizes")
    left, top, right, bottom = border
    height, width = x.shape[2] - top - bottom, x.shape[3] - left - right
    if scale is not None:
        if len(scale) != 2 or any(size < 0 for size in scale):
            raise ValueError(f"scale {list(scale)} is not a height and a width")
        height, width = scale
    if not (0 <= height <= x.shape[2] - top and 0 <= width <= x.shape[3] - left):
        wanted = f"border {list(border)}" + ("" if scale is None else f" and scale {list(scale)}")
        raise ValueError(f"{wanted} leave the input {shape_text(x.shape)}")
    return x[:, :, top : top + height, left : left + width]


@op("DynamicSlice", versions=(1,))
@typed("TIII", T=ANY, I=(INT32, INT64))
def dynamic_slice(x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None) -> Tensor:
    """As Slice-10 with steps of 1. Source: onnxruntime's ai.onnx.DynamicSlice-1."""
    part: Tensor = standard("tensor", "Slice", 10)(x, starts, ends, axes, None)
    return part


def _require_image(x: Tensor) -> None:
    if x.ndim != 4:
        raise ValueError(f"the input has shape {shape_text(x.shape)}, expected [N, C, H, W]")

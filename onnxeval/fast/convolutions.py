"""Conv of float32 over one or two axes, with packed weights; bias, residual and activation where it is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces
from onnxeval.fast._checks import contiguous, is_float32, known_float32
from onnxeval.fast.activations import IDENTITY, Activation
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.nn._correlate import conv_windows
from onnxeval.ops.nn.conv import conv
from onnxeval.registry import Kernel

#: Taps of a window that the compiled kernel packs patches of.
_MOST_TAPS = 1 << 12


@replaces(conv)
def bind_conv(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """Conv, with what is left over for the readable kernel."""
    return bind_fused_conv(constants, attributes)


def bind_fused_conv(
    constants: Sequence[Tensor | None], attributes: Mapping[str, Any], activation: Activation = IDENTITY
) -> Kernel | None:
    """Conv, and the activation of its result."""
    kernels = native()
    assert kernels is not None
    weights = constants[1]
    if weights is not None and not (known_float32(weights) and weights.ndim in (3, 4)):
        return None
    return _Convolution(kernels, attributes, activation, weights).__call__


@dataclass(slots=True)
class _Convolution:
    """One step: what is decided by the shape of its input is kept for the next of that shape."""

    kernels: ModuleType
    attributes: Mapping[str, Any]
    activation: Activation
    weights: Tensor | None
    filters: Any = None
    plans: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)

    def __call__(self, x: Tensor, w: Tensor, b: Tensor | None, *, allocate: Allocate, **_: Any) -> Tensor:
        return self.fused(x, w, b, None, allocate)

    def fused(self, x: Tensor, w: Tensor, b: Tensor | None, residual: Tensor | None, allocate: Allocate) -> Tensor:
        """With a residual of the result's shape, which the caller answers for."""
        if not self.suits(x, w, b):
            return conv(x, w, b, **self.attributes, allocate=allocate)
        shape = x.shape if self.weights is not None else (*x.shape, *w.shape)
        plan = self.plans.get(shape)
        if plan is None:
            plan = self.decided(x, w)
            if len(self.plans) < 64:
                self.plans[shape] = plan
        planes, counts, geometry = plan
        filters = self.filters
        if filters is None:
            filters = self.kernels.Filters(_planar(contiguous(w)), self.attributes["group"])
            if self.weights is not None:
                self.filters = filters
        result = allocate((x.shape[0], w.shape[0], *counts), np.float32)
        self.kernels.convolve(
            contiguous(x).reshape(planes),
            filters,
            _planar(result),
            None if b is None else contiguous(b),
            residual,
            *self.activation,
            *geometry,
        )
        return result

    def suits(self, x: Tensor, w: Tensor, b: Tensor | None) -> bool:
        """Whether the compiled kernel takes these; the readable one says what is wrong with others."""
        return (
            is_float32(x)
            and x.ndim in (3, 4)
            and (w is self.weights or (is_float32(w) and w.ndim == x.ndim))
            and (b is None or (is_float32(b) and b.shape == w.shape[:1]))
            and x.size > 0 < w.size
            and math.prod(w.shape[2:]) <= _MOST_TAPS
        )

    def decided(self, x: Tensor, w: Tensor) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The input's shape with two spatial axes, the result's sizes, and strides, dilations and padding before."""
        windows = list(conv_windows(x, w, **self.attributes))
        counts = tuple(each.count for each in windows)
        flat = len(windows) == 1
        numbers = (
            [each.stride for each in windows],
            [each.dilation for each in windows],
            [each.begin for each in windows],
        )
        geometry = [
            value for each, one in zip(numbers, (1, 1, 0), strict=True) for value in ([one, *each] if flat else each)
        ]
        return ((*x.shape[:2], 1, x.shape[2]) if flat else x.shape, counts, tuple(geometry))


def _planar(x: Tensor) -> Tensor:
    """(N, C, L) as (N, C, 1, L)."""
    return x.reshape(*x.shape[:2], 1, x.shape[2]) if x.ndim == 3 else x

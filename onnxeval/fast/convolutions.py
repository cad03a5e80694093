"""Conv of float32 over one or two axes, with packed weights; bias, residual and activation where it is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32, known_float32
from onnxeval.fast._planes import geometry, planar
from onnxeval.fast.activations import IDENTITY, Activation
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.nn._correlate import conv_windows
from onnxeval.ops.nn.conv import conv
from onnxeval.registry import Kernel

#: Taps of a window that the compiled kernel packs patches of.
_MOST_TAPS = 1 << 12

#: Shapes of inputs that one step remembers how to convolve.
_MOST_PLANS = 64
#: The largest stride, dilation or padding that the compiled kernels take.
_MOST_GEOMETRY = 2**31 - 1


class _Plan(NamedTuple):
    """What the shape of an input decides."""

    planes: tuple[int, ...]  # that shape, with two spatial axes
    counts: tuple[int, ...]  # the result's spatial sizes
    geometry: tuple[int, ...]  # strides, dilations and the padding before, of two axes


class Convolution:
    """Conv, with what may be added to it and applied before it is stored."""

    has_columns = False

    def __init__(self, constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> None:
        kernels = native()
        assert kernels is not None
        self.kernels = kernels
        self.attributes = attributes
        weights = constants[1]
        self.weights = weights if weights is not None and known_float32(weights) and weights.ndim in (3, 4) else None
        self.filters: Any = None
        self.plans: dict[tuple[int, ...], _Plan] = {}

    def __call__(
        self,
        x: Tensor,
        w: Tensor,
        b: Tensor | None,
        *,
        allocate: Allocate,
        bias: Tensor | None = None,
        residual: Tensor | None = None,
        activation: Activation = IDENTITY,
        **_: Any,
    ) -> Tensor | None:
        """The result, with a residual of its shape; None where this is for the readable kernels."""
        if not self._suits(x, w, b) or bias is not None:
            return None
        plan = self._plan_for(x, w)
        if max(plan.geometry) > _MOST_GEOMETRY:
            return None
        shape = (x.shape[0], w.shape[0], *plan.counts)
        if residual is not None:
            if not is_float32(residual) or residual.shape != shape:
                return None
            residual = contiguous(residual)
        filters = self.filters
        if filters is None or w is not self.weights:
            filters = self.kernels.Filters(planar(contiguous(w)), self.attributes["group"])
            if w is self.weights:
                self.filters = filters
        result = allocate(shape, np.float32)
        self.kernels.convolve(
            contiguous(x).reshape(plan.planes),
            filters,
            planar(result),
            None if b is None else contiguous(b),
            residual,
            *activation,
            *plan.geometry,
        )
        return result

    def _suits(self, x: Tensor, w: Tensor, b: Tensor | None) -> bool:
        """Whether the compiled kernel takes these; the readable one says what is wrong with others."""
        return (
            is_float32(x)
            and x.ndim in (3, 4)
            and (w is self.weights or is_float32(w))
            and w.ndim == x.ndim
            and (b is None or (is_float32(b) and b.shape == w.shape[:1]))
            and x.size > 0 < w.size
            and math.prod(w.shape[2:]) <= _MOST_TAPS
        )

    def _plan_for(self, x: Tensor, w: Tensor) -> _Plan:
        key = (*x.shape, *w.shape)
        plan = self.plans.get(key)
        if plan is None:
            windows = conv_windows(x, w, **self.attributes)
            planes = (*x.shape[:2], 1, x.shape[2]) if len(windows) == 1 else x.shape
            plan = _Plan(planes, tuple(axis.count for axis in windows), geometry(windows))
            if len(self.plans) < _MOST_PLANS:
                self.plans[key] = plan
        return plan


PRODUCTS = {conv: Convolution}


@replaces(conv)
def bind_conv(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
    """Conv by itself."""
    convolution = Convolution(constants, attributes)

    @replayable
    def convolved(x: Tensor, w: Tensor, b: Tensor | None, *, allocate: Allocate, **given: Any) -> Tensor:
        result = convolution(x, w, b, allocate=allocate)
        return conv(x, w, b, allocate=allocate, **given) if result is None else result

    return convolved

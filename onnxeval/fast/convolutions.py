"""Conv of float32 with packed weights; bias, residual and activation where it is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import MOST_AXES, contiguous, is_float32, known_float32
from onnxeval.fast._planes import Layout
from onnxeval.fast.activations import IDENTITY, Activation
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.nn._correlate import conv_windows
from onnxeval.ops.nn.conv import conv
from onnxeval.registry import Kernel

#: Taps of a window that the compiled kernel packs patches of.
_MOST_TAPS = 1 << 12

#: Shapes of inputs that one step remembers how to convolve.
_MOST_LAYOUTS = 64
#: The largest stride, dilation or padding that the compiled kernels take.
_MOST_GEOMETRY = 2**31 - 1


class Convolution:
    """Conv, with what may be added to it and applied before it is stored."""

    has_columns = False

    def __init__(
        self, constants: Sequence[Tensor | None], attributes: Mapping[str, Any], fast_math: bool = False
    ) -> None:
        kernels = native()
        assert kernels is not None
        self.kernels = kernels
        self.attributes = attributes
        self.fast_math = fast_math
        weights = constants[1]
        self.weights = weights if weights is not None and known_float32(weights) else None
        self.filters: tuple[Any, ...] | None = None
        self.layouts: dict[tuple[int, ...], Layout] = {}

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
        layout = self._layout_for(x, w)
        if max(layout.geometry) > _MOST_GEOMETRY:
            return None
        maps = w.shape[0]
        if residual is not None and not (is_float32(residual) and residual.shape == (len(x), maps, *layout.counts)):
            return None
        filters = self.filters
        if filters is None or w is not self.weights:
            filters = layout.filters(self.kernels, w, self.attributes["group"], fast_math=self.fast_math)
            if w is self.weights:
                self.filters = filters
        bias = None if b is None else contiguous(b)
        return layout.convolve(self.kernels, x, filters, bias, residual, activation, maps=maps, allocate=allocate)

    def _suits(self, x: Tensor, w: Tensor, b: Tensor | None) -> bool:
        """Whether the compiled kernel takes these; the readable one says what is wrong with others."""
        return (
            is_float32(x)
            and 3 <= x.ndim <= MOST_AXES
            and (w is self.weights or is_float32(w))
            and w.ndim == x.ndim
            and (b is None or (is_float32(b) and b.shape == w.shape[:1]))
            and x.size > 0 < w.size
            and math.prod(w.shape[2:]) <= _MOST_TAPS
        )

    def _layout_for(self, x: Tensor, w: Tensor) -> Layout:
        key = (*x.shape, *w.shape)
        layout = self.layouts.get(key)
        if layout is None:
            layout = Layout.of(conv_windows(x, w, **self.attributes))
            if len(self.layouts) < _MOST_LAYOUTS:
                self.layouts[key] = layout
        return layout


PRODUCTS = {conv: Convolution}


@replaces(conv, heeds_fast_math=True)
def bind_conv(constants: Sequence[Tensor | None], attributes: Mapping[str, Any], *, fast_math: bool = False) -> Kernel:
    """Conv by itself."""
    convolution = Convolution(constants, attributes, fast_math)

    @replayable
    def convolved(x: Tensor, w: Tensor, b: Tensor | None, *, allocate: Allocate, **given: Any) -> Tensor:
        result = convolution(x, w, b, allocate=allocate)
        return conv(x, w, b, allocate=allocate, **given) if result is None else result

    return convolved

"""ConvTranspose of float32 with constant weights, as one Conv for all elements that lie alike to the strides.

Output element ``stride * q + r`` sees the taps ``r, r + stride, ...`` over the inputs ``q, q - 1, ...``: what differs
between places ``r`` is the weights alone. So each becomes maps of their own of one Conv with stride 1, which are
interleaved in the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces
from onnxeval.fast._checks import MOST_AXES, contiguous, is_float32, known_float32
from onnxeval.fast._planes import Layout
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._windows import Windows
from onnxeval.ops.nn.conv_transpose import conv_transpose, windows_over_output
from onnxeval.registry import Kernel

#: Shapes of inputs that one step remembers.
_MOST_PLANS = 64
#: Taps whose products are summed together.
_LONGEST = 2
#: The largest dilation or padding that the compiled kernels take.
_MOST_GEOMETRY = 2**31 - 1


class _Axis(NamedTuple):
    """One axis of the output, whose places ``stride`` apart are one plane each."""

    size: int
    elements: int  # of the input
    stride: int
    dilation: int
    taps: int  # of a plane
    padding: int  # before the input
    first: int  # of the input's elements that the first place of a plane sees
    places: int  # of a plane
    begin: int
    kernel: int

    def windows(self) -> Windows:
        """Over the input: what each place of a plane sees."""
        return Windows(self.elements, self.taps, 1, self.dilation, self.padding, self.padding, self.places)

    @property
    def is_padded(self) -> bool:
        """Whether planes have taps that the kernel does not have, which are zero."""
        return self.taps * self.stride != self.kernel

    def part(self, place: int) -> tuple[slice, slice]:
        """The output's elements at ``place``, and where they are in its plane."""
        start = (place - self.begin) % self.stride
        count = len(range(start, self.size, self.stride))
        source = (start + self.begin) // self.stride - self.first
        return slice(start, self.size, self.stride), slice(source, source + count)


class _Plan(NamedTuple):
    """What the shape of an input decides."""

    axes: tuple[_Axis, ...]
    layout: Layout


def _axis(window: Windows) -> _Axis | None:
    """None where strides and dilations meet, or the padding takes more than the kernel reaches."""
    if window.dilation > 1 < window.stride:
        return None
    taps = -(-window.kernel // window.stride)
    first = window.begin // window.stride
    padding = (taps - 1) * window.dilation - first
    if not 0 <= padding <= _MOST_GEOMETRY or window.dilation > _MOST_GEOMETRY:
        return None
    places = -(-(window.begin + window.size) // window.stride) - first
    begin, size, kernel = window.begin, window.size, window.kernel
    return _Axis(size, window.number, window.stride, window.dilation, taps, padding, first, places, begin, kernel)


@replaces(conv_transpose, heeds_fast_math=True)
def bind_conv_transpose(
    constants: Sequence[Tensor | None], attributes: Mapping[str, Any], *, fast_math: bool = False
) -> Kernel | None:
    """ConvTranspose."""
    kernels = native()
    assert kernels is not None
    weights = constants[1]
    if weights is None or not known_float32(weights) or not weights.size or weights.ndim > MOST_AXES:
        return None
    if not np.isfinite(weights).all():  # zeros around the input make NaN of them
        return None
    group = attributes["group"]
    filters: dict[tuple[int, ...], Any] = {}  # by the taps of planes
    plans: dict[tuple[int, ...], _Plan | None] = {}

    def plan_for(x: Tensor) -> _Plan | None:
        try:
            windows = windows_over_output(x, weights, **attributes)
        except ValueError:
            return None  # the readable kernel says what is wrong
        more = attributes["output_padding"] or (0,) * len(windows)
        if any(extra >= max(w.stride, w.dilation) for extra, w in zip(more, windows, strict=True)):
            return None
        axes = tuple([axis for axis in map(_axis, windows) if axis is not None])
        return _Plan(axes, Layout.of([axis.windows() for axis in axes])) if len(axes) == len(windows) else None

    def convolved(x: Tensor, b: Tensor | None, plan: _Plan, allocate: Allocate) -> Tensor:
        axes, layout = plan
        strides = tuple(axis.stride for axis in axes)
        taps = layout.taps()
        if taps not in filters:
            # Taps are summed for themselves elsewhere: one sum over all of them would lose more
            chain = _LONGEST * weights.shape[0] // group
            filters[taps] = layout.filters(
                kernels, _weights(weights, axes, group), group, fast_math=fast_math, chain=chain
            )
        maps = weights.shape[1] * group
        planes = math.prod(strides)
        bias = None if b is None else contiguous(b) if planes == 1 else np.repeat(b, planes)
        out = layout.convolve(kernels, x, filters[taps], bias, maps=maps * planes, allocate=allocate)
        if planes == 1:
            return out
        laid = out.reshape(x.shape[0], maps, *strides, *out.shape[2:])
        result = allocate((x.shape[0], maps, *(axis.size for axis in axes)), np.float32)
        for places in product(*map(range, strides)):
            parts = [axis.part(place) for axis, place in zip(axes, places, strict=True)]
            seen: tuple[int | slice, ...] = (slice(None), slice(None), *places, *[source for _, source in parts])
            targets: tuple[Any, ...] = (..., *[target for target, _ in parts])
            result[targets] = laid[seen]
        return result

    def transposed(x: Tensor, w: Tensor, b: Tensor | None, *, allocate: Allocate, **given: Any) -> Tensor:
        right = b is None or (is_float32(b) and b.shape == (weights.shape[1] * group,))
        if w is weights and right and is_float32(x) and x.ndim == w.ndim and x.size:
            if x.shape not in plans and len(plans) < _MOST_PLANS:
                plans[x.shape] = plan_for(x)
            plan = plans[x.shape] if x.shape in plans else plan_for(x)
            if plan is not None and (not any(axis.is_padded for axis in plan.axes) or np.isfinite(x).all()):
                return convolved(x, b, plan, allocate)
        return conv_transpose(x, w, b, allocate=allocate, **given)

    return transposed


def _weights(weights: Tensor, axes: Sequence[_Axis], group: int) -> Tensor:
    """(C, M / group, *kernel) as (M * places, C / group, *taps), the taps turned around."""
    channels, maps = weights.shape[0] // group, weights.shape[1]
    whole = [axis.taps * axis.stride for axis in axes]
    padded = np.zeros((group, channels, maps, *whole), np.float32)
    inner: tuple[Any, ...] = (..., *[slice(size) for size in weights.shape[2:]])
    padded[inner] = weights.reshape(group, channels, *weights.shape[1:])
    split = padded.reshape(group, channels, maps, *(n for axis in axes for n in (axis.taps, axis.stride)))
    taps = range(3, split.ndim, 2)
    turned = np.flip(split, tuple(taps)).transpose(0, 2, *(axis + 1 for axis in taps), 1, *taps)
    return np.ascontiguousarray(turned).reshape(-1, channels, *(axis.taps for axis in axes))

"""Windows over any number of axes, as the compiled kernels want them: on planes, of two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, product
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast._checks import FLOAT32, contiguous, moved
from onnxeval.fast.activations import IDENTITY, Activation
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._windows import Windows

#: Elements that planes are brought together of at a time: about what a processor's cache can hold.
_TOGETHER = 1 << 20

#: Maps of a channel that is convolved by itself: few enough for kernels of their own.
_FEW_MAPS = 3

_ZERO = np.zeros((), FLOAT32)


def planar(x: Tensor) -> Tensor:
    """(N, C, L) as (N, C, 1, L)."""
    return x.reshape(*x.shape[:2], 1, x.shape[2]) if x.ndim == 3 else x


def geometry(windows: Sequence[Windows]) -> tuple[int, ...]:
    """Strides, dilations and the padding before, of two axes each."""
    numbers: list[int] = []
    for alone, each in (
        (1, [axis.stride for axis in windows]),
        (1, [axis.dilation for axis in windows]),
        (0, [axis.begin for axis in windows]),
    ):
        numbers += [alone, *each] if len(windows) == 1 else each
    return tuple(numbers)


class Layout(NamedTuple):
    """Windows over any number of axes, as windows over planes: those of the last two.

    What a window sees at one tap of the axes before is a plane, as if it was that of one channel more. So a convolution
    over three axes is one over two for each place on the first, of more channels; the weights lie as it has them.
    """

    counts: tuple[int, ...]  # of all windows
    chosen: tuple[slice, ...] | None  # the elements of each axis that windows see; None for all
    outer: tuple[Windows, ...]
    plane: tuple[Windows, ...]  # one or two; two where there are outer ones
    geometry: tuple[int, ...]

    @classmethod
    def of(cls, windows: Sequence[Windows]) -> Layout:
        """Of more than two axes, neighbouring ones along which each window is one element become one.

        Elements that strides leave out are left out before.
        """
        counts = tuple([axis.number for axis in windows])
        if len(windows) <= 2:
            return cls(counts, None, (), tuple(windows), geometry(windows))
        chosen = tuple([slice(None, None, axis.stride if _is_thinned(axis) else 1) for axis in windows])
        seen = [_alone(axis.number) if _is_thinned(axis) else axis for axis in windows]
        axes = tuple(_merged(seen))
        return cls(counts, chosen if seen != list(windows) else None, axes[:-2], axes[-2:], geometry(axes[-2:]))

    def taps(self) -> tuple[int, ...]:
        """Of all axes. They tell what `filters` makes."""
        return tuple([axis.kernel for axis in (*self.outer, *self.plane)])

    def filters(
        self, kernels: ModuleType, w: Tensor, group: int, *, fast_math: bool = False, chain: int = 0
    ) -> tuple[Any, ...]:
        """Of (M, C / group, *kernel), with taps y and x last.

        Channels that are convolved each by itself stay so: there are filters for each tap of the axes before. With
        ``fast_math`` they are for less exact methods, too. Where ``chain`` is not 0, sums are made up of sums of that
        many products at most.
        """
        shape = (*w.shape[:2], -1, *[axis.kernel for axis in self.plane])
        laid = contiguous(w).reshape(shape)
        if w.shape[1] == 1 and w.shape[0] <= _FEW_MAPS * group:
            return tuple([kernels.Filters(planar(contiguous(laid[:, :, tap])), group) for tap in range(laid.shape[2])])
        return (kernels.Filters(planar(laid.reshape(w.shape[0], -1, *shape[3:])), group, fast_math, chain),)

    def convolve(
        self,
        kernels: ModuleType,
        x: Tensor,
        filters: Sequence[Any],
        bias: Tensor | None,
        residual: Tensor | None = None,
        activation: Activation = IDENTITY,
        *,
        maps: int,
        allocate: Allocate,
    ) -> Tensor:
        """The convolution with `filters`, with a bias, a residual of its shape and an activation."""
        x = contiguous(x if self.chosen is None else x[:, :, *self.chosen])
        result = allocate((len(x), maps, *self.counts), FLOAT32)
        counts = [axis.number for axis in self.plane]
        if not self.outer:
            planes = planar(x.reshape(*x.shape[:2], *[axis.size for axis in self.plane]))
            added = None if residual is None else contiguous(residual)
            target = planar(result.reshape(len(x), maps, *counts))
            kernels.convolve(planes, filters[0], target, bias, added, *activation, *self.geometry)
            return result
        for places, parts in self._seen(kernels, x, len(filters), allocate):
            target = self._turned(result)[:, places]
            sums = None if residual is None else moved(self._turned(residual)[:, places], target.shape)
            for part, each in zip(parts, filters, strict=True):
                added, sums = sums, allocate((len(part), maps, *counts), FLOAT32)
                ending = activation if each is filters[-1] else IDENTITY
                offset = bias if each is filters[0] else None
                kernels.convolve(part, each, sums, offset, added, *ending, *self.geometry)
            assert sums is not None
            kernels.copy(sums.reshape(target.shape), target)
        return result

    def _turned(self, y: Tensor) -> Tensor:
        """(N, M, *counts) as (N, *outer counts, M, *plane counts)."""
        merged = y.reshape(*y.shape[:2], *[axis.number for axis in (*self.outer, *self.plane)])
        return np.moveaxis(merged, 1, len(self.outer) + 1)

    def _seen(
        self, kernels: ModuleType, x: Tensor, n_parts: int, allocate: Allocate
    ) -> Iterator[tuple[slice, Sequence[Tensor]]]:
        """What windows see, and their places on the first axis.

        Planes (N * places, C * outer taps, y, x), or (N * places, C, y, x) for each tap, where there are so many parts.
        """
        first, *rest = self.outer
        sizes = [axis.size for axis in self.plane]
        taps = [axis.kernel for axis in self.outer]
        batch, channels = x.shape[:2]
        laid = x.reshape(batch, channels, *[axis.size for axis in self.outer], *sizes)
        source = np.moveaxis(laid, 1, len(self.outer) + 1)
        per_place = batch * channels * math.prod([*taps, *sizes, *[axis.number for axis in rest]])
        step = max(1, _TOGETHER // per_place)
        for start in range(0, first.number, step):
            some = first._replace(begin=first.begin - start * first.stride, number=min(step, first.number - start))
            counts = [axis.number for axis in (some, *rest)]
            if n_parts > 1:
                planes = allocate((*taps, batch, *counts, channels, *sizes), FLOAT32)
                by_tap = planes
            else:
                planes = allocate((batch, *counts, channels, *taps, *sizes), FLOAT32)
                by_tap = np.moveaxis(planes, range(-len(sizes) - len(taps), -len(sizes)), range(len(taps)))
            found = list(product(*[axis.taps() for axis in (some, *rest)]))
            whole = tuple([slice(0, count) for count in counts])
            if len(found) < math.prod(taps) or any(tuple([at for _, at, _ in each]) != whole for each in found):
                kernels.copy(_ZERO, planes)
            for each in found:
                at, windows, elements = zip(*each, strict=True)
                kernels.copy(source[(slice(None), *elements)], by_tap[(*at, slice(None), *windows)])
            places = slice(start, start + some.number)
            yield places, list(planes.reshape(n_parts, batch * math.prod(counts), -1, *sizes))


def _is_thinned(axis: Windows) -> bool:
    """Whether each window is one element, and not each element has one."""
    return axis.kernel == 1 < axis.stride and not axis.begin and not axis.end


def _alone(size: int) -> Windows:
    """Windows of one element each."""
    return Windows(size, kernel=1, stride=1, dilation=1, begin=0, end=0, number=size)


def _merged(windows: Sequence[Windows]) -> Iterator[Windows]:
    for is_alone, axes in groupby(windows, Windows.is_each_element):
        if is_alone:
            yield _alone(math.prod([axis.size for axis in axes]))
        else:
            yield from axes

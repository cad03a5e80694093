"""The windows of pools and convolutions: how many there are on each axis, where they lie, what they see.

Window ``o`` of an axis has its tap ``t`` at element ``o * stride + t * dilation - begin`` of the input. What lies
outside the input is padding. All versions of Conv, MaxPool, AveragePool and LpPool mean the same windows, as the
newest texts spell them out:

* ``auto_pad`` NOTSET: as many as fit between the pads. With ``ceil_mode`` a last one may reach over the end padding,
  as long as it does not start in it.
* SAME_UPPER, SAME_LOWER: ceil(size / stride), padded as little as that needs and never by less than nothing.
* VALID: as many as fit without padding. The texts' formulas leave ``ceil_mode`` without effect under ``auto_pad``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate

#: Elements that a window may reach over to count as narrow.
_NARROW = 16
AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


class Windows(NamedTuple):
    """The windows along one axis of ``size`` elements, padded by ``begin`` and ``end`` more."""

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    number: int

    def taps(self) -> Iterator[tuple[int, slice, slice]]:
        """Each tap that some window has on the input, the windows that do, and the elements they have under it.

        The two slices are of the same length.
        """
        for tap in self._possible_taps():
            offset = tap * self.dilation - self.begin
            first = max(0, _ceil_div(-offset, self.stride))
            last = min(self.number - 1, (self.size - 1 - offset) // self.stride)
            if first <= last:
                element = first * self.stride + offset
                elements = slice(element, element + (last - first) * self.stride + 1, self.stride)
                yield tap, slice(first, last + 1), elements

    def is_each_element(self) -> bool:
        """Whether there is one window for each element of the input, which sees nothing else."""
        return self.kernel == self.stride == 1 and self.number == self.size and not self.begin

    def seen(self) -> Tensor:
        """For each window the number of its taps on the input."""
        return self._taps_before(self.begin + self.size) - self._taps_before(self.begin)

    def padded(self) -> Tensor:
        """For each window the number of its taps on the input and its padding; beyond them `ceil_mode` has none."""
        return self._taps_before(self.begin + self.size + self.end)

    def __str__(self) -> str:
        return (
            f"size {self.size}, kernel {self.kernel}, stride {self.stride}, dilation {self.dilation}, "
            f"pads {self.begin} and {self.end}"
        )

    def _possible_taps(self) -> Iterable[int]:
        """All taps that may lie on the input. Of a window far larger than the input, few do."""
        if self.kernel <= self.size * self.number:
            return range(self.kernel)
        taps: set[int] = set()
        for window in range(self.number):
            before = self.begin - window * self.stride
            first, last = _ceil_div(before, self.dilation), (before + self.size - 1) // self.dilation
            taps.update(range(max(first, 0), min(last, self.kernel - 1) + 1))
        return sorted(taps)

    def _taps_before(self, position: int) -> Tensor:
        """For each window the number of its taps before a position, counted from the first padding element."""
        room = position - self.stride * np.arange(self.number)
        return np.clip(-(-room // self.dilation), 0, self.kernel)


def windows_of(
    sizes: Sequence[int],
    kernel_shape: Sequence[int],
    *,
    auto_pad: str,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None = None,
    ceil_mode: int = 0,
) -> tuple[Windows, ...]:
    """The windows along each spatial axis, from the attributes as they stand in the node.

    Raises ValueError where an attribute has the wrong length or is out of range, and where a window does not fit.
    """
    return _windows_of(
        tuple(sizes), tuple(kernel_shape), auto_pad, _fixed(pads), _fixed(strides), _fixed(dilations), ceil_mode
    )


def _fixed(values: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


@lru_cache(maxsize=4096)  # a network asks for the same windows at every run
def _windows_of(
    sizes: tuple[int, ...],
    kernel_shape: tuple[int, ...],
    auto_pad: str,
    pads: tuple[int, ...] | None,
    strides: tuple[int, ...] | None,
    dilations: tuple[int, ...] | None,
    ceil_mode: int,
) -> tuple[Windows, ...]:
    rank = len(sizes)
    kernels = per_axis(kernel_shape, rank, "kernel_shape", least=1)
    steps = per_axis(strides, rank, "strides", least=1)
    spreads = per_axis(dilations, rank, "dilations", least=1)
    begins, ends = pads_of(pads, rank, auto_pad)
    return tuple(
        _windows(axis, size, kernel, stride, dilation, begin, end, auto_pad, ceil_mode)
        for axis, (size, kernel, stride, dilation, begin, end) in enumerate(
            zip(sizes, kernels, steps, spreads, begins, ends, strict=True)
        )
    )


def per_axis(values: Sequence[int] | None, rank: int, name: str, *, least: int) -> tuple[int, ...]:
    """An attribute with one value for each spatial axis, ``least`` where the node leaves it out."""
    if values is None:
        return (least,) * rank
    if len(values) != rank:
        raise ValueError(
            f"{name} {list(values)} has {len(values)} values, expected one for each of {rank} spatial axes"
        )
    if any(value < least for value in values):
        raise ValueError(f"{name} {list(values)} has a value below {least}")
    return tuple(values)


def pads_of(pads: Sequence[int] | None, rank: int, auto_pad: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The padding before and after each spatial axis that ``pads`` asks for.

    Raises ValueError where ``auto_pad`` is unknown or asks for another padding.
    """
    if auto_pad not in AUTO_PADS:
        raise ValueError(f"auto_pad {auto_pad!r} is none of {', '.join(AUTO_PADS)}")
    if pads is None:
        return (0,) * rank, (0,) * rank
    if len(pads) != 2 * rank:
        raise ValueError(f"pads {list(pads)} has {len(pads)} values, expected two for each of {rank} spatial axes")
    if any(pad < 0 for pad in pads):
        raise ValueError(f"pads {list(pads)} has a negative value")
    if auto_pad != "NOTSET" and any(pads):
        raise ValueError(f"pads {list(pads)} cannot be used together with auto_pad {auto_pad}")
    return tuple(pads[:rank]), tuple(pads[rank:])


def split_pads(total: int, *, more_at_end: bool) -> tuple[int, int]:
    """A padding of ``total`` elements on both sides of an axis; where that is odd, one side gets one more."""
    less = total // 2
    return (less, total - less) if more_at_end else (total - less, less)


def reach(kernel: int, dilation: int) -> int:
    """The elements from the first to the last tap of a window."""
    return (kernel - 1) * dilation + 1


def spatial_axes(x: Tensor) -> tuple[int, ...]:
    """The axes after batch and channels. Raises ValueError where there are none."""
    if x.ndim < 3:
        raise ValueError(f"the input has rank {x.ndim}, expected at least 3 (N, C, D1, ...)")
    return tuple(range(2, x.ndim))


def whole_planes(x: Tensor) -> tuple[int, ...]:
    """`spatial_axes`, for one window over all of them. Raises ValueError where planes hold nothing."""
    if 0 in x.shape[2:]:
        raise ValueError(f"the planes of an input of shape {x.shape} are empty")
    return spatial_axes(x)


def patches(x: Tensor, windows: Sequence[Windows], allocate: Allocate) -> Tensor:
    """(N, C, *sizes) -> (N, C, *kernel, *counts): under each tap what each window sees, zero in the padding.

    A view, of ``x`` itself where there is no padding. No window may reach over the end padding.
    """
    if any((w.number - 1) * w.stride + reach(w.kernel, w.dilation) > w.begin + w.size + w.end for w in windows):
        raise ValueError(f"a window reaches over the end padding: {windows}")
    if any(w.begin or w.end for w in windows):
        x = padded(x, [w.begin for w in windows], [w.begin + w.size + w.end for w in windows], allocate)
    shape = (*x.shape[:2], *(w.kernel for w in windows), *(w.number for w in windows))
    along = list(zip(x.strides[2:], windows, strict=True))
    between_taps = (s * w.dilation if w.kernel > 1 else 0 for s, w in along)  # what no step crosses may be huge
    between_windows = (s * w.stride if w.number > 1 else 0 for s, w in along)
    strides = (*x.strides[:2], *between_taps, *between_windows)
    return as_strided(x, shape, strides, writeable=False)


def padded(x: Tensor, begins: Sequence[int], sizes: Sequence[int], allocate: Allocate) -> Tensor:
    """``x`` from ``begins`` on in planes of ``sizes``, zero around it."""
    result = allocate((*x.shape[:2], *sizes), x.dtype)
    result[...] = 0
    result[at(2, *(slice(begin, begin + size) for begin, size in zip(begins, x.shape[2:], strict=True)))] = x
    return result


def at(axis: int, *places: slice) -> tuple[slice, ...]:
    """An index for ``places`` on the axes from ``axis`` on, and all of the others."""
    return (*(slice(None) for _ in range(axis)), *places)


def slide(x: Tensor, windows: Sequence[Windows], combine: np.ufunc, start: float, allocate: Allocate) -> Tensor:
    """(N, C, *sizes) -> (N, C, *counts): what each window sees of the input, combined from ``start`` on.

    ``combine`` must mind neither the order, for one axis goes after the other, nor a ``start`` more or less.
    """
    *others, last = windows
    for axis, w in enumerate(others, start=2):
        x = _slide(x, axis, w, combine, start, allocate)
    widest = max(reach(last.kernel, last.dilation), last.begin, last.end)
    if x.size and last.kernel > 1 and last.stride <= 2 and widest <= _NARROW:
        return _slide_rows(x, last, combine, start, allocate)
    return _slide(x, x.ndim - 1, last, combine, start, allocate)


def _slide(x: Tensor, axis: int, w: Windows, combine: np.ufunc, start: float, allocate: Allocate) -> Tensor:
    """Tap by tap, for the windows that have it on the input."""
    combined = allocate((*x.shape[:axis], w.number, *x.shape[axis + 1 :]), x.dtype)
    taps = list(w.taps()) if x.size else []
    whole = next((tap for tap in taps if tap[1] == slice(0, w.number)), None)
    combined[...] = start if whole is None else x[at(axis, whole[2])]
    for tap in taps:
        if tap is not whole:
            target = combined[at(axis, tap[1])]
            combine(target, x[at(axis, tap[2])], out=target)
    return combined


def _slide_rows(x: Tensor, w: Windows, combine: np.ufunc, start: float, allocate: Allocate) -> Tensor:
    """Along the last axis, with windows at every element: all rows in one go, as they lie in memory.

    That is quicker than row by row, and than elements a stride apart.
    """
    length = reach(w.kernel, w.dilation)
    rows = allocate((*x.shape[:-1], max(w.begin + w.size, (w.number - 1) * w.stride + length)), x.dtype)
    rows[..., : w.begin] = rows[..., w.begin + w.size :] = start
    rows[..., w.begin : w.begin + w.size] = x
    flat, combined = rows.reshape(-1), allocate(rows.shape, x.dtype)
    target = combined.reshape(-1)[: flat.size - length + 1]  # from there on, a window would leave the last row
    for offset in range(w.dilation, length, w.dilation):
        combine(flat[: target.size] if offset == w.dilation else target, flat[offset:][: target.size], out=target)
    return np.ascontiguousarray(combined[..., : (w.number - 1) * w.stride + 1 : w.stride])


def check_seen(windows: Sequence[Windows]) -> None:
    """Raise ValueError where a window has no tap on the input."""
    for axis, w in enumerate(windows):
        seen = w.seen()
        if not seen.all():
            raise ValueError(f"window {int(np.argmin(seen))} of spatial axis {axis} sees nothing but padding: {w}")


def _windows(
    axis: int,
    size: int,
    kernel: int,
    stride: int,
    dilation: int,
    begin: int,
    end: int,
    auto_pad: str,
    ceil_mode: int,
) -> Windows:
    length = reach(kernel, dilation)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        count = _ceil_div(size, stride)
        total = max(0, (count - 1) * stride + length - size)
        begin, end = split_pads(total, more_at_end=auto_pad == "SAME_UPPER")
        return Windows(size, kernel, stride, dilation, begin, end, count)
    if begin + size + end > np.iinfo(np.int64).max:
        raise ValueError(f"spatial axis {axis} of size {size} with pads {begin} and {end} has too many places to count")
    room = begin + size + end - length
    count = room // stride + 1
    if ceil_mode and auto_pad == "NOTSET":
        count = min(_ceil_div(room, stride) + 1, _ceil_div(begin + size, stride))
    if count < 1:
        raise ValueError(
            f"spatial axis {axis} has no window: its size {size} with pads {begin} and {end} is less than "
            f"the {length} elements that kernel {kernel} with dilation {dilation} takes"
        )
    return Windows(size, kernel, stride, dilation, begin, end, count)


def _ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)

"""Derivatives of Conv and ConvTranspose.

One is the transpose of the other, and the gradient of the kernels is a convolution too: of the input by the gradient of
the output, in which strides and dilations change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from onnxeval.ops._windows import Windows, per_axis, reach, split_pads, windows_of
from onnxeval.ops.training._algebra import integers, reshape, total, transpose
from onnxeval.ops.training._tape import Gradients, Node, Variable, apply, rule


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where kernels lie over the spatial axes of a tensor.

    The tap ``t`` of window ``o`` is at the element ``o * stride + t * dilation - begin``.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    group: int = 1

    @classmethod
    def of(cls, windows: Iterable[Windows], group: int = 1) -> Geometry:
        along = [*windows]
        return cls(
            sizes=tuple(w.size for w in along),
            kernel=tuple(w.kernel for w in along),
            counts=tuple(w.number for w in along),
            strides=tuple(w.stride for w in along),
            dilations=tuple(w.dilation for w in along),
            begins=tuple(w.begin for w in along),
            group=group,
        )

    @property
    def spans(self) -> list[int]:
        """The elements from the first tap of the first window to the last tap of the last one."""
        by_axis = zip(self.kernel, self.counts, self.strides, self.dilations, strict=True)
        return [(count - 1) * stride + reach(kernel, dilation) for kernel, count, stride, dilation in by_axis]

    def correlate(self, x: Variable, w: Variable) -> Variable:
        """(N, C, *sizes), (M, C / group, *kernel) -> (N, M, *counts): what kernels sum up over the windows."""
        return _conv(self._spanned(x), w, self.strides, self.dilations, self.group)

    def lay(self, y: Variable, w: Variable) -> Variable:
        """(N, M, *counts), (M, C / group, *kernel) -> (N, C, *sizes): kernels laid over the windows."""
        spanned = apply(
            "ConvTranspose",
            y,
            w,
            auto_pad="NOTSET",
            dilations=self.dilations,
            group=self.group,
            kernel_shape=None,
            output_padding=None,
            output_shape=None,
            pads=None,
            strides=self.strides,
        )
        before = [-begin for begin in self.begins]
        return _padded(spanned, before, self.sizes)

    def kernels(self, x: Variable, y: Variable) -> Variable:
        """(N, C, *sizes), (N, M, *counts) -> (M, C / group, *kernel): what kernels see of ``x``, weighed by ``y``."""
        batch, channels = x.shape[0], x.shape[1] // self.group
        spatial = range(3, 3 + len(self.sizes))
        grouped = reshape(self._spanned(x), (batch, self.group, channels, *self.spans))
        samples = reshape(transpose(grouped, (2, 1, 0, *spatial)), (channels, self.group * batch, *self.spans))
        weights = _swap_first(y)
        return _swap_first(_conv(samples, weights, self.dilations, self.strides, self.group))

    def _spanned(self, x: Variable) -> Variable:
        return _padded(x, self.begins, self.spans)


def _conv(x: Variable, w: Variable, strides: Sequence[int], dilations: Sequence[int], group: int) -> Variable:
    return apply(
        "Conv",
        x,
        w,
        auto_pad="NOTSET",
        dilations=dilations,
        group=group,
        kernel_shape=None,
        pads=None,
        strides=strides,
    )


def _padded(x: Variable, before: Sequence[int], sizes: Sequence[int]) -> Variable:
    """Spatial axes with so much before them, zero or cut off where negative, and the same at their ends up to sizes."""
    after = [size - begin - given for size, begin, given in zip(sizes, before, x.shape[2:], strict=True)]
    if not any((*before, *after)):
        return x
    return apply("Pad", x, integers((0, 0, *before, 0, 0, *after)), None, None, mode="constant")


def _swap_first(x: Variable) -> Variable:
    return transpose(x, (1, 0, *range(2, x.ndim)))


def _bias(g: Variable) -> Callable[[], Variable]:
    return lambda: total(g, [axis for axis in range(g.ndim) if axis != 1], keepdims=False)


@rule("Conv", 22)
def _convolution(node: Node, g: Variable) -> Gradients:
    (x, w), given = node.present[:2], node.attributes
    named = {name: given[name] for name in ("auto_pad", "pads", "strides", "dilations")}
    geometry = Geometry.of(windows_of(x.shape[2:], w.shape[2:], **named), given["group"])
    return lambda: geometry.lay(g, w), lambda: geometry.kernels(x, g), _bias(g)


@rule("ConvTranspose", 22)
def _transposed(node: Node, g: Variable) -> Gradients:
    return _laid(node, g, more_at_end=node.attributes["auto_pad"] == "SAME_UPPER")


@rule("ConvTranspose", 1)
def _transposed_1(node: Node, g: Variable) -> Gradients:
    """With ``output_shape`` the odd element of padding is at the end unless SAME_UPPER."""
    upper = node.attributes["auto_pad"] == "SAME_UPPER"
    return _laid(node, g, more_at_end=upper != (node.attributes["output_shape"] is not None))


def _laid(node: Node, g: Variable, *, more_at_end: bool) -> Gradients:
    (x, w), given = node.present[:2], node.attributes
    rank = x.ndim - 2
    strides = per_axis(given["strides"], rank, "strides", least=1)
    dilations = per_axis(given["dilations"], rank, "dilations", least=1)
    geometry = Geometry(g.shape[2:], w.shape[2:], x.shape[2:], strides, dilations, (0,) * rank, given["group"])
    begins: Sequence[int] = (given["pads"] or (0,) * rank)[:rank]
    if given["output_shape"] is not None or given["auto_pad"] in ("SAME_UPPER", "SAME_LOWER"):
        extra = per_axis(given["output_padding"], rank, "output_padding", least=0)
        surplus = (
            max(0, span + more - size) for span, more, size in zip(geometry.spans, extra, geometry.sizes, strict=True)
        )
        begins = [split_pads(each, more_at_end=more_at_end)[0] for each in surplus]
    geometry = replace(geometry, begins=tuple(begins))
    return lambda: geometry.correlate(g, w), lambda: geometry.kernels(g, x), _bias(g)

"""Broadcasting other than NumPy's: the `axis` and `broadcast` attributes of versions 1 and 6, and one-way broadcasting.

Before version 7 the second operand was laid along the axes of the first, whose shape the result has, and nothing was
stretched unless `broadcast` was set. "1-dim expansion doesn't work yet", says the text of Add-1, but exports of opset
6 rely on it, two conformance cases among them: axes of size 1 are stretched here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.values import shape_text


def with_axis_attribute(kernel: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """The kernel of two operands under the rules of versions 1 and 6. Source: the text of Add-1."""

    def aligned(a: Tensor, b: Tensor, *, axis: int | None, broadcast: int) -> Tensor:
        return kernel(a, align(a, b, axis=axis, broadcast=broadcast))

    return aligned


def align(a: Tensor, b: Tensor, *, axis: int | None, broadcast: int) -> Tensor:
    """``b`` in a shape that NumPy broadcasts to ``a``'s, by the rules of Add-1.

    Without ``broadcast`` the shapes must be equal. With it ``b`` is one element of a rank not above ``a``'s, or its
    axes are those of ``a``, or of size 1, from ``axis`` on or, where ``axis`` is None, up to the last. Raises
    ValueError where it is none of these.
    """
    if a.shape == b.shape:
        return b
    if not broadcast:
        raise ValueError(f"shapes {shape_text(a.shape)} and {shape_text(b.shape)} differ and broadcast is 0")
    if b.size == 1 and b.ndim <= a.ndim:
        return b.reshape(())
    start = a.ndim - b.ndim if axis is None else axis + a.ndim if axis < 0 else axis
    end = start + b.ndim
    if start >= 0 and end <= a.ndim:
        aligned = b.reshape(b.shape + (1,) * (a.ndim - end))
    else:
        aligned = None
    if aligned is None or not broadcasts_to(aligned, a.shape):
        place = "at the end" if axis is None else f"at axis {axis}"
        raise ValueError(f"shape {shape_text(b.shape)} does not fit into {shape_text(a.shape)} {place}")
    return aligned


def same_shapes(*xs: Tensor) -> None:
    """Refuse, with a ValueError, tensors whose shapes are not all equal."""
    for x in xs[1:]:
        if x.shape != xs[0].shape:
            raise ValueError(f"shapes {shape_text(xs[0].shape)} and {shape_text(x.shape)} differ")


def one_way(b: Tensor, shape: tuple[int, ...], *, name: str) -> None:
    """Refuse, with a ValueError, a tensor that does not broadcast to just ``shape`` (unidirectional broadcasting)."""
    if not broadcasts_to(b, shape):
        raise ValueError(f"{name} of shape {shape_text(b.shape)} does not broadcast to {shape_text(shape)}")


def broadcasts_to(b: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether the tensor broadcasts to ``shape`` without changing it."""
    if b.ndim > len(shape):
        return False
    return all(size in (1, wanted) for size, wanted in zip(reversed(b.shape), reversed(shape), strict=False))


def common_shape(*shapes: tuple[int, ...], what: str) -> tuple[int, ...]:
    """The shape that all broadcast to. Raises ValueError where there is none; ``what`` says whose they are."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{what} of shapes {' and '.join(map(shape_text, shapes))} do not broadcast") from None

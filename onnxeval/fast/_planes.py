"""Windows over one or two axes, as the compiled kernels want them: on planes, of two."""

from __future__ import annotations

from collections.abc import Sequence

from onnxeval.dtypes import Tensor
from onnxeval.ops._windows import Windows


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

"""What recognised steps run where no operator of the standard says it: readable, with few temporaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import is_replayable
from onnxeval.registry import Kernel


@dataclass(frozen=True, slots=True, eq=False)
class OverLastAxis:
    """A normalisation with a scale for each element of the last axis; ``spelled`` where it broadcasts over that."""

    kernel: Kernel
    spelled: Kernel

    @property
    def is_replayable(self) -> bool:
        return is_replayable(self.kernel) and is_replayable(self.spelled)

    def __call__(self, x: Tensor, scale: Tensor, *rest: Tensor, **attributes: Any) -> Any:
        kernel = self.kernel if x.shape[-1:] == scale.shape else self.spelled
        return kernel(x, scale, *rest, **attributes)


def layer_normalisation(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float, **_: Any) -> Tensor:
    """(``x`` - mean) / sqrt(variance + ``epsilon``) over the last axis, times the scale, plus the bias."""
    deviation = x - x.mean(-1, keepdims=True)
    variance = (deviation * deviation).mean(-1, keepdims=True)
    result: Tensor = deviation / np.sqrt(variance + x.dtype.type(epsilon)) * scale + bias
    return result


def rms_normalisation(x: Tensor, scale: Tensor, *, epsilon: float, **_: Any) -> Tensor:
    """``x`` / sqrt(mean of squares + ``epsilon``) over the last axis, times the scale."""
    result: Tensor = x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(epsilon)) * scale
    return result


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """``x`` * cos + (the second half of its last axis, negated, before the first) * sin.

    The angles say where the halves are: an ``x`` of one element there has no second half.
    """
    half = cos.shape[-1] // 2
    last = x.shape[-1]
    turned = np.empty_like(x)
    np.negative(x[..., half:], out=turned[..., : max(0, last - half)])
    turned[..., max(0, last - half) :] = x[..., :half]
    result: Tensor = x * cos + turned * sin
    return result

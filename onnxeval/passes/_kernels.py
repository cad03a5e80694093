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


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, scale: float, nan_to_zero: bool
) -> Tensor:
    """softmax(``query`` @ ``key`` * ``scale`` + ``mask``) @ ``value``, softmax over the last axis.

    query (..., L, E), key (..., E, S), value (..., S, V); the mask broadcasts into the scores or over them. A row that
    sees nothing, or NaN, has NaN for weights, or zeros with ``nan_to_zero``.
    """
    kinds = [x.dtype for x in (query, key, value, mask) if x is not None]
    if len({*kinds}) != 1 or kinds[0].kind != "f":
        raise TypeError(f"attention over {', '.join(map(str, kinds))}")
    scores = np.matmul(query, key)
    if scale != 1:
        scores *= scores.dtype.type(scale)
    if mask is not None:
        scores = scores + mask if np.broadcast(scores, mask).shape != scores.shape else np.add(scores, mask, out=scores)
    if scores.size:
        scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    sums = scores.sum(-1, keepdims=True)
    scores /= sums
    if nan_to_zero and (unseeing := np.isnan(sums)).any():
        scores[np.broadcast_to(unseeing, scores.shape)] = 0
    result: Tensor = np.matmul(scores, value)
    return result


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """``x`` * cos + (the second half of its last axis, negated, before the first) * sin."""
    half = x.shape[-1] // 2
    turned = np.empty_like(x)
    np.negative(x[..., half:], out=turned[..., : x.shape[-1] - half])
    turned[..., x.shape[-1] - half :] = x[..., :half]
    result: Tensor = x * cos + turned * sin
    return result

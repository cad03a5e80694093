"""Rotary embeddings: that of the standard, and onnxruntime's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32, is_plain
from onnxeval.fast.engine import native
from onnxeval.ops.contrib.rotary_embedding import rotary_embedding as onnxruntimes
from onnxeval.ops.nn.rotary_embedding import rotary_embedding
from onnxeval.registry import Kernel

_INT64 = np.dtype(np.int64)


def turned(
    x: Tensor, cosines: Tensor, sines: Tensor, positions: Tensor | None, heads: int, width: int, interleaved: int
) -> Tensor | None:
    """``x`` with the first ``width`` features of each head turned; None where that is for the readable kernel.

    Without ``positions`` the angles are (batch, time, width / 2), else they are the rows at these, (batch, time) or
    where time begins, (1,). Raises IndexError where a position is outside.
    """
    kernels = native()
    assert kernels is not None
    if not all(map(is_float32, (x, cosines, sines))) or not x.size or cosines.shape != sines.shape or heads < 1:
        return None
    if x.ndim == 4:
        whole = x.shape
    elif x.ndim == 3 and not x.shape[2] % heads:
        whole = (x.shape[0], heads, x.shape[1], x.shape[2] // heads)
    else:
        return None
    batch, count, time, size = whole
    angles = (batch, time) if positions is None else cosines.shape[:1]
    if count != heads or width < 0 or width > size or width % 2 or cosines.shape != (*angles, width // 2):
        return None
    if positions is not None and not (is_plain(positions, _INT64) and positions.shape in ((batch, time), (1,))):
        return None
    result: Tensor = empty(x.shape, np.float32)
    given, out = (
        each if x.ndim == 4 else each.reshape(batch, time, heads, size).swapaxes(1, 2)
        for each in (contiguous(x), result)
    )
    kernels.rotate(given, contiguous(cosines), contiguous(sines), positions, out, bool(interleaved))
    return result


def _or_readable(readable: Kernel, quick: Callable[..., Tensor | None]) -> Kernel:
    @replayable
    def either(*inputs: Any, **given: Any) -> Any:
        try:
            result = quick(*inputs, **given)
        except IndexError:  # a position: the readable kernel says which
            result = None
        return readable(*inputs, **given) if result is None else result

    return either


@replaces(rotary_embedding)
def bind_rotary_embedding(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
    """RotaryEmbedding of the standard."""
    heads, width = attributes["num_heads"], attributes["rotary_embedding_dim"]

    def quick(
        x: Tensor, cosines: Tensor, sines: Tensor, positions: Tensor | None, *, interleaved: int, **_: Any
    ) -> Any:
        if x.ndim not in (3, 4) or (positions is not None and positions.ndim != 2):
            return None
        count = (x.shape[1] if x.ndim == 4 else 0) if heads in (None, 0) else heads
        size = x.shape[3] if x.ndim == 4 else x.shape[2] // max(count, 1)
        return turned(x, cosines, sines, positions, count, width or size, interleaved)

    return _or_readable(rotary_embedding, quick)


@replaces(onnxruntimes, rounded=1)
def bind_rotary_embedding_of_onnxruntime(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
    """RotaryEmbedding of com.microsoft."""
    heads, dim = attributes.get("num_heads", 0), attributes.get("rotary_embedding_dim", 0)
    interleaved, scale = attributes.get("interleaved", 0), attributes.get("scale", 1.0)

    def quick(x: Tensor, positions: Tensor, cosines: Tensor, sines: Tensor, **_: Any) -> Tensor | None:
        width = 2 * cosines.shape[-1] if cosines.ndim == 2 else 0
        if x.ndim not in (3, 4) or not width or dim not in (0, width) or scale not in (0.0, 1.0):
            return None
        if heads or x.ndim == 4:
            count = heads or x.shape[1]
        else:
            count = 0 if dim else x.shape[2] // width
        size = x.shape[3] if x.ndim == 4 else x.shape[2] / count if count > 0 else 0
        if size != width and not dim:
            return None
        return turned(x, cosines, sines, positions, count, width, interleaved)

    return _or_readable(onnxruntimes, quick)

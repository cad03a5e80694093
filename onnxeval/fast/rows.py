"""Softmax and normalisations over the last axes, in one pass over each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import FLOAT32, contiguous, is_float32
from onnxeval.fast.engine import native
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops.math.softmax import log_softmax, softmax
from onnxeval.ops.nn.layer_norm import layer_normalization, rms_normalization
from onnxeval.registry import STANDARD, Kernel, OpKey

#: The number of float32 among the standard's element types.
_STASH = 1


def _softmax(readable: Kernel, *, logarithm: bool, to_end: bool) -> Callable[..., Kernel]:
    """What binds Softmax or its logarithm, over one axis or over all from there ``to_end``."""

    def bind(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
        kernels = native()
        assert kernels is not None

        @replayable
        def rows(x: Tensor, *, axis: int) -> Tensor:
            if not is_float32(x) or not x.size or not -x.ndim <= axis < x.ndim:
                return readable(x, axis=axis)  # type: ignore[no-any-return]
            axis = normalise_axis(axis, x.ndim)
            length = math.prod(x.shape[axis:])
            if not to_end and length != x.shape[axis]:
                return readable(x, axis=axis)  # type: ignore[no-any-return]
            result = empty(x.shape, np.float32)
            kernels.softmax(contiguous(x), result, length, logarithm)
            return result

        return rows

    return bind


for _name, _kernel in (("Softmax", softmax), ("LogSoftmax", log_softmax)):
    _logarithm = _kernel is log_softmax
    replaces(_kernel)(_softmax(_kernel, logarithm=_logarithm, to_end=False))
    _by_rows = STANDARD[OpKey("", _name, 11)]
    replaces(_by_rows, rounded=1)(_softmax(_by_rows, logarithm=_logarithm, to_end=True))


@replaces(layer_normalization, rounded=1)
def bind_layer_normalization(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """LayerNormalization with a scale and a bias for each element of a row."""
    kernels = native()
    assert kernels is not None

    @replayable
    def rows(
        x: Tensor, scale: Tensor, bias: Tensor | None, *, axis: int, epsilon: float, stash_type: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not suits(x, scale, bias, axis, stash_type):
            return layer_normalization(x, scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type)
        axis = normalise_axis(axis, x.ndim)
        result = empty(x.shape, np.float32)
        mean = empty((*x.shape[:axis], *(1,) * (x.ndim - axis)), np.float32)
        inverse = np.empty_like(mean)
        shift = None if bias is None else contiguous(bias)
        length = math.prod(x.shape[axis:])
        kernels.layer_norm(contiguous(x), contiguous(scale), shift, result, mean, inverse, length, epsilon, True)
        return result, mean, inverse

    return rows


@replaces(rms_normalization, rounded=1)
def bind_rms_normalization(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """RMSNormalization with a scale for each element of a row."""
    kernels = native()
    assert kernels is not None

    @replayable
    def rows(x: Tensor, scale: Tensor, *, axis: int, epsilon: float, stash_type: int) -> Tensor:
        if not suits(x, scale, None, axis, stash_type):
            return rms_normalization(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)
        length = math.prod(x.shape[normalise_axis(axis, x.ndim) :])
        result = empty(x.shape, np.float32)
        kernels.layer_norm(contiguous(x), contiguous(scale), None, result, None, None, length, epsilon, False)
        return result

    return rows


def suits(x: Tensor, scale: Tensor, shift: Tensor | None, axis: int, stash_type: int) -> bool:
    """Whether scale and shift are as long as a row, in the type in which all is computed."""
    if not is_float32(x) or not x.size or stash_type != _STASH or not -x.ndim <= axis < x.ndim:
        return False
    row = x.shape[normalise_axis(axis, x.ndim) :]
    return all(p is None or (p.dtype is FLOAT32 and is_float32(p) and p.shape == row) for p in (scale, shift))

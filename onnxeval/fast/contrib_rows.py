"""What onnxruntime's optimisers make of a sum and what follows: normalisations of it, and the family of Gelu."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import FLOAT32, TYPES, contiguous, is_float32
from onnxeval.fast.activations import Activation, Kind
from onnxeval.fast.engine import native
from onnxeval.fast.rows import suits
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops.contrib.gelu import bias_gelu, fast_gelu, gelu, quick_gelu
from onnxeval.ops.contrib.layer_norm import (
    layer_normalization,
    simplified_layer_normalization,
    skip_layer_normalization,
    skip_simplified_layer_normalization,
)
from onnxeval.registry import Kernel

#: Its number in arrays.h.
_ADD = 0

_Bind = Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel]


def sum_of(one: Tensor, other: Tensor) -> Tensor:
    """The sum of float32 that broadcasts into the first."""
    kernels = native()
    assert kernels is not None
    total = empty(one.shape, np.float32)
    kernels.apply(_ADD, TYPES[FLOAT32], TYPES[FLOAT32], total, (one, other))
    return total


def _skip(readable: Kernel, *, centred: bool) -> _Bind:
    """What binds the normalisation of a sum, ``centred`` at its mean or by the root mean square alone."""

    def bind(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
        @replayable
        def rows(x: Tensor, skip: Tensor, gamma: Tensor, *rest: Tensor | None, epsilon: float = 1e-12) -> Any:
            beta, bias = rest if centred else (None, *rest)
            fits = is_float32(x) and x.ndim in (2, 3) and x.size and is_float32(gamma)
            fits = fits and is_float32(skip) and skip.shape in (x.shape, x.shape[1:], (1, *x.shape[1:]))
            vectors = [each for each in (gamma, beta, bias) if each is not None]
            if not fits or not all(is_float32(each) and each.shape == x.shape[-1:] for each in vectors):
                return readable(x, skip, gamma, *rest, epsilon=epsilon)
            total = sum_of(x, skip)
            if bias is not None:
                total = sum_of(total, bias)
            return *_normalised(total, gamma, beta, -1, epsilon, centred=centred), total

        return rows

    return bind


@replaces(layer_normalization, rounded=1)
def bind_layer_normalization(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """LayerNormalization of the standard's domain before the standard had one."""

    @replayable
    def rows(
        x: Tensor,
        scale: Tensor,
        bias: Tensor | None = None,
        *,
        axis: int = -1,
        epsilon: float = 1e-5,
        stash_type: int = 1,
    ) -> tuple[Tensor, ...]:
        if not suits(x, scale, bias, axis, stash_type):
            return layer_normalization(x, scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type)
        return _normalised(x, scale, bias, axis, epsilon, centred=True)

    return rows


@replaces(simplified_layer_normalization, rounded=1)
def bind_simplified_layer_normalization(_: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """The same by the root mean square alone."""

    @replayable
    def rows(
        x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
    ) -> tuple[Tensor, ...]:
        if not suits(x, scale, None, axis, stash_type):
            return simplified_layer_normalization(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)
        y, _, inverse = _normalised(x, scale, None, axis, epsilon, centred=False)
        return y, inverse

    return rows


def _normalised(
    x: Tensor, scale: Tensor, shift: Tensor | None, axis: int, epsilon: float, *, centred: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """(Y, mean, 1 / deviation) over ``axis`` and all after it."""
    kernels = native()
    assert kernels is not None
    axis = normalise_axis(axis, x.ndim)
    result = empty(x.shape, np.float32)
    mean = empty((*x.shape[:axis], *(1,) * (x.ndim - axis)), np.float32)
    inverse = np.empty_like(mean)
    offset = None if shift is None else contiguous(shift)
    length = math.prod(x.shape[axis:])
    kernels.layer_norm(contiguous(x), contiguous(scale), offset, result, mean, inverse, length, epsilon, centred)
    return result, mean, inverse


replaces(skip_layer_normalization)(_skip(skip_layer_normalization, centred=True))
replaces(skip_simplified_layer_normalization)(_skip(skip_simplified_layer_normalization, centred=False))


def _curve(readable: Kernel, activation_of: Callable[[Mapping[str, Any]], Activation]) -> _Bind:
    """What binds an activation of a sum; without a second input it is of the first."""

    def bind(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel:
        kernels = native()
        assert kernels is not None
        activation = activation_of(attributes)

        @replayable
        def curve(x: Tensor, *rest: Tensor | None, **given: Any) -> Any:
            bias = rest[0] if rest else None
            fits = is_float32(x) and (bias is None or (is_float32(bias) and x.ndim and bias.shape == x.shape[-1:]))
            if not fits:
                return readable(x, *rest, **given)
            result = empty(x.shape, np.float32)
            kernels.activate(contiguous(x) if bias is None else sum_of(x, bias), result, *activation)
            return result

        return curve

    return bind


for _readable, _activation_of in (
    (gelu, lambda _: Activation(Kind.GELU)),
    (bias_gelu, lambda _: Activation(Kind.GELU)),
    (fast_gelu, lambda _: Activation(Kind.GELU_TANH)),
    (quick_gelu, lambda given: Activation(Kind.SILU, given.get("alpha", 1.702))),
):
    replaces(_readable, rounded=1)(_curve(_readable, _activation_of))

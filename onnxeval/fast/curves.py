"""Activations that stand alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32
from onnxeval.fast.activations import IDENTITY, RELU, Activation, Kind
from onnxeval.fast.engine import native
from onnxeval.fast.parts import ABSENT, Part
from onnxeval.ops.math.clip import clip, clip_attributes
from onnxeval.ops.math.erf import error_function
from onnxeval.ops.math.rectifiers import elu, hard_sigmoid, hard_swish, leaky_relu, relu, times_hard_sigmoid
from onnxeval.ops.math.sigmoids import gelu, mish, sigmoid, softplus, swish
from onnxeval.registry import STANDARD, Kernel, OpKey

_GELU = {"none": Activation(Kind.GELU), "tanh": Activation(Kind.GELU_TANH)}

#: Readable kernel -> what it is here, from its attributes; None where they mean nothing.
_CURVES: dict[Kernel, Callable[[Mapping[str, Any]], Activation | None]] = {
    relu: lambda _: RELU,
    leaky_relu: lambda given: Activation(Kind.LEAKY_RELU, given["alpha"]),
    hard_sigmoid: lambda given: Activation(Kind.HARD_SIGMOID, given["alpha"], given["beta"]),
    times_hard_sigmoid: lambda given: Activation(Kind.HARD_SWISH, given["alpha"], given["beta"]),
    hard_swish: lambda _: Activation(Kind.HARD_SWISH, 1 / 6, 0.5),
    sigmoid: lambda _: Activation(Kind.SIGMOID),
    swish: lambda given: Activation(Kind.SILU, given["alpha"]),
    gelu: lambda given: _GELU.get(given["approximate"]),
    STANDARD.require(OpKey("", "Tanh", 13), "math"): lambda _: Activation(Kind.TANH),
    error_function: lambda _: Activation(Kind.ERF),
    softplus: lambda _: Activation(Kind.SOFTPLUS),
    mish: lambda _: Activation(Kind.MISH),
    elu: lambda given: Activation(Kind.ELU, given["alpha"]),
}


def activation_of(kernel: Kernel, attributes: Mapping[str, Any]) -> Activation | None:
    """What a readable kernel of one input is among the activations; None for any other."""
    make = _CURVES.get(kernel)
    return None if make is None else make(attributes)


def clip_of(part: Part, constants: Sequence[Tensor | None]) -> Activation | None:
    """Clip with constant bounds that are numbers; one that is absent bounds nothing. None for any other part."""
    if part.kernel is clip_attributes:
        low, high = part.attributes["min"], part.attributes["max"]
        limit = float(np.finfo(np.float32).max)
        return Activation(Kind.CLIP, -limit if low is None else low, limit if high is None else high)
    if part.kernel is not clip:
        return None
    bounds = [IDENTITY.alpha, IDENTITY.beta]
    for which, source in enumerate(part.sources[1:]):
        if source >= 0:
            value = constants[source]
            if value is None or value.size != 1 or value.dtype != np.float32 or np.isnan(value).any():
                return None
            bounds[which] = float(value.item())
        elif source != ABSENT:
            return None
    return Activation(Kind.CLIP, *bounds)


def _bind(readable: Kernel) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel | None]:
    def bind(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
        kernels = native()
        assert kernels is not None
        activation = activation_of(readable, attributes)
        if activation is None:
            return None
        activate = kernels.activate

        @replayable
        def curve(x: Tensor, **given: Any) -> Tensor:
            if not is_float32(x):
                return readable(x, **given)  # type: ignore[no-any-return]
            result = empty(x.shape, np.float32)
            activate(contiguous(x), result, *activation)
            return result

        return curve

    return bind


for _kernel in _CURVES:
    replaces(_kernel, rounded=1)(_bind(_kernel))

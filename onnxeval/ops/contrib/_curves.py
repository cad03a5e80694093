"""Curves that several operators apply to what they computed, and the activations that fused nodes name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from onnxeval.dtypes import Tensor, is_float, name_of
from onnxeval.ops.contrib._standard import standard

Curve: TypeAlias = Callable[..., Tensor]


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    result: Tensor = standard("math", "Sigmoid", 13)(x)
    return result


def silu(x: Tensor) -> Tensor:
    """The quotient x / (1 + exp(-x))."""
    return x * sigmoid(x)


def softplus(x: Tensor) -> Tensor:
    """ln(exp(x) + 1)."""
    result: Tensor = standard("math", "Softplus", 22)(x)
    return result


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """The product of x and the normal distribution function of x, "none", or the estimate of it by "tanh"."""
    result: Tensor = standard("math", "Gelu", 20)(x, approximate=approximate)
    return result


def activated(x: Tensor, name: str, parameters: Mapping[str, float | None] | Sequence[float] = ()) -> Tensor:
    """``x`` after the activation that a fused node names; "" is none.

    ``parameters`` are what the activation needs, by name or in the order of its text. Raises ValueError for an unknown
    activation and where a parameter is missing, TypeError where integers have no such activation.
    """
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise ValueError(f"activation {name!r} is none of {', '.join(_ACTIVATIONS)}")
    needed, curve = _ACTIVATIONS[name]
    if not is_float(x.dtype) and name != "Relu":
        raise TypeError(f"activation {name!r} is not defined for {name_of(x.dtype)}")
    if isinstance(parameters, Mapping):
        given = [value for key in needed if (value := parameters[key]) is not None]
    else:
        given = list(parameters)
    if len(given) != len(needed):
        raise ValueError(f"activation {name!r} needs the parameters ({', '.join(needed)}), {given} given")
    return curve(x, *given)


def _of_standard(op_type: str, version: int, *names: str) -> tuple[tuple[str, ...], Curve]:
    """An operator of the standard whose attributes are the parameters."""

    def curve(x: Tensor, *parameters: float) -> Tensor:
        result: Tensor = standard("math", op_type, version)(x, **dict(zip(names, parameters, strict=True)))
        return result

    return names, curve


#: Name -> the parameters it needs, and the curve.
_ACTIVATIONS: Mapping[str, tuple[tuple[str, ...], Curve]] = MappingProxyType(
    {
        "Relu": _of_standard("Relu", 14),
        "LeakyRelu": _of_standard("LeakyRelu", 16, "alpha"),
        "Tanh": _of_standard("Tanh", 13),
        "Sigmoid": _of_standard("Sigmoid", 13),
        "HardSigmoid": _of_standard("HardSigmoid", 22, "alpha", "beta"),
        "HardSwish": _of_standard("HardSwish", 22),
        "Elu": _of_standard("Elu", 22, "alpha"),
        "Celu": _of_standard("Celu", 28, "alpha"),
        "Selu": _of_standard("Selu", 22, "alpha", "gamma"),
        "Softplus": _of_standard("Softplus", 22),
        "Softsign": _of_standard("Softsign", 22),
        "ThresholdedRelu": _of_standard("ThresholdedRelu", 22, "alpha"),
        "ParametricSoftplus": (("alpha", "beta"), lambda x, alpha, beta: alpha * softplus(beta * x)),
        "ScaledTanh": (("alpha", "beta"), lambda x, alpha, beta: alpha * np.tanh(beta * x)),
        "Clip": (("min", "max"), lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    }
)

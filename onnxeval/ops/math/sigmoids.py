"""Smooth activations: Sigmoid, Softplus, Softsign, and the products of x with a gate.

All are computed where nothing overflows and nothing cancels, so that small results are as exact as large ones.
Versions differ in types alone.
"""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._broadcast import same_shapes
from onnxeval.ops._precision import in_float32
from onnxeval.ops.math._error_function import erfc, in_blocks
from onnxeval.registry import op


@op("Sigmoid", versions=(1, 6, 13))
@in_float32
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)). Source: Sigmoid-13."""
    return in_blocks(_sigmoid, x)


def _sigmoid(x: Tensor) -> Tensor:
    powers = np.exp(-np.abs(x))
    result: Tensor = np.maximum(powers, x >= 0)  # exp(x) where that does not overflow, else 1
    result /= powers + 1
    return result


@op("Softplus", versions=(1, 22))
@in_float32
def softplus(x: Tensor) -> Tensor:
    """ln(exp(x) + 1). Source: Softplus-22."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@op("Softsign", versions=(1, 22))
@in_float32
def softsign(x: Tensor) -> Tensor:
    """The quotient x / (1 + |x|). Source: Softsign-22."""
    result: Tensor = x / (1 + np.abs(x))
    return result


@op("Mish", versions=(18, 22))
@in_float32
def mish(x: Tensor) -> Tensor:
    """The product x tanh(ln(1 + exp(x))). Source: Mish-22."""
    return x * np.tanh(softplus(x))


@op("Swish", versions=(24,))
@in_float32
def swish(x: Tensor, *, alpha: float) -> Tensor:
    """The product x sigmoid(``alpha`` x). Source: Swish-24."""
    return x * sigmoid(alpha * x)


@op("SwiGLU", versions=(28,))
@in_float32
def swiglu(gate: Tensor, value: Tensor, *, alpha: float) -> Tensor:
    """Swish of the gate, times the value. Raises ValueError where their shapes differ. Source: SwiGLU-28."""
    same_shapes(gate, value)
    return swish(gate, alpha=alpha) * value


@op("Gelu", versions=(20,))
@in_float32
def gelu(x: Tensor, *, approximate: str) -> Tensor:
    """The product of x and the normal distribution function of x, or the estimate by tanh. Source: Gelu-20.

    ``approximate`` is "none" or "tanh", anything else a ValueError. The text's 1 + erf(z) is erfc(-z) here, its
    (1 + tanh(z)) / 2 the sigmoid of 2 z.
    """
    match approximate:
        case "none":
            return in_blocks(lambda part: 0.5 * part * erfc(part * -math.sqrt(0.5)), x)
        case "tanh":
            return in_blocks(
                lambda part: part * _sigmoid(math.sqrt(8 / math.pi) * (part + 0.044715 * part * part * part)), x
            )
        case _:
            raise ValueError(f"approximate {approximate!r} is neither 'none' nor 'tanh'")

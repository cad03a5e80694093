"""Derivatives of activations. Rectifiers have at their kink the derivative from the left."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onnxeval.ops.training._algebra import absolute, cast, exponential, fit, reshape, sigmoid, where
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._tape import Gradients, Node, Variable, apply, rule


def _below(x: Variable) -> Variable:
    """min(x, 0), so that nothing overflows where it is not looked at."""
    return where(x > 0, 0, x)


def _softsign(g: Variable, x: Variable, _: Variable) -> Variable:
    inverse = 1 / (absolute(x) + 1)
    return g * inverse * inverse


#: (operator, a version, (g, x, y, attributes) -> the gradient of x)
_ACTIVATIONS: tuple[tuple[str, int, Callable[..., Variable]], ...] = (
    ("Relu", 14, lambda g, x, _: where(x > 0, g, 0)),
    ("LeakyRelu", 16, lambda g, x, _, *, alpha: where(x > 0, g, g * alpha)),
    ("ThresholdedRelu", 22, lambda g, x, _, *, alpha: where(x > alpha, g, 0)),
    ("Elu", 22, lambda g, x, _, *, alpha: where(x > 0, g, g * alpha * exponential(_below(x)))),
    ("Selu", 22, lambda g, x, _, *, alpha, gamma: gamma * where(x > 0, g, g * alpha * exponential(_below(x)))),
    ("Celu", 28, lambda g, x, _, *, alpha: where(x > 0, g, g * exponential(_below(x) / alpha))),
    ("HardSigmoid", 22, lambda g, _, y, *, alpha, **__: where(apply("And", y > 0, y < 1), g * alpha, 0)),
    ("Shrink", 9, lambda g, x, _, *, lambd, **__: where(apply("Or", x < -lambd, x > lambd), g, 0)),
    ("Sigmoid", 13, lambda g, x, y: g * y * sigmoid(-x)),
    ("Softplus", 22, lambda g, x, _: g * sigmoid(x)),
    ("Softsign", 22, _softsign),
)


def _of_one(gradient: Callable[..., Variable]) -> Callable[[Node, Variable], Gradients]:
    def wayback(node: Node, g: Variable) -> Gradients:
        return (lambda: gradient(g, *node.present, node.output(), **node.attributes),)

    return wayback


for _name, _version, _gradient in _ACTIVATIONS:
    rule(_name, _version)(_of_one(_gradient))


@rule("PRelu", 16)
def _parametric_relu(node: Node, g: Variable) -> Gradients:
    x, slope = node.present
    return lambda: where(x < 0, g * slope, g), lambda: fit(where(x < 0, g * x, 0), slope.shape)


@definition("PRelu", 6)
def _parametric_relu_by_channel(x: Variable, slope: Variable) -> Variable:
    if slope.size == 1:
        return apply("PRelu", x, reshape(slope, ()))
    if slope.ndim == 1 and x.ndim >= 2 and slope.shape[0] == x.shape[1]:
        return apply("PRelu", x, reshape(slope, (slope.size, *(1,) * (x.ndim - 2))))
    return apply("PRelu", x, slope)


@definition("HardSwish", 22)
def _hard_swish(x: Variable) -> Variable:
    return x * apply("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@definition("Mish", 22)
def _mish(x: Variable) -> Variable:
    return x * apply("Tanh", apply("Softplus", x))


@definition("Swish", 24)
def _swish(x: Variable, *, alpha: float) -> Variable:
    return x * sigmoid(x * alpha)


@definition("SwiGLU", 28)
def _swiglu(gate: Variable, value: Variable, *, alpha: float) -> Variable:
    return _swish(gate, alpha=alpha) * value


@definition("Gelu", 20)
def _gelu(x: Variable, *, approximate: str) -> Variable:
    if approximate == "tanh":
        return x * sigmoid((x + x * x * x * 0.044715) * math.sqrt(8 / math.pi))
    return x * (apply("Erf", x / math.sqrt(2)) + 1) * 0.5


# Dropout


@rule("Dropout", 22)
def _dropout(node: Node, g: Variable, _: Variable | None) -> Gradients:
    _, ratio, training_mode = node.inputs
    if training_mode is None or not training_mode.value.item():
        return lambda: g, None, None
    silenced = 0.5 if ratio is None else float(ratio.value.item())  # what the text of the input says
    return lambda: _dropped(node, g, silenced), node.refuse("with respect to its ratio"), None


@rule("Dropout", 10, 7)
def _dropout_inference(_: Node, g: Variable, __: Variable | None) -> Gradients:
    return (lambda: g,)


@rule("Dropout", 6)
def _dropout_is_test(node: Node, g: Variable, _: Variable | None) -> Gradients:
    attributes: dict[str, Any] = dict(node.attributes)
    return (lambda: g if attributes["is_test"] else _dropped(node, g, attributes["ratio"]),)


def _dropped(node: Node, g: Variable, ratio: float) -> Variable:
    mask = node.tape.constant(np.asarray(node.values[1]))
    return g * cast(mask, g.dtype) * (1 / (1 - ratio))

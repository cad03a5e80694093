"""Derivatives of arithmetic, broadcasting included, and of functions of one number.

At a kink the derivative is 0 for the absolute value, 1 for Clip at its bounds, and shared evenly among the equal
operands of Max and Min. Functions in steps have the derivative 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType
from onnxeval.ops._broadcast import align
from onnxeval.ops.training._algebra import (
    cast,
    equal,
    exponential,
    fit,
    logarithm,
    power,
    reshape,
    root,
    where,
)
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._tape import Gradients, Node, Variable, apply, rule

_DIFFERENTIABLE: tuple[DType, ...] = (*map(np.dtype, (np.float16, np.float32, np.float64)), BFLOAT16)


# Functions of one number


def _inverse_of_cosh_squared(x: Variable) -> Variable:
    inverse = 1 / apply("Cosh", x)
    return inverse * inverse


#: (operator, a version, (x, y) -> dy / dx)
_ONE: tuple[tuple[str, int, Callable[[Variable, Variable], Variable]], ...] = (
    ("Abs", 13, lambda x, _: apply("Sign", x)),
    ("Sqrt", 13, lambda _, y: 0.5 / y),
    ("Reciprocal", 13, lambda _, y: -(y * y)),
    ("Exp", 13, lambda _, y: y),
    ("Log", 13, lambda x, _: 1 / x),
    ("Sin", 22, lambda x, _: apply("Cos", x)),
    ("Cos", 22, lambda x, _: -apply("Sin", x)),
    ("Tan", 22, lambda _, y: y * y + 1),
    ("Asin", 22, lambda x, _: 1 / root((1 - x) * (1 + x))),
    ("Acos", 22, lambda x, _: -1 / root((1 - x) * (1 + x))),
    ("Atan", 22, lambda x, _: 1 / (x * x + 1)),
    ("Sinh", 22, lambda x, _: apply("Cosh", x)),
    ("Cosh", 22, lambda x, _: apply("Sinh", x)),
    ("Tanh", 13, lambda x, _: _inverse_of_cosh_squared(x)),
    ("Asinh", 22, lambda x, _: 1 / root(x * x + 1)),
    ("Acosh", 22, lambda x, _: 1 / (root(x - 1) * root(x + 1))),
    ("Atanh", 22, lambda x, _: 1 / ((1 - x) * (1 + x))),
    ("Erf", 13, lambda x, _: exponential(-(x * x)) * (2 / math.sqrt(math.pi))),
)


def _of_one(derivative: Callable[[Variable, Variable], Variable]) -> Callable[[Node, Variable], Gradients]:
    def wayback(node: Node, g: Variable) -> Gradients:
        (x,) = node.present
        return (lambda: g * derivative(x, node.output()),)

    return wayback


for _name, _version, _derivative in _ONE:
    rule(_name, _version)(_of_one(_derivative))


@rule("Neg", 13)
def _neg(_: Node, g: Variable) -> Gradients:
    return (lambda: -g,)


@rule("Identity", 25)
def _identity(_: Node, g: Variable) -> Gradients:
    return (lambda: g,)


@rule("Sign", 13)
@rule("Ceil", 13)
@rule("Floor", 13)
@rule("Round", 22)
@rule("Hardmax", 13, 11)
def _steps(_: Node, __: Variable) -> Gradients:
    return (None,)


@rule("Cast", 28, 1)
def _cast(node: Node, g: Variable) -> Gradients:
    return (_cast_back(node, g),)


@rule("CastLike", 25)
def _cast_like(node: Node, g: Variable) -> Gradients:
    return _cast_back(node, g), None


def _cast_back(node: Node, g: Variable) -> Callable[[], Variable]:
    (x,) = node.present[:1]
    if x.dtype not in _DIFFERENTIABLE or g.dtype not in _DIFFERENTIABLE:
        return node.refuse(f"from {x.dtype.name} to {g.dtype.name}")
    return lambda: cast(g, x.dtype)


# Arithmetic


@rule("Add", 14)
def _add(node: Node, g: Variable) -> Gradients:
    a, b = node.present
    return lambda: fit(g, a.shape), lambda: fit(g, b.shape)


@rule("Sub", 14)
def _sub(node: Node, g: Variable) -> Gradients:
    a, b = node.present
    return lambda: fit(g, a.shape), lambda: fit(-g, b.shape)


@rule("Mul", 14)
def _mul(node: Node, g: Variable) -> Gradients:
    a, b = node.present
    return lambda: fit(g * b, a.shape), lambda: fit(g * a, b.shape)


@rule("Div", 14)
def _div(node: Node, g: Variable) -> Gradients:
    a, b = node.present
    return lambda: fit(g / b, a.shape), lambda: fit(-g * node.output() / b, b.shape)


@rule("Mod", 28, 13)
def _mod(node: Node, g: Variable) -> Gradients:
    """The remainder is the dividend less a whole number of divisors."""
    a, b = node.present
    return lambda: fit(g, a.shape), lambda: fit(-g * apply("Round", (a - node.output()) / b), b.shape)


@rule("Pow", 15)
def _pow(node: Node, g: Variable) -> Gradients:
    """A base of 0 has no logarithm: the derivative of its exponent is 0, and so is its own where that is 0."""
    x, given = node.present
    y = cast(given, x.dtype)

    def of_base() -> Variable:
        of_nothing = apply("And", equal(x, 0), equal(y, 0))
        return fit(g * y * power(x, where(of_nothing, 1, y) - 1), x.shape)

    def of_exponent() -> Variable:
        return cast(fit(g * node.output() * logarithm(where(equal(x, 0), 1, x)), given.shape), given.dtype)

    return of_base, of_exponent


for _name, _version in {"Add": 6, "Sub": 6, "Mul": 6, "Div": 6, "Pow": 1}.items():

    @definition(_name, _version)
    def _aligned(a: Variable, b: Variable, *, axis: int | None, broadcast: int, op_type: str = _name) -> Variable:
        return apply(op_type, a, reshape(b, align(a.value, b.value, axis=axis, broadcast=broadcast).shape))


@rule("Sum", 13, 6)
def _sum(node: Node, g: Variable) -> Gradients:
    return [partial(fit, g, x.shape) for x in node.present]


@rule("Mean", 13, 6)
def _mean(node: Node, g: Variable) -> Gradients:
    return [partial(fit, g / len(node.inputs), x.shape) for x in node.present]


@rule("Max", 13, 6)
@rule("Min", 13, 6)
def _extreme(node: Node, g: Variable) -> Gradients:
    y = node.output()

    def is_it(x: Variable) -> Variable:
        return cast(equal(x, y), g.dtype)

    def share(x: Variable) -> Variable:
        return fit(g * is_it(x) / apply("Sum", *map(is_it, node.present)), x.shape)

    return [partial(share, x) for x in node.present]


@rule("Where", 16)
def _where(node: Node, g: Variable) -> Gradients:
    condition, x, y = node.present
    return None, lambda: fit(where(condition, g, 0), x.shape), lambda: fit(where(condition, 0, g), y.shape)


@rule("Clip", 13)
def _clip(node: Node, g: Variable) -> Gradients:
    """Where the bounds cross, the upper one wins."""
    (x,), (_, low, high) = node.present[:1], node.inputs
    raised = x if low is None else apply("Max", x, reshape(low, ()))
    is_high = raised > (math.inf if high is None else reshape(high, ()))
    is_low = apply("And", apply("Not", is_high), x < (-math.inf if low is None else reshape(low, ())))

    def bound(mask: Variable, given: Variable | None) -> Callable[[], Variable] | None:
        return None if given is None else lambda: reshape(fit(where(mask, g, 0), ()), given.shape)

    return lambda: where(apply("Or", is_low, is_high), 0, g), bound(is_low, low), bound(is_high, high)


@definition("Clip", 6)
def _clip_attributes(x: Variable, *, min: float | None, max: float | None) -> Variable:
    bounds = (None if bound is None else np.asarray(bound, x.dtype) for bound in (min, max))
    return apply("Clip", x, *bounds)

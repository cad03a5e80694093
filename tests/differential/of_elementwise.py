"""Strategies of element-wise operators: math, logical, and those of tensor."""

from __future__ import annotations

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, element_of, strategy

from onnxeval.dtypes import BY_ELEMENT_TYPE, ELEMENT_TYPES, FLOAT8E8M0, STRING, is_float


@strategy("Abs", "Ceil", "Floor", "Neg", "Not", "BitwiseNot", "Identity")
@strategy("Round")
@strategy("Relu", "Sign", ulps=1)
@strategy("IsNaN")
def exact_unary(d: Drawing) -> Node:
    return d.node(d.tensor(0, d.shape()))


@strategy("Sqrt", "Reciprocal", ulps=1)
@strategy("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan", ulps=4)
@strategy("Erf", "Exp", "Log", ulps=4)
@strategy("Mish", "Sigmoid", "Softplus", "Softsign", "Tanh", ulps=64, absolute=2)
@strategy("HardSwish", ulps=4, single=True)
def unary(d: Drawing) -> Node:
    return d.node(d.tensor(0, d.shape()))


@strategy("HardSigmoid", "LeakyRelu", "Shrink", "ThresholdedRelu", ulps=4)
@strategy("Elu", "Celu", "Selu", ulps=8, absolute=4)
@strategy("Swish", ulps=64, absolute=16)
@strategy("Gelu", ulps=16, absolute=4, single=True)
def activation(d: Drawing) -> Node:
    numbers = d.some(alpha=d.one_of(0.5, 2.0, -1.5), beta=d.one_of(0.25, 0.0, -1.0), gamma=d.one_of(1.5, 0.0))
    shrink = d.some(bias=d.one_of(0.25, -1.0, 2.0), lambd=d.one_of(1.0, 0.0, 2.5))
    return d.node(d.tensor(0, d.shape()), **numbers, **shrink, **d.some(approximate=d.one_of("tanh", "none")))


@strategy("Add", "Sub", "Mul", "Div", ulps=1)
@strategy("Pow", ulps=4)
@strategy("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
@strategy("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def binary(d: Drawing) -> Node:
    shape = d.shape()
    a, b = d.tensor(0, shape), d.tensor(1, d.partner(shape))
    if d.schema.key.op_type != "Pow" and d.flag():
        a, b = b, a
    return d.node(a, b)


@strategy("Mod", ulps=1)
def modulo(d: Drawing) -> Node:
    shape = d.shape()
    fmod = int(is_float(d.dtype(0)) or d.flag())
    return d.node(d.tensor(0, shape), d.tensor(1, d.partner(shape)), fmod=fmod)


@strategy("BitShift")
def shift(d: Drawing) -> Node:
    shape = d.shape()
    most = 8 * d.dtype(0).itemsize - 1
    amounts = d.integers(d.partner(shape), 0, most, d.dtype(0))
    return d.node(d.tensor(0, shape), amounts, direction=d.one_of("LEFT", "RIGHT"))


@strategy("PRelu", ulps=1)
def prelu(d: Drawing) -> Node:
    shape = d.shape()
    return d.node(d.tensor(0, shape), d.tensor(1, d.partner(shape)))


@strategy("Max", "Min", ulps=1)
@strategy("Sum", "Mean", ulps=2, scaled=True)
def variadic(d: Drawing) -> Node:
    shape = d.shape()
    return d.node(*(d.tensor(0, d.partner(shape)) for _ in range(d.integer(1, 4))))


@strategy("Clip")
def clip(d: Drawing) -> Node:
    x = d.tensor(0, d.shape())
    least, greatest = (d.tensor(0, (), "plain") if d.flag() else None for _ in range(2))
    if d.has("min"):
        return d.node(x, **{name: float(v) for name, v in (("min", least), ("max", greatest)) if v is not None})
    return d.node(x, least, greatest)


@strategy("Where")
def where(d: Drawing) -> Node:
    shape = d.shape()
    return d.node(d.tensor(0, d.partner(shape)), d.tensor(1, shape), d.tensor(2, d.partner(shape)))


@strategy("IsInf")
def is_inf(d: Drawing) -> Node:
    signs = d.some(detect_negative=d.integer(0, 1), detect_positive=d.integer(0, 1))
    return d.node(d.tensor(0, d.shape()), **signs)


@strategy("Cast")
def cast(d: Drawing) -> Node:
    targets = sorted(ELEMENT_TYPES[target] for target in _cast_targets(d))
    to = targets[d.integer(0, len(targets) - 1)]
    x = numeric_words(d, d.shape()) if d.dtype(0) == STRING else d.tensor(0, d.shape())
    return d.node(x, to=to, **narrowing(d, BY_ELEMENT_TYPE[to]))


def narrowing(d: Drawing, target: np.dtype) -> dict[str, object]:
    """The attributes that only some targets know."""
    options = d.some(saturate=d.integer(0, 1), round_mode=d.one_of("up", "down", "nearest"))
    if "float8" not in target.name:
        return {}
    if target != FLOAT8E8M0:
        options.pop("round_mode", None)
    return options


@strategy("CastLike")
def cast_like(d: Drawing) -> Node:
    x = numeric_words(d, d.shape()) if d.dtype(0) == STRING else d.tensor(0, d.shape())
    return d.node(x, d.tensor(1, (1,)), **narrowing(d, d.dtype(1)))


def _cast_targets(d: Drawing) -> list[np.dtype]:
    return [element_of(name) for name in d.schema.outputs[0].allowed]


def numeric_words(d: Drawing, shape: tuple[int, ...]) -> np.ndarray:
    words = np.array(["0", "1", "-7", "2.5", "1e3", "-0.0", "NaN", "INF", "-INF", "100", "3.14159274", "1E-5"], object)
    return np.asarray(words[d.integers(shape, 0, len(words) - 1)], object)


@strategy("BitCast")
def bit_cast(d: Drawing) -> Node:
    source = d.dtype(0)
    same = sorted(ELEMENT_TYPES[t] for t in _cast_targets(d) if t.itemsize == source.itemsize and t != STRING)
    return d.node(d.tensor(0, d.shape()), to=same[d.integer(0, len(same) - 1)])

"""Derivatives of arithmetic, functions of one number and activations against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from ops.training.differences import Case, check, check_in_16_bits, in_16_bits

RNG = np.random.default_rng(1)


def normal(*shape):
    return RNG.normal(size=shape)


def positive(*shape):
    return RNG.uniform(0.5, 2, shape)


def within(*shape):
    return RNG.uniform(-0.9, 0.9, shape)


ONE = [
    *(Case(name, [normal(2, 3)]) for name in ("Abs", "Neg", "Exp", "Sin", "Cos", "Sinh", "Cosh", "Tanh")),
    *(Case(name, [normal(2, 3)]) for name in ("Asinh", "Erf")),
    *(Case(name, [within(2, 3)]) for name in ("Tan", "Asin", "Acos", "Atan", "Atanh")),
    *(Case(name, [positive(2, 3)]) for name in ("Sqrt", "Reciprocal", "Log")),
    Case("Acosh", [positive(2, 3) + 1]),
    Case("Identity", [normal(2, 3)]),
    *(Case(name, [normal(2, 3)]) for name in ("Sign", "Ceil", "Floor", "Round", "Hardmax")),
    Case("Exp", [normal()], opset=6),
    Case("Cast", [normal(3)], {"to": 11}),
    Case("Cast", [normal(3)], {"to": "DOUBLE"}, opset=5),
    Case("CastLike", [normal(3), normal(2)]),
]
TWO = [
    *(Case(name, [positive(2, 3), positive(3)]) for name in ("Add", "Sub", "Mul", "Div", "Pow")),
    *(Case(name, [positive(2, 1, 3), positive(4, 1)]) for name in ("Add", "Sub", "Mul", "Div", "Pow")),
    *(Case(name, [positive(), positive(2)], opset=7) for name in ("Add", "Sub", "Mul", "Div", "Pow")),
    *(
        Case(name, [positive(2, 3, 4), positive(3)], {"axis": 1, "broadcast": 1}, opset=6)
        for name in ("Add", "Sub", "Mul", "Div", "Pow")
    ),
    *(Case(name, [positive(2, 3), positive(2, 3)], opset=1) for name in ("Add", "Sub", "Mul", "Div", "Pow")),
    Case("Pow", [normal(2, 3), np.array([2, 3, 1])]),
    Case("Pow", [np.array([-1.5, 0.5, 2.0]), np.array(3.0)], fixed=(1,)),
    *(Case(name, [normal(2, 3), normal(3), normal(2, 1)]) for name in ("Sum", "Mean", "Max", "Min")),
    *(Case(name, [normal(2, 3), normal(2, 3)], opset=6) for name in ("Sum", "Mean", "Max", "Min")),
    Case("Max", [normal(4)]),
    Case("Mod", [normal(5) * 5, positive(5)], {"fmod": 1}),
    Case("Mod", [normal(5) * 5, -positive(1)], opset=28),
    Case("Mod", [normal(5) * 5, positive(5)], {"fmod": 1}, opset=13),
    Case("Where", [np.array([[True], [False]]), normal(3), normal(2, 3)]),
]
CLIP = [
    Case("Clip", [np.array([-2.0, 0.1, 3.0]), np.array(-1.0), np.array(1.5)]),
    Case("Clip", [np.array([-2.0, 0.1, 3.0]), np.array([-1.0]), None]),
    Case("Clip", [np.array(0.7), np.array([-1.0]), np.array([0.5])]),
    Case("Clip", [np.array([-2.0, 0.1, 3.0]), None, np.array(1.5)], opset=11),
    Case("Clip", [np.array([-2.0, 0.1, 3.0]), np.array(2.0), np.array(1.0)]),
    Case("Clip", [np.array([-2.0, 0.1, 3.0])], {"min": -1.0, "max": 1.5}, opset=6),
    Case("Clip", [np.array([-2.0, 0.1, 3.0])], {"min": -1.0}, opset=1),
]
ACTIVATIONS = [
    *(
        Case(name, [normal(3, 4) * 2])
        for name in (
            "Relu",
            "LeakyRelu",
            "ThresholdedRelu",
            "Elu",
            "Selu",
            "Celu",
            "HardSigmoid",
            "HardSwish",
            "Shrink",
            "Sigmoid",
            "Softplus",
            "Softsign",
            "Mish",
            "Swish",
            "Gelu",
        )
    ),
    Case("Gelu", [normal(3, 4)], {"approximate": "tanh"}),
    Case("Swish", [normal(3, 4)], {"alpha": 1.7}),
    Case("Elu", [normal(3, 4)], {"alpha": 0.3}),
    Case("Celu", [normal(3, 4)], {"alpha": 0.3}),
    Case("Shrink", [normal(3, 4)], {"lambd": 0.2, "bias": 0.1}),
    Case("Selu", [normal(3, 4)], opset=1),
    Case("SwiGLU", [normal(3), normal(3)], {"alpha": 1.5}),
    Case("PRelu", [normal(2, 3, 4), normal(3, 1)]),
    Case("PRelu", [normal(2, 3, 4), normal(3)], opset=6),
    Case("PRelu", [normal(2, 3, 4), normal(1)], opset=6),
    Case("PRelu", [normal(2, 3), normal(2, 3)], opset=1),
    Case("Dropout", [normal(3, 4)]),
    Case("Dropout", [normal(3, 4), np.array(0.5), np.array(True)], {"seed": 3}, fixed=(1,)),
    Case("Dropout", [normal(3, 4), np.array(0.3), np.array(True)], {"seed": 3}, fixed=(1,), outputs=2, opset=12),
    Case("Dropout", [normal(3, 4), None, np.array(True)], {"seed": 3}, outputs=2),
    Case("Dropout", [normal(3, 4), np.array(0.5), np.array(False)], opset=12),
    Case("Dropout", [normal(3, 4)], opset=10),
    Case("Dropout", [normal(3, 4)], opset=7),
    Case("Dropout", [normal(3, 4)], {"is_test": 1}, opset=6),
]


CASES = [*ONE, *TWO, *CLIP, *ACTIVATIONS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", in_16_bits(CASES), ids=str)
def test_derivatives_in_16_bits(case: Case) -> None:
    check_in_16_bits(case)

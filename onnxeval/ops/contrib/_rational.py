"""Hyperbolic tangent and logistic function as quotients of polynomials, to the last bit as onnxruntime has them.

An operator whose text is onnxruntime's arithmetic quantizes what these curves give: where a state falls between two
codes, a last bit decides which one it becomes, and every later step follows from it.

The coefficients are those that Eigen published, for float32; each step of a polynomial is a fused multiply-add.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor

_TANH_BOUND = np.float32(9)
_TANH_TOP = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
_TANH_BOTTOM = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)

_SIGMOID_BOUND = np.float32(18)
_SIGMOID_TOP = (
    4.37031012579801e-11,
    1.15627324459942e-07,
    6.08574864600143e-05,
    8.51377133304701e-03,
    2.48287947061529e-01,
)
_SIGMOID_BOTTOM = (
    6.10247389755681e-13,
    5.76102136993427e-09,
    6.29106785017040e-06,
    1.70198817374094e-03,
    1.16817656904453e-01,
    9.93151921023180e-01,
)


def rational_tanh(x: Tensor, out: Tensor) -> Tensor:
    """The hyperbolic tangent of float32, within 4e-7; ``out`` may be ``x``."""
    return _odd_quotient(np.clip(x, -_TANH_BOUND, _TANH_BOUND, out=out), _TANH_TOP, _TANH_BOTTOM)


def rational_sigmoid(x: Tensor, out: Tensor) -> Tensor:
    """1 / (1 + exp(-x)) of float32, within 2e-7; ``out`` may be ``x``."""
    _odd_quotient(np.clip(x, -_SIGMOID_BOUND, _SIGMOID_BOUND, out=out), _SIGMOID_TOP, _SIGMOID_BOTTOM)
    out += np.float32(0.5)
    return np.maximum(out, 0, out=out)


def _odd_quotient(x: Tensor, top: tuple[float, ...], bottom: tuple[float, ...]) -> Tensor:
    """The quotient x * top(x * x) / bottom(x * x), in the place of x."""
    square = x * x
    x *= _polynomial(square, top)
    x /= _polynomial(square, bottom)
    return x


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """By Horner's rule; float64 holds each product exactly, so that only the sum is rounded."""
    exact = x.astype(np.float64)
    value: Tensor = np.asarray(coefficients[0], np.float32)
    for coefficient in coefficients[1:]:
        value = (value * exact + np.float32(coefficient)).astype(np.float32)
    return value

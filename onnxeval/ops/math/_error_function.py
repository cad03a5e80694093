"""The error function and its complement, on whole arrays.

In float64 erf(x) is x P(x²) up to |x| = 1. Beyond it erfc(x) is exp(-x²) / (x + 2) Q(t) with t = 1 - 6 / (x + 2), which
runs from -1 at x = 1 to 1 at infinity. P and Q are Chebyshev interpolants worked out in 40 digits, in powers and as
short as the type allows.

Float32 needs fewer terms, and no case for each range: erf(x) is tanh(x + x A(x²)), fitted for the least relative error
up to where it rounds to 1, and erfc(x) is as above with t = 1 - 4 / (x + 2), from x = 0 on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor

_NEAR = (
    1.1283791670955126,
    -0.3761263890318375,
    0.11283791670954879,
    -0.026866170645076792,
    0.0052239776248180145,
    -0.000854832698083379,
    0.0001205533111164271,
    -1.4925595266831182e-05,
    1.6461000484121368e-06,
    -1.6350312701054695e-07,
    1.4659775274047436e-08,
    -1.1372848856791674e-09,
    5.957176147748911e-11,
)
_FAR = (
    0.8219967457503683,
    -0.34380947367040293,
    0.10291788782354651,
    -0.016633141230825117,
    -0.0014137333867649292,
    0.0012570181771182657,
    -3.6789262184049736e-05,
    -0.00010491719425333469,
    6.343714102931077e-06,
    1.1183289652590029e-05,
    -2.1027556543795193e-07,
    -1.403240883906889e-06,
    -1.268950335586565e-07,
    1.795602280082667e-07,
    4.833117408570638e-08,
    -1.9356960228522594e-08,
    -1.1563624448580678e-08,
    1.1884507381259993e-09,
    1.9522881025343907e-09,
    1.8043581075141587e-11,
    -1.807189133555081e-10,
)
_BEND_32 = (
    0.1283791780295327,
    0.10277217959058198,
    -0.0002067345477678705,
    -0.0005951501147542218,
    6.917901402177137e-05,
    1.3930933760490065e-06,
    -1.3060741675376288e-06,
    1.5855707318282341e-07,
    -8.63994810670345e-09,
    1.835408882152912e-10,
)
_REACH_32 = 4.1
_FAR_32 = (
    1.0215827138318905,
    -0.6871606374219297,
    0.2794714670438583,
    -0.03644333885677571,
    -0.021503252373169177,
    0.006486903836199417,
    0.003058314321527384,
    -0.0008613409768717189,
    -0.000598765424143129,
    7.320375388758971e-05,
    8.432239439277561e-05,
)
_BLOCK = 1 << 14  # elements whose intermediate results stay in the processor's cache


def erf(x: Tensor) -> Tensor:
    """The error function of float32 or float64, within three units in the last place."""
    return in_blocks(_erf_32 if x.dtype == np.float32 else _erf, x)


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x) of float32 or float64, without the cancellation: a small result has few wrong digits."""
    return in_blocks(_erfc_32 if x.dtype == np.float32 else _erfc, x)


def in_blocks(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """An element-wise function, of so many elements at a time that what it makes on the way stays close."""
    if x.size <= _BLOCK:
        return function(x)
    result = np.empty_like(x, order="C")
    source, target = x.reshape(-1), result.reshape(-1)
    for start in range(0, x.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        target[block] = function(source[block])
    return result


def _erf_32(x: Tensor) -> Tensor:
    inside = np.clip(x, -_REACH_32, _REACH_32)
    bend = _polynomial(_BEND_32, inside * inside)
    bend *= inside
    bend += inside
    result: Tensor = np.tanh(bend, out=bend)
    return result


def _erfc_32(x: Tensor) -> Tensor:
    far = _far(np.abs(x), _FAR_32, 4)
    return np.where(x < 0, 2 - far, far)


def _erf(x: Tensor) -> Tensor:
    size = np.abs(x)
    return np.where(size > 1, np.copysign(1 - _far(size, _FAR, 6), x), _near(x))


def _erfc(x: Tensor) -> Tensor:
    near, far = _near(x), _far(np.abs(x), _FAR, 6)
    return np.where(x > 1, far, np.where(x < -1, 2 - far, 1 - near))


def _near(x: Tensor) -> Tensor:
    """The error function where |x| <= 1, a finite number elsewhere; NaN stays."""
    inside = np.clip(x, -1, 1)
    return inside * _polynomial(_NEAR, inside * inside)


def _far(size: Tensor, coefficients: tuple[float, ...], width: float) -> Tensor:
    """The complement of an absolute value, where 1 - ``width`` / (size + 2) is in [-1, 1]."""
    reach = size + 2
    result: Tensor = _polynomial(coefficients, 1 - width / reach) * np.exp(-size * size) / reach
    return result


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """The polynomial with these coefficients, lowest power first, by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total

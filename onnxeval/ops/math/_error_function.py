"""The error function and its complement, on whole arrays.

Up to |x| = 1 erf(x) is x P(x²). Beyond it erfc(x) is exp(-x²) / (x + 2) Q(t) with t = 1 - 6 / (x + 2), which runs
from -1 at x = 1 to 1 at infinity. P and Q are Chebyshev interpolants worked out in 40 digits, in powers and as short
as the type allows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import Tensor

_NEAR = {
    np.dtype(np.float32): (
        1.1283791670615435,
        -0.3761263846802871,
        0.11283782495236845,
        -0.026865430727670243,
        0.005221031807858023,
        -0.0008484080405535107,
        0.00011265959025606609,
        -9.667044571486996e-06,
    ),
    np.dtype(np.float64): (
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
    ),
}
_FAR = {
    np.dtype(np.float32): (
        0.8219967457503683,
        -0.3438094843511114,
        0.10291788711753068,
        -0.016632926196837716,
        -0.0014137250012869241,
        0.0012557933695285363,
        -3.684011507910195e-05,
        -0.00010202046216226446,
        6.478885675542632e-06,
        8.06603704994373e-06,
        -3.909111607640163e-07,
    ),
    np.dtype(np.float64): (
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
    ),
}


_BLOCK = 1 << 14  # elements whose intermediate results stay in the processor's cache


def erf(x: Tensor) -> Tensor:
    """The error function of float32 or float64, within three units in the last place."""
    return _in_blocks(_erf, x)


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x) of float32 or float64, without the cancellation: a small result has few wrong digits."""
    return _in_blocks(_erfc, x)


def _in_blocks(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    result = np.empty_like(x, order="C")
    source, target = x.reshape(-1), result.reshape(-1)
    for start in range(0, x.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        target[block] = function(source[block])
    return result


def _erf(x: Tensor) -> Tensor:
    size = np.abs(x)
    return np.where(size > 1, np.copysign(1 - _far(size), x), _near(x))


def _erfc(x: Tensor) -> Tensor:
    near, far = _near(x), _far(np.abs(x))
    return np.where(x > 1, far, np.where(x < -1, 2 - far, 1 - near))


def _near(x: Tensor) -> Tensor:
    """The error function where |x| <= 1, a finite number elsewhere; NaN stays."""
    inside = np.clip(x, -1, 1)
    return inside * _polynomial(_NEAR[x.dtype], inside * inside)


def _far(size: Tensor) -> Tensor:
    """The complement where |x| >= 1, of the absolute value."""
    reach = size + 2
    result: Tensor = np.exp(-size * size) * _polynomial(_FAR[size.dtype], 1 - 6 / reach) / reach
    return result


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """The polynomial with these coefficients, lowest power first, by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total

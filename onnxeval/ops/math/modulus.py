"""Mod.

In versions 10 and 13 floating-point operands need `fmod` 1; since 28 `fmod` only says how the quotient is rounded.
Version 13 alone writes that `fmod` 1 is for floating-point operands: integers are taken there too, as before and after.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor, is_float
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op


@op("Mod", versions=(28,))
@in_float32
def mod(a: Tensor, b: Tensor, *, fmod: int) -> Tensor:
    """The remainder of a / b: with the divisor's sign where ``fmod`` is 0, with the dividend's where it is 1.

    Raises ValueError where an integer is divided by zero; floating-point numbers give NaN. Source: Mod-28.
    """
    if fmod not in (0, 1):
        raise ValueError(f"fmod {fmod} is neither 0 nor 1")
    if a.dtype.kind in "iu" and a.size and not b.all():
        raise ValueError(f"integer modulo by zero: the divisor of shape {list(b.shape)} holds a 0")
    return np.fmod(a, b) if fmod else np.remainder(a, b)


@op("Mod", versions=(10, 13))
def mod_of_integers(a: Tensor, b: Tensor, *, fmod: int) -> Tensor:
    """Like Mod-28, but floating-point operands need ``fmod`` 1. Source: Mod-13."""
    if not fmod and is_float(a.dtype):
        raise ValueError(f"fmod must be 1 for operands of type {a.dtype.name}, it is 0")
    return mod(a, b, fmod=fmod)

"""Add, Sub, Mul and Div.

Integers wrap around like their type and Div truncates towards zero. Versions 1 and 6 have `axis` and `broadcast`
instead of NumPy's broadcasting. On 16-bit floats NumPy and ml_dtypes round each of the four exactly once.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._broadcast import with_axis_attribute
from onnxeval.ops._elementwise import of_two
from onnxeval.registry import op


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """The quotient, of integers truncated towards zero. An integer over zero is a ValueError. Source: Div-14."""
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    if a.size and not b.all():
        raise ValueError(f"integer division by zero: the divisor of shape {list(b.shape)} holds a 0")
    return np.floor_divide(np.subtract(a, np.fmod(a, b)), b)


for _name, _kernel in {
    "Add": of_two(np.add),
    "Sub": of_two(np.subtract),
    "Mul": of_two(np.multiply),
    "Div": _divide,
}.items():
    op(_name, versions=(7, 13, 14))(_kernel)
    op(_name, versions=(1, 6))(with_axis_attribute(_kernel))

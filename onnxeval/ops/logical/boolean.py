"""And, Or, Xor and Not. Version 1 of the first three has `axis` and `broadcast` instead of NumPy's broadcasting."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._broadcast import with_axis_attribute
from onnxeval.ops._elementwise import of_two
from onnxeval.registry import op

for _name, _ufunc in {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
    _kernel = of_two(_ufunc)
    op(_name, versions=(7,))(_kernel)
    op(_name, versions=(1,))(with_axis_attribute(_kernel))


@op("Not", versions=(1,))
def logical_not(x: Tensor) -> Tensor:
    """The negation of each element. Source: Not-1."""
    return np.logical_not(x)

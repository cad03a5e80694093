"""Sum, Min, Max and Mean of any number of tensors.

Versions 1 and 6 want equal shapes, later ones broadcast as NumPy does. A NaN in any of the tensors is in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._broadcast import same_shapes
from onnxeval.ops._precision import in_float32
from onnxeval.registry import op


def _folded(ufunc: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def kernel(*xs: Tensor) -> Tensor:
        return reduce(ufunc, xs)

    return kernel


def _mean(*xs: Tensor) -> Tensor:
    return np.divide(reduce(np.add, xs), len(xs))


def _of_equal_shapes(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def checked(*xs: Tensor) -> Tensor:
        same_shapes(*xs)
        return kernel(*xs)

    return checked


for _name, _versions, _kernel in (
    ("Sum", (8, 13), in_float32(_folded(np.add))),
    ("Min", (8, 12, 13), _folded(np.minimum)),
    ("Max", (8, 12, 13), _folded(np.maximum)),
    ("Mean", (8, 13), in_float32(_mean)),
):
    op(_name, versions=_versions)(_kernel)
    op(_name, versions=(1, 6))(_of_equal_shapes(_kernel))

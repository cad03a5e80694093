"""The type of the parameter ``allocate``, which the executor supplies to kernels that name it."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import DTypeLike

from onnxeval.dtypes import Tensor


class Allocate(Protocol):
    """An uninitialised array of that shape and dtype, like ``np.empty``, refused before too much memory is taken."""

    def __call__(self, shape: tuple[int, ...], dtype: DTypeLike, /) -> Tensor: ...

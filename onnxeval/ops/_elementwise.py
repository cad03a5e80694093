"""Kernels that are one NumPy function of whole arrays: nothing but the call stands between."""

from __future__ import annotations

from collections.abc import Callable

from onnxeval.dtypes import Tensor


def of_one(ufunc: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The kernel of one tensor that applies ``ufunc`` to each element."""

    def kernel(x: Tensor) -> Tensor:
        return ufunc(x)

    return kernel


def of_two(ufunc: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """The kernel of two tensors that applies ``ufunc`` to each pair of elements, broadcasting as NumPy does."""

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return ufunc(a, b)

    return kernel

"""What the normalisations share: means and variances over axes, the precision they are taken in, and the scale."""

from __future__ import annotations

import math

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType, Tensor, dtype_of, name_of

#: What a first stage may be computed in where the text names no list.
_STASH: tuple[DType, ...] = (np.dtype(np.float16), BFLOAT16, np.dtype(np.float32), np.dtype(np.float64))


def accumulator(*dtypes: DType) -> DType:
    """The type sums are taken in: float64 where one of the types is, else float32."""
    return np.dtype(np.float64) if np.dtype(np.float64) in dtypes else np.dtype(np.float32)


def stash_dtype(stash_type: int, allowed: tuple[DType, ...] = _STASH) -> DType:
    """The dtype that ``stash_type`` names. Raises ValueError where it is none of ``allowed``."""
    dtype = dtype_of(stash_type)
    if dtype not in allowed:
        raise ValueError(f"stash_type {stash_type} is {name_of(dtype)}, expected {' or '.join(map(name_of, allowed))}")
    return dtype


def mean_over(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The mean over ``axes``, which stay with size 1; accumulated in float32 at least, NaN over no elements."""
    count = math.prod(x.shape[axis] for axis in axes)
    total = x.sum(axis=axes, keepdims=True, dtype=accumulator(x.dtype))
    return np.asarray(total / count if count else np.full_like(total, np.nan)).astype(x.dtype, copy=False)


def centred(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean, mean, population variance) over ``axes``, which stay with size 1; all in the type of ``x``."""
    mean = mean_over(x, axes)
    deviation = x - mean
    return deviation, mean, mean_over(deviation * deviation, axes)


def standardised(x: Tensor, axes: tuple[int, ...], epsilon: float) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over ``axes``, in the type of ``x``."""
    deviation, _, variance = centred(x, axes)
    deviation /= np.sqrt(variance + x.dtype.type(epsilon))
    return deviation


def per_channel(parameter: Tensor, name: str, channels: int, rank: int) -> Tensor:
    """A vector of ``channels`` elements, shaped to broadcast along axis 1 of a tensor of ``rank``."""
    if parameter.shape != (channels,):
        raise ValueError(f"{name} has shape {list(parameter.shape)}, expected [{channels}]")
    return parameter.reshape((channels,) + (1,) * (rank - 2))


def require_broadcast(parameter: Tensor, name: str, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``parameter`` broadcasts to ``shape`` without widening it."""
    pairs = zip(reversed(parameter.shape), reversed(shape), strict=False)
    if parameter.ndim > len(shape) or any(size not in (1, wanted) for size, wanted in pairs):
        raise ValueError(f"{name} of shape {list(parameter.shape)} does not broadcast to the input's {list(shape)}")

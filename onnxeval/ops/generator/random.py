"""RandomUniform, RandomNormal, their Like forms, Multinomial and Bernoulli: numbers drawn at random.

A node with a ``seed`` has a generator of its own, seeded by the bits of that float32: it draws the same numbers in
every run with the same NumPy, whatever ran before it. Without one it draws from the generator of the run. The standard
prescribes no algorithm, so the numbers are not those of other evaluators.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxeval.dtypes import DType, Tensor, dtype_of, is_float, is_integer, name_of
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._cast import convert
from onnxeval.registry import op

_FLOAT64 = np.dtype(np.float64)


@op("RandomUniform", versions=(1, 22))
def random_uniform(
    *,
    shape: tuple[int, ...],
    dtype: int,
    low: float,
    high: float,
    seed: float | None,
    rng: np.random.Generator,
    allocate: Allocate,
) -> Tensor:
    """Numbers between ``low`` and ``high``, of that shape and float type. Source: RandomUniform-22."""
    return _uniform(shape, dtype_of(dtype), low, high, _generator(seed, rng), allocate)


@op("RandomUniformLike", versions=(1, 22))
def random_uniform_like(
    x: Tensor,
    *,
    dtype: int | None,
    low: float,
    high: float,
    seed: float | None,
    rng: np.random.Generator,
    allocate: Allocate,
) -> Tensor:
    """As `random_uniform`, of the shape of ``x``, and of its type without ``dtype``. Source: RandomUniformLike-22."""
    return _uniform(x.shape, _type(x, dtype), low, high, _generator(seed, rng), allocate)


@op("RandomNormal", versions=(1, 22))
def random_normal(
    *,
    shape: tuple[int, ...],
    dtype: int,
    mean: float,
    scale: float,
    seed: float | None,
    rng: np.random.Generator,
    allocate: Allocate,
) -> Tensor:
    """Normal numbers of that mean and standard deviation, of that shape and float type. Source: RandomNormal-22."""
    return _normal(shape, dtype_of(dtype), mean, scale, _generator(seed, rng), allocate)


@op("RandomNormalLike", versions=(1, 22))
def random_normal_like(
    x: Tensor,
    *,
    dtype: int | None,
    mean: float,
    scale: float,
    seed: float | None,
    rng: np.random.Generator,
    allocate: Allocate,
) -> Tensor:
    """As `random_normal`, of the shape of ``x``, and of its type without ``dtype``. Source: RandomNormalLike-22."""
    return _normal(x.shape, _type(x, dtype), mean, scale, _generator(seed, rng), allocate)


@op("Bernoulli", versions=(15, 22))
def bernoulli(p: Tensor, *, dtype: int | None, seed: float | None, rng: np.random.Generator) -> Tensor:
    """1 with probability ``p``, else 0, of the shape of ``p``, and of its type without ``dtype``.

    ValueError where a probability is outside [0, 1]. Source: Bernoulli-22.
    """
    chances = convert(p, _FLOAT64)
    if not np.all((chances >= 0) & (chances <= 1)):
        outside = chances[~((chances >= 0) & (chances <= 1))]
        raise ValueError(f"probability {outside[0]} is outside [0, 1]")
    drawn = np.asarray(_generator(seed, rng).random(p.shape) < chances)
    return convert(drawn, _type(p, dtype))


@op("Multinomial", versions=(7, 22))
def multinomial(
    x: Tensor, *, dtype: int, sample_size: int, seed: float | None, rng: np.random.Generator, allocate: Allocate
) -> Tensor:
    """(N, classes) -> (N, sample_size): classes drawn with the probabilities whose logarithms ``x`` holds.

    The logarithms may all lack one constant a row. ValueError where ``x`` is no matrix, where a row has no class of
    finite weight or a NaN, and where ``dtype`` is no integer type. Source: Multinomial-22.
    """
    target = dtype_of(dtype)
    if not is_integer(target):
        raise ValueError(f"dtype {name_of(target)} is not an integer type")
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(f"the input is of shape {list(x.shape)}, expected a matrix with at least one column")
    logs = convert(x, _FLOAT64)
    greatest = logs.max(axis=1, keepdims=True)
    if not np.all(np.isfinite(greatest)):
        raise ValueError(f"a row has no class of finite weight: its greatest logarithm is {greatest.min()}")
    bounds = np.cumsum(np.exp(logs - greatest), axis=1)
    positions = _drawn((x.shape[0], sample_size), _generator(seed, rng).random, allocate)
    positions *= bounds[:, -1:]
    classes = np.empty(positions.shape, np.int64)
    for row, position in enumerate(positions):
        classes[row] = np.searchsorted(bounds[row], position, side="right")
    return convert(classes, target)


def _uniform(
    shape: tuple[int, ...], dtype: DType, low: float, high: float, generator: np.random.Generator, allocate: Allocate
) -> Tensor:
    if not low <= high:
        raise ValueError(f"low {low} is not below high {high}")
    numbers = _drawn(shape, generator.random, allocate)
    return convert(low + numbers * (high - low), _float_type(dtype))


def _normal(
    shape: tuple[int, ...], dtype: DType, mean: float, scale: float, generator: np.random.Generator, allocate: Allocate
) -> Tensor:
    if not scale >= 0:
        raise ValueError(f"scale {scale} is negative")
    numbers = _drawn(shape, generator.standard_normal, allocate)
    return convert(mean + numbers * scale, _float_type(dtype))


def _drawn(shape: tuple[int, ...], draw: Callable[..., object], allocate: Allocate) -> Tensor:
    if min(shape, default=0) < 0:
        raise ValueError(f"shape {list(shape)} has a negative size")
    numbers = allocate(shape, _FLOAT64)
    draw(out=numbers)
    return numbers


def _generator(seed: float | None, rng: np.random.Generator) -> np.random.Generator:
    return rng if seed is None else np.random.default_rng(int(np.float32(seed).view(np.uint32)))


def _type(x: Tensor, dtype: int | None) -> DType:
    return x.dtype if dtype is None else dtype_of(dtype)


def _float_type(dtype: DType) -> DType:
    if not is_float(dtype) or dtype.itemsize < 2:
        raise ValueError(f"random numbers of type {name_of(dtype)} are not defined")
    return dtype

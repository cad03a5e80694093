"""Adagrad, Adam and Momentum: one step of a gradient descent for any number of tensors.

The tensors come first, then their gradients, then what each algorithm accumulates; the results are in the same order
without the gradients. Each result has the type of its tensor.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._broadcast import same_shapes
from onnxeval.ops._scalar import scalar
from onnxeval.registry import op

_DOMAIN = "ai.onnx.preview.training"


@op("Adagrad", domain=_DOMAIN, versions=(1,))
def adagrad(
    R: Tensor, T: Tensor, *tensors: Tensor, norm_coefficient: float, decay_factor: float, epsilon: float
) -> tuple[Tensor, ...]:
    """(rate, count, X..., gradients..., squared gradients...) -> (X..., squared gradients...).

    Raises ValueError where the tensors do not come in threes of one shape. Source: Adagrad-1.
    """
    rate = float(np.float64(scalar(R, name="R")) / (1 + scalar(T, name="T") * decay_factor))

    def step(x: Tensor, gradient: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
        regularized = norm_coefficient * x + gradient
        squares = squares + regularized * regularized
        return x - rate * regularized / (np.sqrt(squares) + epsilon), squares

    return _in_groups([step(*group) for group in _groups(tensors, 3)])


@op("Adam", domain=_DOMAIN, versions=(1,))
def adam(
    R: Tensor,
    T: Tensor,
    *tensors: Tensor,
    alpha: float,
    beta: float,
    norm_coefficient: float,
    norm_coefficient_post: float,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """(rate, count, X..., gradients..., momenta..., squared gradients...) -> (X..., momenta..., squared gradients...).

    Raises ValueError where the tensors do not come in fours of one shape. Source: Adam-1.
    """
    rate, count = scalar(R, name="R"), scalar(T, name="T")
    if count > 0:
        rate = float(rate * np.sqrt(1 - np.float64(beta) ** count) / (1 - np.float64(alpha) ** count))

    def step(x: Tensor, gradient: Tensor, momentum: Tensor, squares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        regularized = norm_coefficient * x + gradient
        momentum = alpha * momentum + (1 - alpha) * regularized
        squares = beta * squares + (1 - beta) * regularized * regularized
        moved = x - rate * momentum / (np.sqrt(squares) + epsilon)
        return (1 - norm_coefficient_post) * moved, momentum, squares

    return _in_groups([step(*group) for group in _groups(tensors, 4)])


@op("Momentum", domain=_DOMAIN, versions=(1,))
def momentum(
    R: Tensor, T: Tensor, *tensors: Tensor, alpha: float, beta: float, norm_coefficient: float, mode: str
) -> tuple[Tensor, ...]:
    """(rate, count, X..., gradients..., momenta...) -> (X..., momenta...), ``mode`` "standard" or "nesterov".

    Raises ValueError for another mode and where the tensors do not come in threes of one shape. Source: Momentum-1.
    """
    if mode not in ("standard", "nesterov"):
        raise ValueError(f"mode {mode!r} is neither 'standard' nor 'nesterov'")
    rate = scalar(R, name="R")
    weight = beta if scalar(T, name="T") > 0 else 1.0

    def step(x: Tensor, gradient: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
        regularized = norm_coefficient * x + gradient
        velocity = alpha * velocity + weight * regularized
        direction = velocity if mode == "standard" else regularized + alpha * velocity
        return x - rate * direction, velocity

    return _in_groups([step(*group) for group in _groups(tensors, 3)])


def _groups(tensors: tuple[Tensor, ...], size: int) -> list[tuple[Tensor, ...]]:
    """The tensors that belong to each X: its own, then one of each list that follows."""
    if not tensors or len(tensors) % size:
        raise ValueError(f"{len(tensors)} tensors are given, expected a multiple of {size}")
    count = len(tensors) // size
    groups = [tensors[first::count] for first in range(count)]
    for group in groups:
        same_shapes(*group)
    return groups


def _in_groups(results: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """All the first results, then all the second ones, and so on."""
    return tuple(tensor for kind in zip(*results, strict=True) for tensor in kind)

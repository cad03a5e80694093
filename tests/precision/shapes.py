"""How one input is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Input:
    """A name for the test's, and what makes the array of a generator."""

    name: str
    make: Callable[[np.random.Generator], np.ndarray]

    def __call__(self, draw: np.random.Generator) -> np.ndarray:
        return np.asarray(self.make(draw))


def normal(*shape: int, scale: float = 1.0) -> Input:
    """Normally distributed numbers."""
    return Input(str(list(shape)), lambda draw: draw.standard_normal(shape).astype(np.float32) * np.float32(scale))


def uniform(low: float, high: float, *shape: int) -> Input:
    return Input(str(list(shape)), lambda draw: draw.uniform(low, high, shape).astype(np.float32))


def positive(*shape: int) -> Input:
    """Numbers well above zero."""
    return Input(str(list(shape)), lambda draw: draw.uniform(0.5, 2, shape).astype(np.float32))

"""Activations as the compiled kernels number them."""

from __future__ import annotations

import math
from enum import IntEnum, auto
from typing import NamedTuple


class Kind(IntEnum):
    """In the order of ActivationKind in kernels.h."""

    CLIP = 0
    LEAKY_RELU = auto()
    HARD_SIGMOID = auto()
    HARD_SWISH = auto()
    SIGMOID = auto()
    SILU = auto()
    TANH = auto()
    GELU = auto()
    GELU_TANH = auto()
    ERF = auto()
    EXP = auto()
    SOFTPLUS = auto()
    MISH = auto()
    ELU = auto()
    ABSOLUTE = auto()
    NEGATIVE = auto()
    ROOT = auto()
    RECIPROCAL = auto()
    SQUARE = auto()
    ROUND_FLOAT16 = auto()
    ROUND_BFLOAT16 = auto()


class Activation(NamedTuple):
    """What is applied to a result before it is stored: the last arguments of a compiled kernel."""

    kind: Kind
    alpha: float = 0.0
    beta: float = 0.0


IDENTITY = Activation(Kind.CLIP, -math.inf, math.inf)
RELU = Activation(Kind.CLIP, 0.0, math.inf)

"""BitShift and the bitwise operators on integers."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._elementwise import of_two
from onnxeval.registry import op


@op("BitShift", versions=(11, 28))
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    """Move the bits of x by y places to the "LEFT" or the "RIGHT"; the sign fills from the left.

    A shift that is negative or reaches the type's width leaves 0, or -1 of a negative number shifted right (the text
    says so since 28, where signed types come in). Raises ValueError for another ``direction``. Source: BitShift-28.
    """
    match direction:
        case "LEFT":
            return np.left_shift(x, y)
        case "RIGHT":
            return np.right_shift(x, y)
        case _:
            raise ValueError(f"direction {direction!r} is neither 'LEFT' nor 'RIGHT'")


for _name, _ufunc in {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}.items():
    op(_name, versions=(18,))(of_two(_ufunc))


@op("BitwiseNot", versions=(18,))
def bitwise_not(x: Tensor) -> Tensor:
    """Each bit flipped. Source: BitwiseNot-18."""
    return np.invert(x)

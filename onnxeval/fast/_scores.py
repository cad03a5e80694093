"""What becomes of scores in the compiled kernels of classic machine learning, and what rows they take."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import STRING, Tensor
from onnxeval.fast._checks import contiguous
from onnxeval.ops._allocate import Allocate

_TAKEN = tuple(np.dtype(kind) for kind in (np.float32, np.float64, np.int32, np.int64))


class Complement(IntEnum):
    """What a lone score gets before it; in the order of ml.h."""

    NONE = 0
    TO_ONE = auto()
    TO_ZERO = auto()


class Choice(IntEnum):
    """How a class is chosen; in the order of ml.h."""

    NONE = 0
    GREATEST = auto()
    POSITIVE = auto()
    MOST_WINS = auto()


#: post_transform -> its number in ml.h; others are left to the readable kernels.
TRANSFORMS = {"NONE": 0, "SOFTMAX": 1, "LOGISTIC": 2, "SOFTMAX_ZERO": 3}

#: What makes 1 of scores above 0 and -1 of others.
SIDE = 4


class Ending(NamedTuple):
    """What becomes of the ``width`` scores of a row, see ml.h; without a choice there are no classes."""

    width: int
    base: Tensor | None
    transform: int
    complement: Complement = Complement.NONE
    choice: Choice = Choice.NONE
    labels: Tensor | None = None

    def run(self, compute: Any, rows: int, dtype: Any, allocate: Allocate) -> Any:
        """The results for so many rows; ``compute`` is given what all kernels that make scores take last."""
        scores = allocate((rows, self.width + (self.complement is not Complement.NONE)), np.dtype(dtype))
        if self.labels is None:
            compute(self.base, self.complement, self.choice, self.transform, None, None, scores)
            return scores
        chosen = allocate((rows,), np.dtype(np.int64))
        numbers = None if self.labels.dtype == STRING else self.labels
        compute(self.base, self.complement, self.choice, self.transform, numbers, chosen, scores)
        return chosen if numbers is not None else self.labels[chosen], scores


def table_of(x: Tensor) -> Tensor | None:
    """The rows of an input, contiguous; None where the compiled kernels do not take them."""
    if type(x) is not np.ndarray or x.dtype not in _TAKEN or x.ndim not in (1, 2) or not x.shape[-1]:
        return None
    return contiguous(x.reshape(-1, x.shape[-1])) if x.flags.aligned else None


def doubles_or_none(values: Tensor) -> Tensor | None:
    """What is added to scores; None where there is nothing."""
    return np.ascontiguousarray(values, np.float64) if values.size else None

"""Other axes for the same elements: a view where there is one, else a copy in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import replayable
from onnxeval.fast._checks import contiguous
from onnxeval.registry import Kernel


def reshaping(shape: tuple[int, ...]) -> Kernel:
    """What gives inputs of one shape that other one."""
    copies: dict[tuple[int, ...], bool] = {}  # strides -> whether no view has the elements in their order

    @replayable
    def reshaped(x: Tensor, *_: Any, **__: Any) -> Tensor:
        if not x.flags.c_contiguous and x.strides not in copies:
            copies[x.strides] = not np.may_share_memory(x.reshape(shape), x)
        if x.flags.c_contiguous or not copies[x.strides]:
            return x.reshape(shape)
        return contiguous(x).reshape(shape)

    return reshaped

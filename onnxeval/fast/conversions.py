"""Cast between plain numbers, and Where of any type but strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor, dtype_of
from onnxeval.fast import replaces, replayable
from onnxeval.fast._cast import converted_to
from onnxeval.fast._checks import TYPES, bits, common_shape, is_movable, is_plain
from onnxeval.fast.engine import native
from onnxeval.ops._cast import ROUND_MODES
from onnxeval.ops.tensor.cast import cast
from onnxeval.ops.tensor.choose import where
from onnxeval.registry import Kernel

#: Its number in arrays.h.
_WHERE = 13

_BOOL = np.dtype(bool)


@replaces(where)
def bind_where(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """Where."""
    kernels = native()
    assert kernels is not None

    @replayable
    def chosen(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        suits = is_plain(condition, _BOOL) and is_movable(x) and is_movable(y) and x.dtype == y.dtype
        shape = common_shape(condition.shape, x.shape, y.shape) if suits and x.itemsize <= 8 else None
        if shape is None or not (x.flags.aligned and y.flags.aligned):
            return where(condition, x, y)
        result = empty(shape, x.dtype)
        kernels.apply(_WHERE, 0, 0, bits(result), (condition, bits(x), bits(y)))
        return result

    return chosen


@replaces(cast)
def bind_cast(_constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """Cast between numbers of 8, 32 and 64 bits and bool, and between float32 and 16-bit floats."""
    kernels = native()
    assert kernels is not None
    if attributes.get("round_mode", "up") not in ROUND_MODES:
        return None
    target = dtype_of(attributes["to"])
    if target not in TYPES:
        return None

    @replayable
    def converted(x: Tensor, **given: Any) -> Tensor:
        result = converted_to(x, target)
        return cast(x, **given) if result is None else result

    return converted

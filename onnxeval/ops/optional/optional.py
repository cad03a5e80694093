"""Optional, OptionalGetElement and OptionalHasElement: a value that may be missing.

A filled optional flows as the value itself. Since version 18 that value need not come from an optional, and
OptionalHasElement may lack its input.
"""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.registry import op
from onnxeval.values import EmptyOptional, Value, ValueType


@op("Optional", versions=(15, 28))
def optional(x: Value, *, type: ValueType | None) -> Value:
    """The optional that holds ``x``, or an empty one for values of ``type``. Source: Optional-28.

    ValueError where there is neither.
    """
    if x is not None:
        return x
    if type is None:
        raise ValueError("neither an input nor the attribute type is given")
    return EmptyOptional(type)


@op("OptionalGetElement", versions=(15, 18, 28))
def optional_get_element(x: Value) -> Value:
    """What the optional holds; ValueError where that is nothing. Source: OptionalGetElement-28."""
    if isinstance(x, EmptyOptional):
        raise ValueError("the optional is empty")
    return x


@op("OptionalHasElement", versions=(15, 18, 28))
def optional_has_element(x: Value) -> Tensor:
    """Whether there is a value, a bool of rank 0. Source: OptionalHasElement-28."""
    return np.array(x is not None and not isinstance(x, EmptyOptional))

"""16-bit floats on the compiled kernels of float32: made wide before them, their results rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxeval.dtypes import BFLOAT16, DType, Tensor
from onnxeval.fast._cast import converted_to
from onnxeval.fast._checks import FLOAT32
from onnxeval.registry import Kernel

_FLOAT16 = np.dtype(np.float16)
#: NumPy's numbers of the two types, and of the types that may stand beside one of them.
_HALVES = {_FLOAT16.num: _FLOAT16, BFLOAT16.num: BFLOAT16}
_OTHERS = frozenset(np.dtype(kind).num for kind in "?bBhHiIlLqQ")


def half_of(inputs: Sequence[Any]) -> DType | None:
    """The 16-bit type of which all floats among the inputs are; None where that is not one."""
    found = None
    for x in inputs:
        if type(x) is np.ndarray:
            number = x.dtype.num
            if number in _HALVES:
                if found is not None and found != number:
                    return None
                found = number
            elif number not in _OTHERS:
                return None
    return None if found is None else _HALVES[found]


def for_halves(
    wide: Kernel, constants: Sequence[Tensor | None], known: Sequence[Tensor | None], rounded: int
) -> Kernel:
    """What runs ``wide``, made for ``known`` in the place of ``constants``, on 16-bit floats as on float32.

    The first results, ``rounded`` of them, are of the type of the inputs.
    """
    places = [place for place, x in enumerate(known) if x is not constants[place]]

    def through_float32(*inputs: Any, **given: Any) -> Any:
        half = half_of(inputs)
        if half is None:
            return wide(*inputs, **given)
        values = [converted(x, FLOAT32) for x in inputs]
        for place in places:
            if inputs[place] is constants[place]:
                values[place] = known[place]
        results = wide(*values, **given)
        if type(results) is tuple:
            return (*[converted(x, half) for x in results[:rounded]], *results[rounded:])
        return converted(results, half)

    through_float32.__name__ = getattr(wide, "__name__", through_float32.__name__)
    vars(through_float32).update(vars(wide))  # whether it is replayable, as well
    return through_float32


def or_else(quick: Kernel, usual: Kernel) -> Kernel:
    """What runs ``quick`` on 16-bit floats, ``usual`` on anything else."""

    def chosen(*inputs: Any, **given: Any) -> Any:
        return (usual if half_of(inputs) is None else quick)(*inputs, **given)

    return chosen


def converted(x: Any, dtype: DType) -> Any:
    """A float of 16 or 32 bits as one of another of these types; anything else as it is."""
    if isinstance(x, np.generic):  # of an operation on arrays whose result has rank 0
        x = np.asarray(x)
    if type(x) is not np.ndarray or x.dtype.num not in (FLOAT32.num, *_HALVES) or x.dtype == dtype:
        return x
    result = converted_to(x, dtype)
    return x.astype(dtype) if result is None else result

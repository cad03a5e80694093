"""What operators without a schema say of their inputs' element types, and where they are registered."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from onnxeval.dtypes import BFLOAT16, STRING, DType, name_of
from onnxeval.registry import InputTypes, op, signature_of
from onnxeval.values import type_of, type_string

K = TypeVar("K", bound=Callable[..., Any])

MICROSOFT = "com.microsoft"

FLOAT16: DType = np.dtype(np.float16)
FLOAT32: DType = np.dtype(np.float32)
FLOAT64: DType = np.dtype(np.float64)
INT32: DType = np.dtype(np.int32)
INT64: DType = np.dtype(np.int64)
INT8: DType = np.dtype(np.int8)
UINT8: DType = np.dtype(np.uint8)
BOOL: DType = np.dtype(np.bool_)

FLOATS = (FLOAT32, FLOAT16, BFLOAT16)
EIGHT_BITS = (INT8, UINT8)
FLOATS_AND_DOUBLE = (*FLOATS, FLOAT64)
NUMBERS = (*FLOATS_AND_DOUBLE, *(np.dtype(f"{sign}int{bits}") for bits in (8, 16, 32, 64) for sign in ("", "u")))
ANY = (*NUMBERS, BOOL, STRING, np.dtype(np.complex64), np.dtype(np.complex128))


def microsoft_op(
    op_type: str, letters: str, *, outputs: int | None = None, **allowed: Collection[DType]
) -> Callable[[K], K]:
    """Register version 1 of an operator of com.microsoft and check the types of its inputs at each call.

    ``letters`` has one type variable for each input, which ``allowed`` explains; inputs of one letter have one type.
    The last letter serves all further inputs. ``outputs`` is how many there are at most, where the kernel's annotation
    does not tell.
    """

    def register(kernel: K) -> K:
        described = typed(letters, **allowed)(kernel)
        described.most_outputs = outputs  # type: ignore[attr-defined]  # a function has any attribute that is set
        return op(op_type, domain=MICROSOFT, versions=(1,))(described)

    return register


def typed(letters: str, **allowed: Collection[DType]) -> Callable[[K], K]:
    """Let a kernel raise TypeError for inputs whose types are not those of `microsoft_op`."""
    types = InputTypes(letters, allowed)

    def checked(kernel: K) -> K:
        names = signature_of(kernel).positional

        @wraps(kernel)
        def called(*inputs: Any, **attributes: Any) -> Any:
            bound: dict[str, int] = {}
            for place, x in enumerate(inputs):
                if x is None:
                    continue
                letter = types.letter(place)
                if not isinstance(x, np.ndarray) or x.dtype not in allowed[letter]:
                    given = type_string(type_of(x)) if not isinstance(x, np.ndarray) else name_of(x.dtype)
                    expected = ", ".join(map(name_of, allowed[letter]))
                    raise TypeError(f"input {_label(names, place)} is {given}, allowed: {expected}")
                first = bound.setdefault(letter, place)
                if x.dtype != inputs[first].dtype:
                    raise TypeError(
                        f"input {_label(names, place)} is {name_of(x.dtype)}, but {_label(names, first)} is "
                        f"{name_of(inputs[first].dtype)}: both have one type"
                    )
            return kernel(*inputs, **attributes)

        called.input_types = types  # type: ignore[attr-defined]  # a function has any attribute that is set
        return cast("K", called)

    return checked


def _label(names: tuple[str, ...], place: int) -> str:
    return f'{place} "{names[place]}"' if place < len(names) else str(place)

"""How far two engines' outputs lie apart: numbers, not a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxeval.dtypes import STRING, Tensor, is_float, is_integer, name_of
from onnxeval.values import Value, shape_text


@dataclass(frozen=True, slots=True)
class Difference:
    """One output of two engines.

    ``largest`` is the largest absolute difference of two numbers, ``scale`` the largest magnitude in the other engine's
    output. ``unlike`` counts elements that are no two finite numbers and not the same, ``of`` all. ``reason`` says why
    the two cannot be compared, or is "".
    """

    name: str
    largest: float = 0.0
    scale: float = 0.0
    unlike: int = 0
    of: int = 0
    reason: str = ""

    @property
    def relative(self) -> float:
        """The largest difference in terms of the output's own scale."""
        return self.largest / self.scale if self.scale else self.largest


def differences(ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> list[Difference]:
    """One for each output of either; sequences and maps count as one output of all their tensors."""
    found = []
    for name in dict.fromkeys((*ours, *theirs)):
        if name in ours and name in theirs:
            found.append(_difference(name, ours[name], theirs[name]))
        else:
            found.append(Difference(name, reason="only one of the two has it"))
    return found


def _difference(name: str, ours: Value, theirs: Value) -> Difference:
    try:
        pairs = list(_pairs(ours, theirs))
    except ValueError as error:
        return Difference(name, reason=str(error))
    with np.errstate(all="ignore"):
        parts = [_compared(name, one, other) for one, other in pairs]
    return Difference(
        name,
        max((part.largest for part in parts), default=0.0),
        max((part.scale for part in parts), default=0.0),
        sum(part.unlike for part in parts),
        sum(part.of for part in parts),
    )


def _pairs(ours: Value, theirs: Value) -> Iterator[tuple[Tensor, Tensor]]:
    """The tensors of two values side by side. Raises ValueError where the values are not of one form."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if ours.keys() != theirs.keys():
            raise ValueError("the maps have different keys")
        for key in ours:
            yield from _pairs(ours[key], theirs[key])
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            raise ValueError(f"sequences of {len(ours)} and {len(theirs)} values")
        for one, other in zip(ours, theirs, strict=True):
            yield from _pairs(one, other)
    elif ours is None or theirs is None:
        if ours is not theirs:
            raise ValueError("one of the two is empty")
    else:
        yield _alike(_as_tensor(ours), _as_tensor(theirs), bare=not isinstance(theirs, np.ndarray))


def _as_tensor(value: Any) -> Tensor:
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


def _alike(ours: Tensor, theirs: Tensor, *, bare: bool) -> tuple[Tensor, Tensor]:
    """Both, where dtype and shape are the same; what came as a number of Python's has no dtype of its own."""
    if bare and STRING not in (ours.dtype, theirs.dtype):
        theirs = theirs.astype(ours.dtype)
    one, other = (f"{name_of(x.dtype)}{shape_text(x.shape)}" for x in (ours, theirs))
    if one != other:
        raise ValueError(f"{one} and {other}")
    return ours, theirs


def _compared(name: str, ours: Tensor, theirs: Tensor) -> Difference:
    if ours.dtype.kind != "c" and not is_float(ours.dtype) and not is_integer(ours.dtype):
        return Difference(name, unlike=int(np.count_nonzero(ours != theirs)), of=ours.size)
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    finite = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return Difference(
        name,
        float(np.abs(a - b).max(initial=0.0, where=finite)),
        float(np.abs(b).max(initial=0.0, where=np.isfinite(b))),
        int(np.count_nonzero(~finite & ~same)),
        ours.size,
    )

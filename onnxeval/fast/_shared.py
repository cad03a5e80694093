"""What is made of constants for the compiled kernels, made once however many steps and plans read them.

The two branches of an If, or the plans for other outputs of a model, have the same weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

H = TypeVar("H")

_HELD: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


def shared(make: Callable[..., H], *constants: object) -> H:
    """``make(*constants)``, or what that gave for the same objects before, where anything still holds it.

    What ``make`` gives has to hold the constants, as they are told apart by their identities.
    """
    key = (make, *map(id, constants))
    held: H | None = _HELD.get(key)
    if held is None:
        held = _HELD[key] = make(*constants)
    return held

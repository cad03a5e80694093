"""The operators of a chain, as what runs several of them at once sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from onnxeval.registry import Kernel

#: Where an operator reads: a place among the inputs of its chain, or one of these.
SO_FAR, ABSENT = -1, -2


class Part(Protocol):
    """One operator: ``sources`` are places among the inputs of the chain, or one of the above."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def sources(self) -> tuple[int, ...]: ...
    @property
    def attributes(self) -> Mapping[str, Any]: ...

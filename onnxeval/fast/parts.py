"""The operators of a chain, as what runs several of them at once sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from onnxeval.dtypes import Tensor
from onnxeval.registry import Kernel

#: Where an operator reads: a place among the inputs of its chain, or one of these.
SO_FAR, ABSENT = -1, -2


def normalises_channels(attributes: Mapping[str, Any]) -> bool:
    """Whether a BatchNormalization of any version is in inference, by channel: to each it does what its inputs say."""
    is_training = attributes.get("training_mode") or not attributes.get("is_test", 1)
    return not is_training and bool(attributes.get("spatial", 1))


class Part(Protocol):
    """One operator: ``sources`` are places among the inputs of the chain, or one of the above."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def sources(self) -> tuple[int, ...]: ...
    @property
    def attributes(self) -> Mapping[str, Any]: ...


class Product(Protocol):
    """What computes a product, with something added and an activation: made for its constant inputs and attributes.

    With ``fast_math`` it may be less exact.
    """

    #: Whether its last axis are the columns of a matrix, to which a bias may be added.
    has_columns: bool

    def __init__(self, constants: Sequence[Tensor | None], attributes: Mapping[str, Any], fast_math: bool) -> None: ...

    def __call__(self, *inputs: Tensor | None, **given: Any) -> Tensor | None: ...

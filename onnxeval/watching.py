"""What runs to their end show of a plan's values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.passes import decided_by_shapes, decided_by_types
from onnxeval.plan import Plan, Step
from onnxeval.values import TensorType, Value

#: Bytes of a value that is worth being a constant.
LARGEST = 1 << 16


@dataclass(slots=True, eq=False)
class Watched:
    """A plan for one kind of inputs, and what is so for all inputs of this kind."""

    plan: Plan
    types: dict[str, TensorType] = field(default_factory=dict)
    values: dict[str, Tensor] = field(default_factory=dict)
    typed: set[str] = field(default_factory=set)  # tensors of always the same element type, if not shape

    def note(self, step: Step, outputs: tuple[Value, ...]) -> None:
        """Take in what one step made."""
        if decided_by_types(step, self.typed):
            self.typed.update(
                name for name, value in zip(step.outputs, outputs, strict=True) if name and type(value) is np.ndarray
            )
        values_decided, shapes_decided = decided_by_shapes(step, self.values, self.types)
        if not shapes_decided:
            return
        for name, value in zip(step.outputs, outputs, strict=True):
            if name and isinstance(value, np.ndarray):
                self.types[name] = TensorType(value.dtype, value.shape)
                if values_decided:
                    self.keep(name, value)

    def keep(self, name: str, value: Tensor) -> None:
        """Take in a value itself: a copy, as the caller may write into feeds and results."""
        if value.nbytes <= LARGEST:
            own = value.copy()
            own.flags.writeable = False
            self.values[name] = own

    def know(self, name: str, value: Tensor) -> None:
        """Take in the type of what runs begin with."""
        self.types[name] = TensorType(value.dtype, value.shape)
        self.typed.add(name)

"""Shapes and numbers of values by name, followed step by step."""

from __future__ import annotations

from collections.abc import Container, Mapping

from onnxeval.dtypes import Tensor
from onnxeval.passes._open_numbers import NUMBERS
from onnxeval.passes._open_shapes import RULES
from onnxeval.passes._rewrite import op_type
from onnxeval.passes._sizes import BOOL, INT64, MOST_NUMBERS, Numbers, Shape, View
from onnxeval.plan import Step

#: What sizes are read off with.
SOURCES = frozenset({"Shape", "Size"})


class Facts:
    """Shapes and numbers by name, as the steps of a plan are followed in their order.

    Sizes are not read off the values in ``unread``.
    """

    def __init__(
        self, shapes: Mapping[str, Shape], numbers: Mapping[str, Numbers], unread: Container[str] = ()
    ) -> None:
        self.shapes = dict(shapes)
        self.numbers = dict(numbers)
        self.unread = unread

    def add_constant(self, name: str, value: Tensor) -> None:
        """Take in a value that is the same in every run."""
        self.shapes[name] = value.shape
        if value.dtype in (INT64, BOOL) and value.ndim < 2 and value.size <= MOST_NUMBERS:
            self.numbers[name] = Numbers(value.dtype, value.ndim, tuple(value.reshape(-1).tolist()))

    def follow(self, step: Step) -> None:
        """Take in what follows of the results of a step."""
        op, view = op_type(step) or "".join(step.fused), View(step, self.shapes, self.numbers)
        rule = RULES.get(op)
        shapes = rule(view) if rule is not None else None
        for name, shape in zip(step.outputs, shapes or (), strict=False):
            if name and shape is not None:
                self.shapes[name] = shape
        compute = NUMBERS.get(op) if op not in SOURCES or step.inputs[0] not in self.unread else None
        if compute is not None and (numbers := compute(view)) is not None and len(numbers.items) <= MOST_NUMBERS:
            self.numbers[step.outputs[0]] = numbers
            self.shapes[step.outputs[0]] = (len(numbers.items),) if numbers.rank else ()

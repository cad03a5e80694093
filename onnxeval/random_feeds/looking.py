"""What a hint looks at: sizes and elements of a node's inputs and outputs, as far as they are known."""

from __future__ import annotations

from typing import Any

from onnxeval.checks.recording import Record
from onnxeval.dtypes import DType, Tensor
from onnxeval.values import Dimension, SequenceType, TensorType

Shape = tuple[int, ...]


class Looked:
    """A node, for hints."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.version = record.node.schema.key.since_version if record.node.schema is not None else 0

    def dimensions(self, place: int) -> tuple[Dimension, ...] | None:
        """The shape of an input, of which some sizes may not be known."""
        inputs = self.record.inputs
        return inputs[place].shape if place < len(inputs) else None

    def shape(self, place: int) -> Shape | None:
        """The shape of an input; None where a size is not known."""
        return _fixed(self.dimensions(place))

    def result(self, place: int = 0) -> Shape | None:
        """The shape of an output."""
        outputs = self.record.outputs
        return _fixed(outputs[place].shape) if place < len(outputs) else None

    def size(self, place: int, axis: int, default: int = 1) -> int:
        """The size of an axis of an input; the default where it is not known."""
        shape = self.dimensions(place)
        if shape is None or not -len(shape) <= axis < len(shape):
            return default
        size = shape[axis]
        return size if isinstance(size, int) else default

    def rank(self, place: int, default: int = 1) -> int:
        shape = self.dimensions(place)
        return default if shape is None else len(shape)

    def length(self, place: int) -> int:
        """The number of elements of a list that is an input; 0 where it is not known."""
        shape = self.shape(place)
        return 0 if shape is None or len(shape) != 1 else shape[0]

    def elements(self, place: int) -> Tensor | None:
        """The elements of an input; None where they are not known."""
        inputs = self.record.inputs
        return inputs[place].array if place < len(inputs) else None

    def number(self, place: int) -> float | None:
        """The one element of an input."""
        array = self.elements(place)
        return (
            float(array.reshape(-1)[0]) if array is not None and array.size == 1 and array.dtype.kind in "iuf" else None
        )

    def attribute(self, name: str, default: Any = None) -> Any:
        value = self.record.attributes.get(name)
        return default if value is None else value

    def dtype(self, place: int) -> DType | None:
        """The type of an input's elements, of a sequence those of its tensors."""
        inputs = self.record.inputs
        value_type = inputs[place].type if place < len(inputs) else None
        if isinstance(value_type, SequenceType):
            value_type = value_type.element
        return value_type.dtype if isinstance(value_type, TensorType) else None


def _fixed(shape: tuple[Dimension, ...] | None) -> Shape | None:
    if shape is None:
        return None
    sizes = tuple(size for size in shape if isinstance(size, int))
    return sizes if len(sizes) == len(shape) else None

"""Rules on what the tensors of a model hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxeval.checks.held import Tensor
from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.views import Node
from onnxeval.dtypes import BY_ELEMENT_TYPE, is_float
from onnxeval.dtypes import Tensor as Array
from onnxeval.errors import ModelError
from onnxeval.external import Files
from onnxeval.tensors import array_from

#: Elements are looked at in parts of so many, so that a large tensor is never copied.
_PART = 2**20
#: Raw data of no more bytes than this is looked at together with that of other tensors.
_SMALL = 2**14
#: Types that have neither NaN nor infinity.
_ALWAYS_FINITE = frozenset((TensorProto.FLOAT4E2M1, TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2))
_FLOATS = {n: dtype for n, dtype in BY_ELEMENT_TYPE.items() if is_float(dtype) and n not in _ALWAYS_FINITE}


@dataclass(frozen=True, slots=True)
class Weights:
    """A tensor of floats, sound in itself, of an initializer or a Constant, that may hold NaN or infinities."""

    where: str
    proto: TensorProto
    files: Files

    def parts(self) -> Iterator[tuple[int, Array]]:
        """The elements in parts, each with the place of its first; nothing where they cannot be read."""
        try:
            flat = array_from(self.proto, self.files).reshape(-1)
        except ModelError:
            return
        for start in range(0, flat.size, _PART):
            yield start, flat[start : start + _PART]


class Screen:
    """Finds the tensors that hold something else than finite numbers; many small ones are looked at at once."""

    def __init__(self) -> None:
        self._doubtful: list[Tensor] = []
        self._small: dict[int, tuple[list[Tensor], list[bytes]]] = {}

    def add(self, tensor: Tensor, raw: bytes | None) -> None:
        """Take a sound tensor, with its raw data where it has just that."""
        number, holder = tensor.proto.data_type, tensor.holder
        if number not in _FLOATS or (isinstance(holder, Node) and holder.op_type != "Constant"):
            return  # tables of ai.onnx.ml have NaN for missing values
        if raw is not None and len(raw) <= _SMALL and np.little_endian:
            together, data = self._small.setdefault(number, ([], []))
            together.append(tensor)
            data.append(raw)
        else:
            self._doubtful.append(tensor)

    def doubtful(self) -> Iterator[Weights]:
        """Those of the tensors taken that are not finite, or lie beside one that is not."""
        for number, (together, data) in self._small.items():
            if not np.isfinite(np.frombuffer(b"".join(data), _FLOATS[number])).all():
                self._doubtful += together
        for tensor in self._doubtful:
            weights = Weights(tensor.where, tensor.proto, tensor.model.files)
            if not all(np.isfinite(part).all() for _, part in weights.parts()):
                yield weights


def _found(weights: Weights, is_wanted: Callable[..., Any]) -> tuple[int, int, list[int]] | None:
    """How many elements are wanted, of how many, and the index of the first; None where there are none."""
    count, first, size = 0, -1, 0
    for start, part in weights.parts():
        size += part.size
        if np.isfinite(part).all():
            continue
        wanted = is_wanted(part)
        count += int(np.count_nonzero(wanted))
        if first < 0 and wanted.any():
            first = start + int(wanted.argmax())
    return (count, size, [int(i) for i in np.unravel_index(first, tuple(weights.proto.dims))]) if count else None


@rule("tensor/nan", "warning", Weights)
def nan(weights: Weights) -> Faults:
    """A tensor of the model holds NaN.

    Why: whatever is computed from it is NaN, too; as a rule training diverged, or a conversion overflowed.

    Mend: look for the step that made it: compare with the weights that the model was exported from.

    Example:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[1.0, float("nan")])

    Instead:
        g (float[2] x) => (float[2] y) { y = Add(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[1.0, 2.0])
    """
    if (found := _found(weights, np.isnan)) is not None:
        count, size, place = found
        yield Fault(weights.where, f"{count} of {size} elements {_are(count)} NaN, the first at {place}")


@rule("tensor/infinity", "warning", Weights)
def infinity(weights: Weights) -> Faults:
    """A tensor of the model holds infinities among other numbers. One alone is taken for a bound or a filler, and one
    beside zeros alone for a mask.

    Why: sums and products with it are infinite or NaN; as a rule a conversion to a narrower type overflowed.

    Mend: compare with the weights that the model was exported from; keep what overflows in a wider type.

    Example:
        g (float[2] x) => (float[2] y) { y = Mul(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[1.0, float("inf")])

    Instead:
        g (float[2] x) => (float[2] y) { y = Mul(x, w) }
        >>> model.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[0.0, float("-inf")])
    """
    if (found := _found(weights, np.isinf)) is not None and found[1] > 1 and not _is_mask(weights):
        count, size, place = found
        yield Fault(weights.where, f"{count} of {size} elements {_are(count)} infinite, the first at {place}")


def _is_mask(weights: Weights) -> bool:
    return not any((part[np.isfinite(part)] != 0).any() for _, part in weights.parts())


def _are(count: int) -> str:
    return "is" if count == 1 else "are"

"""Operators that hand elements on: what is wanted of their outputs is wanted of their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from onnxeval.checks.recording import Record
from onnxeval.dtypes import is_float, is_integer
from onnxeval.random_feeds.wishes import ANY, TRUTH, Wish
from onnxeval.values import TensorType

#: Operators whose outputs hold elements of these inputs as they are, all of them in their places or not.
_IN_PLACE: dict[str, tuple[int, ...]] = {
    "Cast": (0,),
    "CastLike": (0,),
    "Dropout": (0,),
    "Flatten": (0,),
    "Identity": (0,),
    "Reshape": (0,),
    "Squeeze": (0,),
    "Unsqueeze": (0,),
    "Optional": (0,),
    "OptionalGetElement": (0,),
}
_EVERY = tuple(range(64))
_MOVED: dict[str, tuple[int, ...]] = {
    "AveragePool": (0,),
    "CenterCropPad": (0,),
    "Clip": (0,),
    "Compress": (0,),
    "Concat": _EVERY,
    "ConcatFromSequence": (0,),
    "DepthToSpace": (0,),
    "Expand": (0,),
    "Gather": (0,),
    "GatherElements": (0,),
    "GatherND": (0,),
    "GlobalAveragePool": (0,),
    "GlobalMaxPool": (0,),
    "Max": _EVERY,
    "MaxPool": (0,),
    "Mean": _EVERY,
    "Min": _EVERY,
    "Pad": (0,),
    "ReduceMax": (0,),
    "ReduceMean": (0,),
    "ReduceMin": (0,),
    "Relu": (0,),
    "Resize": (0,),
    "ReverseSequence": (0,),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
    "SequenceAt": (0,),
    "SequenceConstruct": _EVERY,
    "SequenceInsert": (0, 1),
    "Slice": (0,),
    "SpaceToDepth": (0,),
    "Split": (0,),
    "SplitToSequence": (0,),
    "Tile": (0,),
    "TopK": (0,),
    "Transpose": (0,),
    "Where": (1, 2),
}
#: Operators whose results are positive where all that they take is.
_POSITIVE = frozenset({"Add", "Div", "Gemm", "MatMul", "Mul", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceSum", "Sum"})


def carried(record: Record, place: int, wanted: Sequence[Wish]) -> Wish:
    """What is wanted of an input, given what is wanted of the outputs."""
    node = record.node
    if node.domain or not wanted:
        return ANY
    op_type = node.op_type
    if op_type == "Cast" and _cast_to_truth(record):
        return TRUTH
    wish = wanted[0]
    if wish is ANY:
        return ANY
    if place in _IN_PLACE.get(op_type, ()):
        return wish
    if place in _MOVED.get(op_type, ()):
        for other in wanted[1:] if op_type == "Split" else ():
            wish = wish & other
        return wish.moved()
    if (carrier := _ARITHMETIC.get(op_type)) is not None and (found := carrier(record, place, wish)) is not None:
        return found
    if op_type in _POSITIVE and wish.low is not None and wish.low >= 0:
        high = None if wish.high is None else wish.high / 2
        return Wish(min(wish.low, high) if high is not None else wish.low, high, whole=wish.whole)
    return ANY


def _cast_to_truth(record: Record) -> bool:
    """Whether integers are made truth values of: a mask."""
    known, made = record.inputs[0].type, record.outputs[0].type
    if not isinstance(known, TensorType) or not isinstance(made, TensorType) or known.dtype is None:
        return False
    return made.dtype == np.bool_ and (is_integer(known.dtype) or is_float(known.dtype))


def _constant(record: Record, place: int) -> tuple[float, float] | None:
    """The least and the greatest element of an input that is known."""
    if place >= len(record.inputs) or (array := record.inputs[place].array) is None or not array.size:
        return None
    if array.dtype.kind not in "iuf":
        return None
    least, most = float(array.min()), float(array.max())
    return (least, most) if math.isfinite(least) and math.isfinite(most) else None


def _add(record: Record, place: int, wish: Wish) -> Wish | None:
    if (known := _constant(record, 1 - place)) is None:
        return None
    least, most = known
    low = None if wish.low is None else wish.low - least
    high = None if wish.high is None else wish.high - most
    return Wish(low, high, whole=wish.whole) if low is None or high is None or low <= high else wish.scaled(1, least)


def _subtract(record: Record, place: int, wish: Wish) -> Wish | None:
    if (known := _constant(record, 1 - place)) is None:
        return None
    if known == (1, 1) and place == 1 and wish.choices == (0, 1):
        return TRUTH  # a mask turned around
    return wish.scaled(1, -known[0]) if place == 0 else wish.scaled(-1, known[0])


def _multiply(record: Record, place: int, wish: Wish) -> Wish | None:
    known = _constant(record, 1 - place)
    return None if known is None or not known[0] else wish.scaled(known[0], 0)


def _divide(record: Record, place: int, wish: Wish) -> Wish | None:
    known = _constant(record, 1 - place)
    return None if known is None or place or not known[0] else wish.scaled(1 / known[0], 0)


def _negate(_record: Record, _place: int, wish: Wish) -> Wish:
    return wish.scaled(-1, 0)


_ARITHMETIC: dict[str, Callable[[Record, int, Wish], Wish | None]] = {
    "Add": _add,
    "Sub": _subtract,
    "Mul": _multiply,
    "Div": _divide,
    "Neg": _negate,
}

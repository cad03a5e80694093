"""Chains of element-wise operators on float32 in one pass over the memory."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.fast import Binder, replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32
from onnxeval.fast.activations import Kind
from onnxeval.fast.curves import activation_of, clip_of
from onnxeval.fast.engine import native
from onnxeval.fast.parts import SO_FAR, Part
from onnxeval.ops.math.clip import clip, clip_attributes
from onnxeval.ops.math.power import power
from onnxeval.ops.math.rectifiers import parametric_relu
from onnxeval.registry import STANDARD, Kernel, OpKey


def _standard(op_type: str, since_version: int) -> Kernel:
    return STANDARD.require(OpKey("", op_type, since_version), "math")


#: Readable kernel -> its number in kernels.h, and that with its operands exchanged, None where there is none.
_JOINS: dict[Kernel, tuple[int, int | None]] = {
    _standard("Add", 14): (64, 64),
    _standard("Sum", 13): (64, 64),
    _standard("Sub", 14): (65, 66),
    _standard("Mul", 14): (67, 67),
    _standard("Div", 14): (68, 69),
    _standard("Max", 13): (70, 70),
    _standard("Min", 13): (71, 71),
    parametric_relu: (72, None),
}
ADD, SUBTRACT, MULTIPLY = 64, 65, 67

#: Readable kernels of one number that are no activations.
_SIMPLE: dict[Kernel, Kind] = {
    _standard("Abs", 13): Kind.ABSOLUTE,
    _standard("Neg", 13): Kind.NEGATIVE,
    _standard("Sqrt", 13): Kind.ROOT,
    _standard("Reciprocal", 13): Kind.RECIPROCAL,
    _standard("Exp", 13): Kind.EXP,
}

_MOST_OPERANDS = 10
#: NumPy is faster over many rows that are so short.
_SHORT_ROW, _FEW_ELEMENTS = 8, 4096
_MOST_PLANS = 64


class Instruction(NamedTuple):
    """One operator: a join with an operand of the chain, by place, or an activation."""

    what: int
    operand: int = -1
    alpha: float = 0.0
    beta: float = 0.0


class _Pass(NamedTuple):
    """One call of the compiled kernel, as the shapes of its operands decide it."""

    shape: tuple[int, ...]
    places: tuple[
        int, ...
    ]  # of the operands among the chain's inputs, SO_FAR for the result before; the first is whole
    instructions: bytes
    layouts: Tensor
    rows: int
    length: int


class ElementChain:
    """The parts from ``start`` on as far as they go, ``stop`` excluded; from the result before if there is one."""

    def __init__(self, parts: Sequence[Part], constants: Sequence[Tensor | None], start: int) -> None:
        kernels = native()
        assert kernels is not None
        self.run = kernels.run_chain
        self.first = parts[0].sources if start == 0 else ()
        self.steps: list[Instruction] = []
        self.stop = start
        operands: set[int] = set()
        for place, part in enumerate(parts[start:], start):
            step = _instruction(part, constants, begins=place == 0)
            if step is None:
                break
            operands.add(step.operand)
            if len(operands) > _MOST_OPERANDS - 2:
                break
            self.steps.append(step)
            self.stop = place + 1
        self.plans: dict[tuple[tuple[int, ...], ...], list[_Pass]] = {}

    def __call__(self, inputs: Sequence[Tensor | None], result: Tensor | None = None) -> Tensor | None:
        """The result after the last of these parts; None where they are for the readable kernels.

        ``result`` is what the parts before gave. It is written over.
        """
        used = [inputs[step.operand] for step in self.steps if step.operand >= 0]
        first = [result] if result is not None else [inputs[source] for source in self.first if source >= 0]
        operands = first + used
        if not all(map(is_float32, operands)):
            return None
        key = tuple([operand.shape for operand in operands if operand is not None])
        plan = self.plans.get(key)
        if plan is None:
            plan = self._plan_for(inputs, result)
            if plan is None:
                return None
            if len(self.plans) < _MOST_PLANS:
                self.plans[key] = plan
        for shape, places, *rest in plan:
            values = [result if place == SO_FAR else inputs[place] for place in places]
            arrays = tuple([contiguous(value) for value in values if value is not None])
            is_reused = result is not None and result.shape == shape and result.flags.c_contiguous
            target = result if is_reused else np.empty(shape, np.float32)
            self.run(target, arrays, *rest)
            result = target
        return result

    def _plan_for(self, inputs: Sequence[Tensor | None], result: Tensor | None) -> list[_Pass] | None:
        """A pass ends where an operand makes the result larger, so that what comes before is done to fewer elements."""
        begin = SO_FAR if result is not None else self.first[0]
        before = shape = _shape(inputs, begin) if result is None else result.shape
        taken: list[Instruction] = []
        passes: list[_Pass] = []

        def end_pass() -> bool:
            places = tuple(dict.fromkeys([begin, *(step.operand for step in taken if step.what >= ADD)]))
            own = [before if place == SO_FAR else _shape(inputs, place) for place in places]
            placed = [s._replace(operand=places.index(s.operand)) if s.what >= ADD else s for s in taken]
            found = compiled(shape, own, placed)
            passes.extend([] if found is None else [_Pass(shape, places, *found)])
            return found is not None

        for step in self.steps:
            if step.what >= ADD:
                try:
                    grown = np.broadcast_shapes(shape, _shape(inputs, step.operand))
                except ValueError:
                    return None
                if grown != shape and taken:
                    if not end_pass():
                        return None
                    begin, before, taken = SO_FAR, shape, []
                shape = grown
            taken.append(step)
        return passes if end_pass() else None


def compiled(
    shape: tuple[int, ...], shapes: Sequence[tuple[int, ...]], steps: Sequence[Instruction]
) -> tuple[bytes, Tensor, int, int] | None:
    """The last arguments of the compiled kernel, for a result of that shape and operands of these.

    None where there are no elements, or the kernel would not be faster, or cannot see the operands as they lie.
    """
    size = math.prod(shape)
    if not size:
        return None
    padded = [(1,) * (len(shape) - len(each)) + each for each in shapes]
    for rank in range(len(shape) + 1):  # of what is in rows; the longer these are, the better
        layouts = [_layout(each, shape, rank) for each in padded]
        if None not in layouts:
            length = math.prod(shape[rank:])
            if length < _SHORT_ROW and size > _FEW_ELEMENTS:
                return None
            code = b"".join(struct.pack("=iiff", *step) for step in steps)
            return code, np.array(layouts, np.int64), size // length, length
    return None


def _layout(own: tuple[int, ...], shape: tuple[int, ...], rank: int) -> tuple[int, int, int] | None:
    """(is_row, repeat, count) of an operand, as in kernels.h, where the axes after the first ``rank`` are a row."""
    is_row = own[rank:] == shape[rank:]
    if not is_row and math.prod(own[rank:]) != 1:
        return None
    used = [axis for axis in range(rank) if own[axis] != 1]
    if not used:
        return is_row, 1, 1
    first, last = used[0], used[-1] + 1
    if own[first:last] != shape[first:last]:
        return None
    return is_row, math.prod(shape[last:rank]), math.prod(own[first:last])


def _shape(inputs: Sequence[Tensor | None], place: int) -> tuple[int, ...]:
    value = inputs[place]
    assert value is not None
    return value.shape


def _instruction(part: Part, constants: Sequence[Tensor | None], *, begins: bool) -> Instruction | None:
    """What a part is; None where the compiled kernel has nothing for it."""
    unary = len(part.sources) == 1
    if not begins and SO_FAR not in part.sources:
        return None
    if part.kernel in _JOINS and len(part.sources) == 2:
        straight, exchanged = _JOINS[part.kernel]
        left, right = part.sources
        if begins:
            return Instruction(straight, right) if min(left, right) >= 0 and left != right else None
        if left == right:
            return Instruction(Kind.SQUARE) if straight == MULTIPLY else None
        if left == SO_FAR:
            return Instruction(straight, right) if right >= 0 else None
        return None if exchanged is None or left < 0 else Instruction(exchanged, left)
    if part.kernel is power and part.sources[1] >= 0 and (begins or part.sources[0] == SO_FAR):
        exponent = constants[part.sources[1]]
        two = exponent is not None and is_float32(exponent) and exponent.ndim == 0 and exponent.item() == 2
        return Instruction(Kind.SQUARE) if two else None
    if unary and part.kernel in _SIMPLE:
        return Instruction(_SIMPLE[part.kernel])
    activation = clip_of(part, constants) or (activation_of(part.kernel, part.attributes) if unary else None)
    return None if activation is None else Instruction(activation.kind, -1, activation.alpha, activation.beta)


def element_chain(parts: Sequence[Part], constants: Sequence[Tensor | None], start: int) -> ElementChain | None:
    """What runs the parts from ``start`` on as far as they go; None where that is not one."""
    chain = ElementChain(parts, constants, start)
    return chain if chain.stop > start else None


class _Alone(NamedTuple):
    """An operator as the only part of a chain."""

    kernel: Kernel
    sources: tuple[int, ...]
    attributes: Mapping[str, Any]


def _bind(readable: Kernel) -> Binder:
    def bind(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
        chain = element_chain([_Alone(readable, tuple(range(len(constants))), attributes)], constants, 0)
        if chain is None:
            return None

        @replayable
        def alone(*inputs: Tensor | None, **given: Any) -> Any:
            result = chain(inputs)
            return readable(*inputs, **given) if result is None else result

        return alone

    return bind


#: Those of two operands are in `onnxeval.fast.maps`, of every type.
_ALONE: tuple[Kernel, ...] = (parametric_relu, *_SIMPLE, power, clip, clip_attributes)
for _kernel in _ALONE:
    replaces(_kernel)(_bind(_kernel))

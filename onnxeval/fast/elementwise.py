"""Chains of element-wise operators on float32 in one pass over the memory."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum, auto
from typing import Any, NamedTuple

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import Binder, replaces, replayable
from onnxeval.fast._checks import contiguous, is_float32
from onnxeval.fast.activations import Kind
from onnxeval.fast.curves import activation_of, clip_of
from onnxeval.fast.engine import native
from onnxeval.fast.normalisations import Normalisation, is_normalisation, normalisation_of
from onnxeval.fast.parts import SO_FAR, Part
from onnxeval.ops.math.clip import clip, clip_attributes
from onnxeval.ops.math.power import power
from onnxeval.ops.math.rectifiers import parametric_relu
from onnxeval.registry import STANDARD, Kernel, OpKey


def _standard(op_type: str, since_version: int) -> Kernel:
    return STANDARD.require(OpKey("", op_type, since_version), "math")


class Join(IntEnum):
    """As in kernels.h."""

    ADD = 64
    SUBTRACT = auto()
    SUBTRACT_FROM = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    DIVIDE_BY = auto()
    GREATER = auto()
    LESS = auto()
    SLOPE = auto()
    NORMALISE = auto()


#: Readable kernel -> what it is, and that with its operands exchanged, None where there is none.
_JOINS: dict[Kernel, tuple[Join, Join | None]] = {
    _standard("Add", 14): (Join.ADD, Join.ADD),
    _standard("Sum", 13): (Join.ADD, Join.ADD),
    _standard("Sub", 14): (Join.SUBTRACT, Join.SUBTRACT_FROM),
    _standard("Mul", 14): (Join.MULTIPLY, Join.MULTIPLY),
    _standard("Div", 14): (Join.DIVIDE, Join.DIVIDE_BY),
    _standard("Max", 13): (Join.GREATER, Join.GREATER),
    _standard("Min", 13): (Join.LESS, Join.LESS),
    parametric_relu: (Join.SLOPE, None),
}

#: Readable kernels of one number that are no activations.
_SIMPLE: dict[Kernel, Kind] = {
    _standard("Abs", 13): Kind.ABSOLUTE,
    _standard("Neg", 13): Kind.NEGATIVE,
    _standard("Sqrt", 13): Kind.ROOT,
    _standard("Reciprocal", 13): Kind.RECIPROCAL,
    _standard("Exp", 13): Kind.EXP,
}

#: What needs no rounding where its operands are rounded.
_EXACT = frozenset({Kind.CLIP, Kind.ABSOLUTE, Kind.NEGATIVE, Join.GREATER, Join.LESS})

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
    places: tuple[int, ...]  # of operands among the chain's inputs, SO_FAR for the result before
    vectors: tuple[Tensor, ...]  # operands that are the chain's own
    instructions: bytes
    layouts: Tensor
    rows: int
    length: int


class ElementChain:
    """The parts from ``start`` on as far as they go, ``stop`` excluded; from the result before if there is one."""

    def __init__(
        self, parts: Sequence[Part], constants: Sequence[Tensor | None], start: int, rounding: Kind | None
    ) -> None:
        kernels = native()
        assert kernels is not None
        self.run = kernels.run_chain
        self.first = parts[0].sources if start == 0 else ()
        self.constants = constants
        self.rounding = None if rounding is None else Instruction(rounding)
        self.steps: list[Instruction | Normalisation] = []
        self.stop = start
        vectors = 0
        operands: set[int] = set()
        for place, part in enumerate(parts[start:], start):
            step = _instruction(part, constants, begins=place == 0)
            if step is None or (rounding is not None and part.kernel is clip_attributes):
                break
            if isinstance(step, Normalisation):
                vectors += len(step)
            elif step.operand >= 0:
                operands.add(step.operand)
            if len(operands) + vectors > _MOST_OPERANDS - 1:
                break
            self.steps.append(step)
            self.stop = place + 1
        self.operands = sorted(operands)
        self.plans: dict[tuple[tuple[int, ...], ...], list[_Pass]] = {}

    def __call__(self, inputs: Sequence[Tensor | None], result: Tensor | None = None) -> Tensor | None:
        """The result after the last of these parts; None where they are for the readable kernels.

        ``result`` is what the parts before gave. It is written over.
        """
        used = [inputs[place] for place in self.operands]
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
        for shape, places, vectors, *rest in plan:
            values = [result if place == SO_FAR else inputs[place] for place in places]
            arrays = (*[contiguous(value) for value in values if value is not None], *vectors)
            is_reused = result is not None and result.shape == shape and result.flags.c_contiguous
            target = result if is_reused else empty(shape, np.float32)
            self.run(target, arrays, *rest)
            result = target
        return result

    def _plan_for(self, inputs: Sequence[Tensor | None], result: Tensor | None) -> list[_Pass] | None:
        """A pass ends where an operand makes the result larger, so that what comes before is done to fewer elements."""
        begin = SO_FAR if result is not None else self.first[0]
        before = shape = _shape(inputs, begin) if result is None else result.shape
        # What a product gave is not rounded yet
        taken: list[Instruction | Normalisation] = [] if result is None or not self.rounding else [self.rounding]
        passes: list[_Pass] = []

        def end_pass() -> bool:
            joins = [step for step in taken if isinstance(step, Instruction) and step.what >= Join.ADD]
            places = tuple(dict.fromkeys([begin, *(step.operand for step in joins)]))
            shapes = [before if place == SO_FAR else _shape(inputs, place) for place in places]
            vectors: list[Tensor] = []
            placed = []
            for step in taken:
                if isinstance(step, Normalisation):
                    placed.append(Instruction(Join.NORMALISE, len(places) + len(vectors)))
                    vectors += step
                else:
                    placed.append(step._replace(operand=places.index(step.operand)) if step.what >= Join.ADD else step)
            shapes += [_by_channel(shape) for _ in vectors]
            found = compiled(shape, shapes, placed)
            passes.extend([] if found is None else [_Pass(shape, places, tuple(vectors), *found)])
            return found is not None

        for step in self.steps:
            if isinstance(step, Normalisation):
                if len(shape) < 2 or shape[1] != len(step.mean):
                    return None
            elif step.what >= Join.ADD:
                try:
                    grown = np.broadcast_shapes(shape, _shape(inputs, step.operand))
                except ValueError:
                    return None
                if step.what == Join.SLOPE and grown != shape:
                    return None  # which is wrong, as the readable kernel says
                if grown != shape and taken:
                    if not end_pass():
                        return None
                    begin, before, taken = SO_FAR, shape, []
                shape = grown
                if not self.rounding and taken and isinstance(taken[-1], Normalisation):
                    merged = _merged(taken[-1], step, self.constants[step.operand], shape)
                    if merged is not None:
                        taken[-1] = merged
                        continue
            what = Join.NORMALISE if isinstance(step, Normalisation) else step.what
            if self.rounding and taken and taken[-1] is self.rounding and what == Kind.CLIP:
                taken.insert(-1, step)  # between bounds of that type, rounding can wait
                continue
            taken.append(step)
            if self.rounding and what not in _EXACT:
                taken.append(self.rounding)
        if len(taken) > 1 and taken[-1] is self.rounding:  # who narrows the result does that
            taken.pop()
        return passes if end_pass() else None


def _by_channel(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one number a channel, beside a result of that shape."""
    return (1, shape[1], *(1,) * (len(shape) - 2))


def _merged(
    before: Normalisation, step: Instruction, operand: Tensor | None, shape: tuple[int, ...]
) -> Normalisation | None:
    """A normalisation and what a step does to each channel of its result, as one; None where that is not possible."""
    if operand is None or (1,) * (len(shape) - operand.ndim) + operand.shape not in (
        _by_channel(shape),
        (1,) * len(shape),
    ):
        return None
    number = operand.ravel()
    match step.what:
        case Join.ADD:
            return before.then(1.0, number)
        case Join.SUBTRACT:
            return before.then(1.0, -number)
        case Join.MULTIPLY:
            return before.then(number, 0.0)
        case _:
            return None


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


def _instruction(part: Part, constants: Sequence[Tensor | None], *, begins: bool) -> Instruction | Normalisation | None:
    """What a part is; None where the compiled kernel has nothing for it."""
    unary = len(part.sources) == 1
    if not begins and SO_FAR not in part.sources:
        return None
    if is_normalisation(part.kernel):
        return normalisation_of(part, constants) if begins or part.sources[0] == SO_FAR else None
    if part.kernel in _JOINS and len(part.sources) == 2:
        straight, exchanged = _JOINS[part.kernel]
        left, right = part.sources
        if begins:
            return Instruction(straight, right) if min(left, right) >= 0 and left != right else None
        if left == right:
            return Instruction(Kind.SQUARE) if straight == Join.MULTIPLY else None
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


def element_chain(
    parts: Sequence[Part], constants: Sequence[Tensor | None], start: int, rounding: Kind | None = None
) -> ElementChain | None:
    """What runs the parts from ``start`` on as far as they go; None where that is not one.

    ``rounding`` is done to the result before and after each part but the last.
    """
    chain = ElementChain(parts, constants, start, rounding)
    return chain if chain.stop > start else None


class _Alone(NamedTuple):
    """An operator as the only part of a chain."""

    kernel: Kernel
    sources: tuple[int, ...]
    attributes: Mapping[str, Any]


def by_itself(readable: Kernel) -> Binder:
    """What makes a chain of one operator, in its place."""

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
#: 16-bit floats are limited by the largest of their own type; NumPy takes the sign of their bits.
_FLOAT32_ALONE = frozenset({clip_attributes, _standard("Abs", 13)})
for _kernel in _ALONE:
    replaces(_kernel, rounded=0 if _kernel in _FLOAT32_ALONE else 1)(by_itself(_kernel))

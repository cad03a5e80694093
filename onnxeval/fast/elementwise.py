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

#: As in kernels.h.
_WHOLE, _SINGLE, _PER_ROW, _ALONG_ROW = range(4)
_MOST_OPERANDS = 10
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
        """A pass goes on until an operand is larger than the result so far: the next one begins with that."""
        steps = list(self.steps)
        if result is not None:
            begin, shape = SO_FAR, result.shape
        else:
            sources = [source for source in self.first if source >= 0]
            shapes = {source: _shape(inputs, source) for source in sources}
            shape = max(shapes.values(), key=lambda each: (len(each), math.prod(each)))
            begin = next(source for source in sources if shapes[source] == shape)
            if steps[0].operand >= 0 and begin != sources[0]:
                exchanged = _exchanged(steps[0], sources[0])
                if exchanged is None:
                    return None
                steps[0] = exchanged
        passes: list[_Pass | None] = []
        before = shape  # of the result before a pass
        taken: list[Instruction] = []

        def end_pass() -> None:
            places = tuple(dict.fromkeys([begin, *(step.operand for step in taken if step.what >= ADD)]))
            own = [before if place == SO_FAR else _shape(inputs, place) for place in places]
            placed = [s._replace(operand=places.index(s.operand)) if s.what >= ADD else s for s in taken]
            found = compiled(own, placed)
            passes.append(None if found is None else _Pass(shape, places, *found))

        for step in steps:
            if step.operand < 0 or not _grows(shape, _shape(inputs, step.operand)):
                taken.append(step)
                continue
            joined = _exchanged(step, SO_FAR)
            if joined is None:
                return None
            if taken:
                end_pass()
            before, begin, shape, taken = shape, step.operand, _shape(inputs, step.operand), [joined]
        end_pass()
        found = [each for each in passes if each is not None]
        return found if len(found) == len(passes) else None


def _exchanged(step: Instruction, operand: int) -> Instruction | None:
    """What does the same to the operand of a join, with what it joins for an operand."""
    what = dict(_JOINS.values()).get(step.what)
    return None if what is None else Instruction(what, operand)


def _grows(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether what is made of both has the other's shape, which is another one."""
    try:
        return shape != other and np.broadcast_shapes(shape, other) == other
    except ValueError:
        return False


def compiled(shapes: Sequence[tuple[int, ...]], steps: Sequence[Instruction]) -> tuple[bytes, Tensor, int, int] | None:
    """The last arguments of the compiled kernel, for operands of these shapes, the first of which the result has.

    None where there are no elements, or they do not lie beside each other as the kernel can see them.
    """
    layouts = [_layout(each, shapes[0]) for each in shapes]
    found = [each for each in layouts if each is not None]
    lengths = {each[2] for each in found if each[2]}
    size = math.prod(shapes[0])
    if not size or len(found) < len(layouts) or len(lengths) > 1:
        return None
    length = lengths.pop() if lengths else size
    code = b"".join(struct.pack("=iiff", *step) for step in steps)
    return code, np.array([each[:2] for each in found], np.int64), size // length, length


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


def _layout(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(layout, count, the length of a row that it asks for or 0) of an operand in a result of that shape."""
    if own == shape:
        return _WHOLE, 0, 0
    if len(own) > len(shape):
        return None
    size = math.prod(own)
    if size == 1:
        return _SINGLE, 1, 0
    padded = (1,) * (len(shape) - len(own)) + own
    used = [axis for axis, each in enumerate(padded) if each != 1]
    first, last = used[0], used[-1] + 1
    if padded[first:last] != shape[first:last]:
        return None
    inner = math.prod(shape[last:])
    return (_ALONG_ROW, size, size) if inner == 1 else (_PER_ROW, size, inner)


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


_ALONE: tuple[Kernel, ...] = (*_JOINS, *_SIMPLE, power, clip, clip_attributes)
for _kernel in _ALONE:
    replaces(_kernel)(_bind(_kernel))

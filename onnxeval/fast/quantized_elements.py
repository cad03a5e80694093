"""QLinear operators on 8 bits that look at one element of each input, or at whole planes: tables, or one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import EIGHT_BITS, contiguous, is_bytes, known_float32
from onnxeval.fast.elementwise import Join
from onnxeval.fast.engine import native
from onnxeval.ops.contrib._typed import MICROSOFT
from onnxeval.ops.contrib.qlinear_elementwise import qlinear_concat, qlinear_leaky_relu, qlinear_sigmoid
from onnxeval.ops.contrib.qlinear_pool import qlinear_global_average_pool
from onnxeval.registry import STANDARD, Kernel, OpKey

#: As in kernels.h.
_WHOLE, _SINGLE, _PER_ROW, _ALONG_ROW = range(4)
_MOST_PLANS = 64
_CONCAT: Kernel = qlinear_concat
_GLOBAL_AVERAGE_POOL: Kernel = qlinear_global_average_pool
Bound = Callable[[Sequence[Tensor | None], Mapping[str, Any]], "Kernel | None"]


def parameters(scale: Tensor | None, zero_point: Tensor | None) -> tuple[float, int] | None:
    """A constant scale and zero point of one number each; None where they are anything else."""
    if scale is None or not known_float32(scale) or scale.size != 1:
        return None
    if zero_point is None:
        return scale.item(), 0
    return (scale.item(), int(zero_point.item())) if zero_point.size == 1 and zero_point.dtype in EIGHT_BITS else None


def table_of(curve: Callable[[Tensor], Tensor], dtype: Any) -> Tensor:
    """What a function makes of each integer of 8 bits, by their bits."""
    return np.ascontiguousarray(curve(np.arange(256, dtype=np.uint8).view(dtype)))


def looked_up(x: Tensor, table: Tensor) -> Tensor:
    """The entry of each element."""
    kernels = native()
    assert kernels is not None
    result = empty(x.shape, table.dtype)
    kernels.look_up_bytes(contiguous(x).reshape(1, -1), table, result.reshape(1, -1))
    return result


def _bind_join(readable: Kernel, what: int) -> Bound:
    def bind(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
        kernels = native()
        assert kernels is not None
        given = [*constants, *[None] * (8 - len(constants))]
        found = [parameters(given[place], given[place + 1]) for place in (1, 4, 6)]
        left, right, target = found
        if left is None or right is None or target is None:
            return None
        plans: dict[tuple[tuple[int, ...], ...], tuple[Any, ...] | None] = {}

        @replayable
        def joined(*inputs: Tensor | None) -> Tensor:
            values = [*inputs, *[None] * (8 - len(inputs))]
            a, b = values[0], values[3]
            same = all(values[place] is given[place] for place in (1, 2, 4, 5, 6, 7))
            if not same or not (is_bytes(a) and is_bytes(b)) or a is None or b is None or a.dtype != b.dtype:
                return readable(*inputs)  # type: ignore[no-any-return]
            key = (a.shape, b.shape)
            if key not in plans and len(plans) < _MOST_PLANS:
                plans[key] = _join_plan(a.shape, b.shape)
            plan = plans.get(key)
            if plan is None:
                return readable(*inputs)  # type: ignore[no-any-return]
            shape, rows, length, first, second = plan
            result = empty(shape, a.dtype)
            kernels.join_bytes(
                what, result, rows, length, *target, contiguous(a), *first, *left, contiguous(b), *second, *right
            )
            return result

        return joined

    return bind


def _join_plan(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[Any, ...] | None:
    """The result's shape, its rows and their length, and how each operand lies in it; None where that is no such."""
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:  # for the readable kernel to say
        return None
    layouts = [_layout(each, shape) for each in (a, b)]
    found = [each for each in layouts if each is not None]
    lengths = {each[2] for each in found if each[2]}
    size = math.prod(shape)
    if not size or len(found) < 2 or len(lengths) > 1:
        return None
    length = lengths.pop() if lengths else size
    return shape, size // length, length, found[0][:2], found[1][:2]


def _layout(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(layout, count, the length of a row that it asks for or 0) of an operand in a result of that shape."""
    if own == shape:
        return _WHOLE, 0, 0
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


for _op_type, _what in (("QLinearAdd", Join.ADD), ("QLinearMul", Join.MULTIPLY)):
    _kernel = STANDARD.require(OpKey(MICROSOFT, _op_type, 1), "contrib")
    replaces(_kernel)(_bind_join(_kernel, _what))


def _bind_table(readable: Kernel) -> Bound:
    def bind(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
        given = [*constants, *[None] * (5 - len(constants))]
        if any(parameters(given[place], given[place + 1]) is None for place in (1, 3)):
            return None
        tables: dict[Any, Tensor] = {}

        @replayable
        def curve(x: Tensor, *rest: Tensor | None, **options: Any) -> Tensor:
            values = [*rest, *[None] * (4 - len(rest))]
            if not is_bytes(x) or not x.size or any(v is not known for v, known in zip(values, given[1:], strict=True)):
                return readable(x, *rest, **options)  # type: ignore[no-any-return]
            if x.dtype not in tables:
                tables[x.dtype] = table_of(lambda codes: readable(codes, *rest, **attributes), x.dtype)
            return looked_up(x, tables[x.dtype])

        return curve

    return bind


for _kernel in (qlinear_sigmoid, qlinear_leaky_relu):
    replaces(_kernel)(_bind_table(_kernel))


@replaces(qlinear_concat)
def bind_concat(constants: Sequence[Tensor | None], _: Mapping[str, Any]) -> Kernel | None:
    """QLinearConcat whose scales and zero points are constant."""
    kernels = native()
    assert kernels is not None
    pairs = [parameters(*constants[place : place + 2]) for place in range(3, len(constants) - 1, 3)]
    zero = constants[1]
    if len(constants) % 3 != 2 or not pairs or None in pairs or zero is None or parameters(*constants[:2]) is None:
        return None
    fixed = {place: value for place, value in enumerate(constants) if place < 2 or place % 3 != 2}
    tables = [
        table_of(partial(_requantized, constants[:2], pair), zero.dtype)
        for pair in (constants[at : at + 2] for at in range(3, len(constants), 3))
    ]

    @replayable
    def joined(*inputs: Tensor | None, axis: int) -> Tensor:
        parts = inputs[2::3]
        along = _concatenation(parts, axis)
        same = len(inputs) == len(constants) and all(inputs[place] is value for place, value in fixed.items())
        if along is None or not same or any(part is None or part.dtype != zero.dtype for part in parts):
            return _CONCAT(*inputs, axis=axis)  # type: ignore[no-any-return]
        shape, rows = along
        result = empty(shape, zero.dtype)
        flat, start = result.reshape(rows, -1), 0
        for part, table in zip(parts, tables, strict=True):
            assert part is not None
            length = part.size // rows
            if length:
                place = flat[:, start : start + length]
                kernels.look_up_bytes(contiguous(part).reshape(rows, length), table, place)
            start += length
        return result

    return joined


def _requantized(target: Sequence[Tensor | None], pair: Sequence[Tensor | None], codes: Tensor) -> Tensor:
    whole: Tensor = _CONCAT(*target, codes, *pair, axis=0)
    return whole


def _concatenation(parts: Sequence[Tensor | None], axis: int) -> tuple[tuple[int, ...], int] | None:
    """The shape of the parts after each other, and how many rows they are of; None where they do not fit together."""
    first = parts[0]
    if first is None or not -first.ndim <= axis < first.ndim:
        return None
    axis %= first.ndim
    sizes = 0
    for part in parts:
        if not is_bytes(part) or part is None or part.ndim != first.ndim:
            return None
        if part.shape[:axis] + part.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :]:
            return None
        sizes += part.shape[axis]
    rows = math.prod(first.shape[:axis])
    shape = (*first.shape[:axis], sizes, *first.shape[axis + 1 :])
    return (shape, rows) if math.prod(shape) else None


@replaces(qlinear_global_average_pool)
def bind_global_average_pool(constants: Sequence[Tensor | None], attributes: Mapping[str, Any]) -> Kernel | None:
    """QLinearGlobalAveragePool with channels first."""
    kernels = native()
    assert kernels is not None
    source, target = parameters(*constants[1:3]), parameters(*constants[3:5])
    if source is None or target is None or attributes.get("channels_last", 0):
        return None
    if not (math.isfinite(source[0]) and math.isfinite(target[0]) and target[0]):
        return None

    @replayable
    def pooled(x: Tensor, *rest: Tensor | None, **given: Any) -> Tensor:
        fits = is_bytes(x) and x.ndim > 2 and x.size
        if not fits or any(value is not known for value, known in zip(rest, constants[1:], strict=True)):
            return _GLOBAL_AVERAGE_POOL(x, *rest, **given)  # type: ignore[no-any-return]
        result = empty((*x.shape[:2], *(1,) * (x.ndim - 2)), x.dtype)
        rows = x.shape[0] * x.shape[1]
        kernels.mean_of_bytes(contiguous(x).reshape(rows, -1), result, *source, *target)
        return result

    return pooled

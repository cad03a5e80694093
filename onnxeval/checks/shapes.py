"""Rules on shapes that cannot work together, said in the terms of the operator: arithmetic that the standard's own
inference leaves out, or refuses in the dark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from typing import TypeAlias

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.types import Typed
from onnxeval.schema import Schema
from onnxeval.values import Dimension, shape_text

Shape: TypeAlias = tuple[Dimension, ...]


def clash(one: Dimension, other: Dimension) -> bool:
    """Whether two sizes are known and differ."""
    return isinstance(one, int) and isinstance(other, int) and one != other


def shape_of(typed: Typed, place: int) -> Shape | None:
    """The shape of an input; None where it is not known, or the input is absent."""
    return typed.inputs[place].shape if place < len(typed.inputs) else None


# Broadcasting


@cache
def _broadcasts(schema: Schema) -> bool:
    """Whether the text says that all inputs broadcast against one another."""
    return re.search(r"multidirectional", str(schema.definition.doc), re.IGNORECASE) is not None


def _broadcast_clash(shapes: list[Shape]) -> str:
    """``axis -1 has 3 and 4`` where shapes do not broadcast, else ""."""
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-axis] for shape in shapes if len(shape) >= axis}
        clashing = sorted(size for size in sizes if isinstance(size, int) and size != 1)
        if len(clashing) > 1:
            return f"axis {-axis} has {' and '.join(map(str, clashing))}"
    return ""


@rule("shape/broadcast", "error", Typed)
def broadcast(typed: Typed) -> Faults:
    """Shapes do not broadcast: aligned at the end, two sizes of an axis must be equal, or one of them 1.

    Why: there is no pair for some elements.

    Mend: reshape one of the inputs, with Unsqueeze for axes of size 1, or Expand it.

    Example:
        g (float[2, 3] x, float[2] z) => (float[2, 3] y) { y = Add(x, z) }

    Instead:
        g (float[2, 3] x, float[2, 1] z) => (float[2, 3] y) { y = Add(x, z) }
    """
    if _broadcasts(typed.schema):
        shapes = [known.shape for known in typed.inputs if known.shape is not None]
        if why := _broadcast_clash(shapes):
            yield Fault(typed.node.where, f"{' and '.join(map(shape_text, shapes))} do not broadcast: {why}")


@rule("shape/one-way-broadcast", "error", Typed, "Gemm", "LayerNormalization", "PRelu", "RMSNormalization")
def one_way_broadcast(typed: Typed) -> Faults:
    """A shape does not broadcast to the one that it must be stretched to: the C of a Gemm, the slope of a PRelu, the
    scale of a LayerNormalization.

    Why: only this input is stretched; its sizes must be those of the other, or 1, and its rank no larger.

    Mend: reshape the input. A slope for each channel of an image has the shape `[C, 1, 1]`.

    Example:
        g (float[1, 4, 5, 5] x, float[4] slope) => (float[1, 4, 5, 5] y) { y = PRelu(x, slope) }

    Instead:
        g (float[1, 4, 5, 5] x, float[4, 1, 1] slope) => (float[1, 4, 5, 5] y) { y = PRelu(x, slope) }
    """
    for name, given, wanted in _stretched(typed):
        fits = len(given) <= len(wanted) and not any(
            clash(size, due) and size != 1 for size, due in zip(given[::-1], wanted[::-1], strict=False)
        )
        if not fits:
            yield Fault(typed.node.where, f"{name} {shape_text(given)} does not broadcast to {shape_text(wanted)}")


def _stretched(typed: Typed) -> Iterator[tuple[str, Shape, Shape]]:
    """Inputs that broadcast one way: name, shape, and the shape that they must fit."""
    version, first = typed.schema.key.since_version, shape_of(typed, 0)
    if first is None:
        return
    if typed.operator == "PRelu" and version >= 7 and (slope := shape_of(typed, 1)) is not None:
        yield "slope", slope, first
    if typed.operator == "Gemm" and version >= 7:
        c, product = shape_of(typed, 2), _product_shape(typed)
        if c is not None and product is not None:
            yield "C", c, product
    if typed.operator in ("LayerNormalization", "RMSNormalization"):
        axis = typed.attribute("axis")
        for place, name in ((1, "scale"), (2, "bias")):
            if (given := shape_of(typed, place)) is not None and -len(first) <= axis < len(first):
                yield name, given, first[axis:]


#: What broadcasts, where its version has an attribute of this name, only if that is set.
_BROADCAST_IF_SET = ("Add", "And", "Div", "Equal", "Gemm", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")


@rule("shape/old-broadcast", "error", Typed, *_BROADCAST_IF_SET)
def old_broadcast(typed: Typed) -> Faults:
    """Before opset 7: the second shape is another than the first, and `broadcast` is not set, or it does not fit.

    Why: in these opsets only the second input is stretched, only where `broadcast` is 1, and from `axis` on, which is
    where its axes lie; without `axis` they are the last ones. The C of a Gemm is stretched in the same way.

    Mend: set `broadcast` to 1, and `axis`, or import opset 7 or later, where shapes are aligned at the end.

    Example:
        <ir_version: 3, opset_import: ["": 6]>
        g (float[2, 3] x, float[3] z) => (float[2, 3] y) { y = Add(x, z) }

    Instead:
        <ir_version: 3, opset_import: ["": 6]>
        g (float[2, 3] x, float[3] z) => (float[2, 3] y) { y = Add<broadcast = 1>(x, z) }
    """
    if "broadcast" not in typed.schema.attributes:
        return
    is_gemm = typed.operator == "Gemm"
    first, second = _product_shape(typed) if is_gemm else shape_of(typed, 0), shape_of(typed, 2 if is_gemm else 1)
    if first is None or second is None:
        return
    shapes = f"{shape_text(first)} and {shape_text(second)}"
    if not typed.attribute("broadcast"):
        if len(first) != len(second) or any(map(clash, first, second)):
            yield Fault(typed.node.where, f"{shapes} differ, and broadcast is 0", "set broadcast to 1")
        return
    axis = typed.attribute("axis")
    start = len(first) - len(second) if axis is None else axis % max(len(first), 1)
    part = first[max(start, 0) : start + len(second)]
    if (
        start < 0
        or len(part) < len(second)
        or any(clash(*pair) and pair[1] != 1 for pair in zip(part, second, strict=True))
    ):
        where = "its end" if axis is None else f"axis {axis}"
        yield Fault(typed.node.where, f"{shapes}: the second does not fit into the first at {where}")


def _product_shape(typed: Typed) -> Shape | None:
    """The shape of the product in a Gemm."""
    left, right = shape_of(typed, 0), shape_of(typed, 1)
    if left is None or right is None or not len(left) == len(right) == 2:
        return None
    return left[bool(typed.attribute("transA"))], right[not typed.attribute("transB")]


# Products of matrices


def _factors(typed: Typed) -> tuple[Shape | None, Shape | None]:
    second = 3 if typed.operator == "QLinearMatMul" else 1
    return shape_of(typed, 0), shape_of(typed, second)


#: Products of two stacks of matrices.
_PRODUCTS = ("MatMul", "MatMulInteger", "QLinearMatMul")


@rule("shape/matmul", "error", Typed, *_PRODUCTS)
def matmul(typed: Typed) -> Faults:
    """The matrices of a MatMul (MatMulInteger, QLinearMatMul) do not fit.

    Why: the columns of the first must be as many as the rows of the second, the axes before these must broadcast, and
    neither may be a scalar.

    Mend: transpose or reshape one of them.

    Example:
        g (float[2, 3] x, float[4, 5] z) => (float[2, 5] y) { y = MatMul(x, z) }

    Instead:
        g (float[2, 3] x, float[3, 5] z) => (float[2, 5] y) { y = MatMul(x, z) }
    """
    left, right = _factors(typed)
    if left is None or right is None:
        return
    product = f"{shape_text(left)} x {shape_text(right)}"
    if not left or not right:
        yield Fault(typed.node.where, f"{product}: a MatMul takes no scalars")
    elif clash(inner := left[-1], rows := right[-2:][0]):
        yield Fault(typed.node.where, f"{product}: the inner sizes are {inner} and {rows}")
    elif why := _broadcast_clash([left[:-2], right[:-2]]):
        yield Fault(typed.node.where, f"{product}: the axes before the matrices do not broadcast, {why}")


@rule("shape/gemm", "error", Typed, "Gemm")
def gemm(typed: Typed) -> Faults:
    """The matrices of a Gemm are not of rank 2, or their inner sizes differ.

    Why: it multiplies two matrices, after `transA` and `transB`.

    Mend: set `transB` where the second is stored turned, as PyTorch's Linear stores it; use MatMul for other ranks.

    Example:
        g (float[2, 3] x, float[5, 3] w) => (float[2, 5] y) { y = Gemm(x, w) }

    Instead:
        g (float[2, 3] x, float[5, 3] w) => (float[2, 5] y) { y = Gemm<transB = 1>(x, w) }
    """
    left, right = shape_of(typed, 0), shape_of(typed, 1)
    for name, shape in (("A", left), ("B", right)):
        if shape is not None and len(shape) != 2:
            yield Fault(typed.node.where, f"{name} {shape_text(shape)} has rank {len(shape)}, a Gemm takes rank 2")
    for inner, rows in equal_sizes(typed):
        if left and right and clash(inner, rows):
            turned = "".join(f" {name}ᵀ" for name in "AB" if typed.attribute(f"trans{name}"))
            message = f"A {shape_text(left)}, B {shape_text(right)}{turned and f' ({turned.strip()})'}"
            yield Fault(typed.node.where, f"{message}: the inner sizes are {inner} and {rows}")


def equal_sizes(typed: Typed) -> Iterator[tuple[Dimension, Dimension]]:
    """The pairs of sizes that a product of matrices needs equal."""
    if typed.operator in _PRODUCTS:
        left, right = _factors(typed)
        if left and right:
            yield left[-1], right[-2:][0]
    elif typed.operator == "Gemm":
        left, right = shape_of(typed, 0), shape_of(typed, 1)
        if left is not None and right is not None and len(left) == len(right) == 2:
            yield left[not typed.attribute("transA")], right[bool(typed.attribute("transB"))]


# Other arithmetic


@rule("shape/reshape", "error", Typed, "Reshape")
def reshape(typed: Typed) -> Faults:
    """A Reshape gives another number of elements than it takes.

    Why: it moves none, adds none and drops none.

    Mend: correct the shape; one size may be -1 and follows from the others, a 0 stands for the input's own size.

    Example:
        g (float[2, 3] x) => (float[N, M] y) <int64[2] shape = {4, 2}> { y = Reshape(x, shape) }

    Instead:
        g (float[2, 3] x) => (float[N, M] y) <int64[2] shape = {-1, 2}> { y = Reshape(x, shape) }
    """
    if (shape := shape_of(typed, 0)) is None:
        return
    if typed.schema.key.since_version == 1:
        target = list(typed.attribute("shape") or ())
    else:
        array = typed.elements(1)
        target = [] if array is None or array.ndim != 1 else array.tolist()
    sizes = [size for size in shape if isinstance(size, int)]
    if not target or len(sizes) < len(shape) or target.count(-1) > 1 or min(target) < -1:
        return  # not known, or refused by inference
    if not typed.attribute("allowzero"):
        if any(not size and place >= len(shape) for place, size in enumerate(target)):
            return
        target = [size or sizes[place] for place, size in enumerate(target)]
    elements, given = math.prod(sizes), math.prod(size for size in target if size != -1)
    if elements != given if -1 not in target else (elements % given if given else elements):
        yield Fault(typed.node.where, f"{shape_text(shape)} has {elements} elements, they make no {shape_text(target)}")


@rule("shape/concat", "error", Typed, "Concat")
def concat(typed: Typed) -> Faults:
    """The inputs of a Concat differ in rank, or on another axis than the one they are joined along.

    Why: they are put behind one another along `axis`, everywhere else they must be equal.

    Mend: correct `axis`, or reshape or pad what does not fit.

    Example:
        g (float[2, 3] x, float[2, 4] z) => (float[N, M] y) { y = Concat<axis = 0>(x, z) }

    Instead:
        g (float[2, 3] x, float[2, 4] z) => (float[2, 7] y) { y = Concat<axis = 1>(x, z) }
    """
    axis, known = typed.attribute("axis"), [(i, s) for i in range(len(typed.inputs)) if (s := shape_of(typed, i))]
    if not known or axis is None or not -len(known[0][1]) <= axis < len(known[0][1]):
        return
    place, first = known[0]
    for other, shape in known[1:]:
        shapes = f"input {place} is {shape_text(first)}, input {other} {shape_text(shape)}"
        if len(shape) != len(first):
            yield Fault(typed.node.where, f"{shapes}: the ranks are {len(first)} and {len(shape)}")
            return
        for each, (one, size) in enumerate(zip(first, shape, strict=True)):
            if each != axis % len(first) and clash(one, size):
                message = f"{shapes}: they are joined along axis {axis}, and differ on axis {each}"
                yield Fault(typed.node.where, message)
                return


@rule("shape/blocks", "error", Typed, "DepthToSpace", "SpaceToDepth")
def blocks(typed: Typed) -> Faults:
    """A DepthToSpace or SpaceToDepth does not divide its input into blocks.

    Why: DepthToSpace takes `blocksize²` channels for one, SpaceToDepth cuts height and width into parts of `blocksize`;
    what is left over has no place.

    Mend: pad the input, or correct `blocksize`.

    Example:
        g (float[1, 6, 2, 2] x) => (float[1, N, 4, 4] y) { y = DepthToSpace<blocksize = 2>(x) }

    Instead:
        g (float[1, 8, 2, 2] x) => (float[1, 2, 4, 4] y) { y = DepthToSpace<blocksize = 2>(x) }
    """
    shape = shape_of(typed, 0)
    if shape is None or len(shape) != 4:
        return
    size = typed.attribute("blocksize")
    places, due = ((1,), size * size) if typed.operator == "DepthToSpace" else ((2, 3), size)
    for place in places:
        given = shape[place]
        if isinstance(given, int) and due > 0 and given % due:
            yield Fault(typed.node.where, f"{shape_text(shape)}: axis {place} has {given}, no multiple of {due}")


@rule("shape/index", "error", Typed, "Gather", "GatherElements", "ScatterElements")
def index(typed: Typed) -> Faults:
    """A constant index of a Gather, GatherElements or ScatterElements lies outside the axis.

    Why: there is no such element.

    Mend: count from 0 to size - 1, or from the back: -size to -1.

    Example:
        g (float[3] x) => (float[1] y) <int64[1] i = {3}> { y = Gather(x, i) }

    Instead:
        g (float[3] x) => (float[1] y) <int64[1] i = {2}> { y = Gather(x, i) }
    """
    shape = shape_of(typed, 0)
    if not shape:
        return
    axis, array = typed.attribute("axis"), typed.elements(1)
    if array is None or not array.size or not -len(shape) <= axis < len(shape):
        return
    size, least, most = shape[axis], int(array.min()), int(array.max())
    if isinstance(size, int) and not -size <= least <= most < size:
        outside = most if most >= size else least
        yield Fault(typed.node.where, f"index {outside} is outside axis {axis} of {shape_text(shape)}")

"""Rules on shapes that cannot work together, said in the terms of the operator."""

from __future__ import annotations

import re
from functools import cache

from onnxeval.checks.rules import Fault, Faults, rule
from onnxeval.checks.types import Typed
from onnxeval.schema import Schema
from onnxeval.values import Dimension, shape_text

Shape = tuple[Dimension, ...]


@cache
def _broadcasts(schema: Schema) -> bool:
    """Whether the text says that all inputs broadcast against one another."""
    return re.search(r"multidirectional", str(schema.definition.doc), re.IGNORECASE) is not None


def _clash(one: Dimension, other: Dimension) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


@rule("shape/broadcast", "error", Typed)
def broadcast(typed: Typed) -> Faults:
    """Shapes do not broadcast: aligned at the end, two sizes of an axis must be equal, or one of them 1."""
    if not _broadcasts(typed.schema):
        return
    shapes = [known.shape for known in typed.inputs if known.shape is not None]
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-axis] for shape in shapes if len(shape) >= axis}
        clashing = sorted(size for size in sizes if isinstance(size, int) and size != 1)
        if len(clashing) > 1:
            together = " and ".join(map(shape_text, shapes))
            yield Fault(
                typed.node.where, f"{together} do not broadcast: axis {-axis} has {' and '.join(map(str, clashing))}"
            )
            return


def _shape(typed: Typed, place: int) -> Shape | None:
    return typed.inputs[place].shape if place < len(typed.inputs) else None


@rule("shape/matmul", "error", Typed)
def matmul(typed: Typed) -> Faults:
    """The matrices of a MatMul do not fit: the columns of the first must be as many as the rows of the second."""
    if typed.schema.key[:2] != ("", "MatMul"):
        return
    left, right = _shape(typed, 0), _shape(typed, 1)
    if left is None or right is None:
        return
    if not left or not right:
        yield Fault(typed.node.where, f"{shape_text(left)} x {shape_text(right)}: a MatMul takes no scalars")
    elif _clash(inner := left[-1], rows := right[-2:][0]):
        yield Fault(
            typed.node.where, f"{shape_text(left)} x {shape_text(right)}: the inner sizes are {inner} and {rows}"
        )


@rule("shape/gemm", "error", Typed)
def gemm(typed: Typed) -> Faults:
    """The matrices of a Gemm are not of rank 2, or their inner sizes differ."""
    if typed.schema.key[:2] != ("", "Gemm"):
        return
    left, right = _shape(typed, 0), _shape(typed, 1)
    for name, shape in (("A", left), ("B", right)):
        if shape is not None and len(shape) != 2:
            yield Fault(typed.node.where, f"{name} {shape_text(shape)} has rank {len(shape)}, a Gemm takes rank 2")
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return
    inner = left[0 if typed.attribute("transA") else 1]
    rows = right[1 if typed.attribute("transB") else 0]
    if _clash(inner, rows):
        turned = "".join(f" {name}ᵀ" for name in "AB" if typed.attribute(f"trans{name}"))
        message = f"A {shape_text(left)}, B {shape_text(right)}{turned and f' ({turned.strip()})'}"
        yield Fault(typed.node.where, f"{message}: the inner sizes are {inner} and {rows}")


@rule("shape/conv", "error", Typed)
def conv(typed: Typed) -> Faults:
    """The weights of a Conv do not fit its input: other ranks, channels other than group times the weights' own."""
    if typed.schema.key[:2] != ("", "Conv"):
        return
    x, w, bias = _shape(typed, 0), _shape(typed, 1), _shape(typed, 2)
    if x is not None and w is not None:
        shapes = f"X {shape_text(x)}, W {shape_text(w)}"
        group = typed.attribute("group")
        if len(x) != len(w):
            yield Fault(typed.node.where, f"{shapes}: the ranks are {len(x)} and {len(w)}")
        elif len(x) < 3:
            yield Fault(typed.node.where, f"{shapes}: a Conv takes rank 3 or more")
        elif isinstance(x[1], int) and isinstance(w[1], int) and x[1] != w[1] * group:
            yield Fault(typed.node.where, f"{shapes}: {x[1]} channels are not {w[1]} in each of {group} groups")
        elif isinstance(w[0], int) and group > 0 and w[0] % group:
            yield Fault(typed.node.where, f"{shapes}: {w[0]} output channels do not divide into {group} groups")
    if w and bias is not None and (len(bias) != 1 or _clash(bias[0], w[0])):
        yield Fault(typed.node.where, f"W {shape_text(w)}, B {shape_text(bias)}: the bias must be one number a channel")

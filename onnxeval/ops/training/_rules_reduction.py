"""Derivatives of the Reduce family, and of running sums and products.

Equal greatest or least elements share the gradient of ReduceMax and ReduceMin evenly. The norm ReduceL2 has the
derivative 0 at 0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import accumulate

from onnxeval.ops._axes import normalise_axes, normalise_axis
from onnxeval.ops._scalar import scalar
from onnxeval.ops.training._algebra import (
    absolute,
    cast,
    concat,
    equal,
    expand,
    exponential,
    filled,
    integers,
    logarithm,
    reshape,
    split,
    total,
    transpose,
    where,
)
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._tape import Gradients, Node, Variable, apply, rule

# The Reduce family, with the axes as an input


def _axes(x: Variable, axes: Variable | None, noop_with_empty_axes: int) -> tuple[int, ...]:
    along = () if axes is None else normalise_axes(axes.value, x.ndim)
    return along or (() if noop_with_empty_axes else tuple(range(x.ndim)))


def _with_axes(node: Node, g: Variable) -> tuple[Variable, Variable, Variable]:
    """The input, and the output and its gradient in a shape that broadcasts to that of the input."""
    x = node.present[0]
    along = _axes(x, node.inputs[1], node.attributes["noop_with_empty_axes"])
    kept = [1 if axis in along else size for axis, size in enumerate(x.shape)]
    return x, reshape(node.output(), kept), reshape(g, kept)


@rule("ReduceSum", 13)
def _reduce_sum(node: Node, g: Variable) -> Gradients:
    x, _, g = _with_axes(node, g)
    return lambda: expand(g, x.shape), None


@rule("ReduceL2", 18)
def _reduce_l2(node: Node, g: Variable) -> Gradients:
    x, y, g = _with_axes(node, g)
    return lambda: g * x / where(equal(y, 0), 1, y), None


@rule("ReduceLogSumExp", 28)
def _reduce_log_sum_exp(node: Node, g: Variable) -> Gradients:
    x, y, g = _with_axes(node, g)
    return lambda: g * exponential(x - y), None


@rule("ReduceMax", 20)
@rule("ReduceMin", 20)
def _reduce_extreme(node: Node, g: Variable) -> Gradients:
    x, y, g = _with_axes(node, g)
    along = [axis for axis, size in enumerate(y.shape) if size != x.shape[axis]]

    def shared() -> Variable:
        is_it = cast(equal(x, y), g.dtype)
        return g * is_it / total(is_it, along)

    return shared, None


@definition("ReduceL1", 18)
def _reduce_l1(x: Variable, axes: Variable | None, **options: int) -> Variable:
    return apply("ReduceSum", absolute(x), axes, **options)


@definition("ReduceSumSquare", 18)
def _reduce_sum_square(x: Variable, axes: Variable | None, **options: int) -> Variable:
    return apply("ReduceSum", x * x, axes, **options)


@definition("ReduceLogSum", 28)
def _reduce_log_sum(x: Variable, axes: Variable | None, **options: int) -> Variable:
    return logarithm(apply("ReduceSum", x, axes, **options))


@definition("ReduceMean", 18)
def _reduce_mean(x: Variable, axes: Variable | None, **options: int) -> Variable:
    along = _axes(x, axes, options["noop_with_empty_axes"])
    return apply("ReduceSum", x, axes, **options) / math.prod(x.shape[axis] for axis in along)


@definition("ReduceProd", 18)
def _reduce_prod(x: Variable, axes: Variable | None, *, keepdims: int, noop_with_empty_axes: int) -> Variable:
    """Halves times halves: dividing the product by a factor would fail at 0."""
    along = _axes(x, axes, noop_with_empty_axes)
    others = [axis for axis in range(x.ndim) if axis not in along]
    count = math.prod(x.shape[axis] for axis in along)
    factors = reshape(transpose(x, (*along, *others)), (count, *(x.shape[axis] for axis in others)))
    while count > 1:
        one, other, *odd = split(factors, 0, [count // 2, count // 2, *[1] * (count % 2)])
        factors = concat([one * other, *odd], 0)
        count = factors.shape[0]
    return reshape(
        factors if count else filled(x, 1, [x.shape[axis] for axis in others]),
        [x.shape[axis] if axis in others else 1 for axis in range(x.ndim) if axis in others or keepdims],
    )


# The Reduce family, with the axes as an attribute


def _by_attribute(op_type: str) -> Callable[..., Variable]:
    def reduction(x: Variable, *, axes: tuple[int, ...] | None, keepdims: int) -> Variable:
        given = integers(axes) if axes else None
        return apply(op_type, x, given, keepdims=keepdims, noop_with_empty_axes=0)

    return reduction


for _name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"):
    definition(f"Reduce{_name}", 13)(_by_attribute(f"Reduce{_name}"))
definition("ReduceSum", 11)(_by_attribute("ReduceSum"))


# Running sums and products


@rule("CumSum", 14)
def _cum_sum(node: Node, g: Variable) -> Gradients:
    exclusive, reverse = node.attributes["exclusive"], node.attributes["reverse"]
    return lambda: apply("CumSum", g, node.inputs[1], exclusive=exclusive, reverse=1 - reverse), None


@definition("CumProd", 26)
def _cum_prod(x: Variable, axis: Variable, *, exclusive: int, reverse: int) -> Variable:
    """Factor by factor, for the same reason as ReduceProd."""
    place = normalise_axis(scalar(axis.value, name="axis"), x.ndim)
    if not x.size:
        return x
    factors = split(x, place, [1] * x.shape[place])
    order = factors[::-1] if reverse else factors
    products = list(accumulate(order, operator.mul))
    if exclusive:
        products = [filled(order[0], 1), *products[:-1]]
    return concat(products[::-1] if reverse else products, place)

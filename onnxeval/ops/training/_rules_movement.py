"""Derivatives of operators that move elements: each element of an output is one of an input, or a constant.

Where an element came from, the operator itself tells: run on numbered elements instead, it gives their numbers. The
gradients of the outputs go back there and add up. Numbers start at 1, so that 0 is what the operator filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops.training._algebra import concat, filled, fit, integers, reshape, split, transpose
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._tape import Gradients, Node, Rule, Variable, apply, rule

_NOTHING: Mapping[str, Any] = {}


def moves(*places: int, filling: Mapping[str, Any] = _NOTHING) -> Rule:
    """The rule of an operator that moves the elements of the inputs at ``places``.

    ``filling`` are attributes that tell what to fill in, in the values that make it 0.
    """

    def wayback(node: Node, *gradients: Variable | None) -> Gradients:
        firsts: dict[int, int] = {}
        inputs: list[Any] = [None if given is None else given.value for given in node.inputs]
        count = 1
        for place in places:
            if inputs[place] is not None:
                firsts[place] = count
                inputs[place], count = _numbered(inputs[place], count)

        @cache
        def by_number() -> Variable:
            numbers = node.rerun(inputs, filling)
            like = next(gradient for gradient in gradients if gradient is not None)
            sums = filled(like, 0, (count,))
            for moved, gradient in zip(numbers, gradients, strict=False):
                if gradient is not None:
                    updates = reshape(gradient, (gradient.size,))
                    sums = apply("ScatterElements", sums, moved.reshape(-1), updates, axis=0, reduction="add")
            return sums

        def gradient_at(place: int) -> Callable[[], Variable] | None:
            given = node.inputs[place]
            if given is None or place not in firsts:
                return None
            first, shape, size = firsts[place], given.shape, given.size
            bounds = integers([first]), integers([first + size])
            return lambda: reshape(apply("Slice", by_number(), *bounds, integers([0])), shape)

        return [gradient_at(place) for place in range(len(inputs))]

    return wayback


def _numbered(x: Tensor, first: int) -> tuple[Tensor, int]:
    """Numbers from ``first`` on for all elements, and the next one."""
    return np.arange(first, first + x.size, dtype=np.int64).reshape(x.shape), first + x.size


for _name, _versions, _rule in (
    ("CenterCropPad", (18,), moves(0)),
    ("Compress", (28,), moves(0)),
    ("DepthToSpace", (28,), moves(0)),
    ("Gather", (13,), moves(0)),
    ("GatherElements", (13,), moves(0)),
    ("GatherND", (13,), moves(0)),
    ("MaxUnpool", (22,), moves(0)),
    ("OneHot", (28, 9), moves(2)),
    ("Pad", (25, 18), moves(0, 2)),
    ("Pad", (2, 1), moves(0, filling={"value": 0.0})),
    ("ReverseSequence", (28,), moves(0)),
    ("Slice", (13, 1), moves(0)),
    ("SpaceToDepth", (28,), moves(0)),
    ("TensorScatter", (24,), moves(0, 1)),
    ("Tile", (13, 1), moves(0)),
    ("Trilu", (14,), moves(0)),
):
    rule(_name, *_versions)(_rule)


# Scatter


_placed = moves(0, 2)


@rule("Scatter", 11)
@rule("ScatterElements", 18, 16)
def _scatter_elements(node: Node, g: Variable) -> Gradients:
    axis = node.attributes["axis"]
    return _scattered(node, g, lambda: apply("GatherElements", g, node.inputs[1], axis=axis))


@rule("ScatterND", 18, 16)
def _scatter_nd(node: Node, g: Variable) -> Gradients:
    return _scattered(node, g, lambda: apply("GatherND", g, node.inputs[1], batch_dims=0))


def _scattered(node: Node, g: Variable, picked: Callable[[], Variable]) -> Gradients:
    match node.attributes.get("reduction", "none"):
        case "none":
            return _placed(node, g)
        case "add":
            return lambda: g, None, picked
        case reduction:
            return [node.refuse(f"with the reduction {reduction!r}")] * 3


# Resize


_resized = moves(0, filling={"extrapolation_value": 0.0})


@rule("Resize", 19)
def _resize(node: Node, g: Variable) -> Gradients:
    return _nearest(node, g, _resized)


@rule("Resize", 10)
@rule("Upsample", 10, 7, 1)
def _upsample(node: Node, g: Variable) -> Gradients:
    return _nearest(node, g, moves(0))


def _nearest(node: Node, g: Variable, wayback: Rule) -> Gradients:
    if node.attributes["mode"] != "nearest":
        return [node.refuse(f"in the mode {node.attributes['mode']!r}")] * len(node.inputs)
    return wayback(node, g)


# The same elements in the same order, and whole tensors


@rule("Reshape", 25, 1)
@rule("Flatten", 25, 9)
@rule("Squeeze", 25, 11, 1)
@rule("Unsqueeze", 25, 11, 1)
def _reshape(node: Node, g: Variable) -> Gradients:
    x, *rest = node.inputs
    assert x is not None
    shape = x.shape
    return lambda: reshape(g, shape), *(None for _ in rest)


@rule("Transpose", 25)
def _transpose(node: Node, g: Variable) -> Gradients:
    perm = node.attributes["perm"] or range(g.ndim)[::-1]
    return (lambda: transpose(g, [int(axis) for axis in np.argsort(perm)]),)


@rule("Expand", 13)
def _expand(node: Node, g: Variable) -> Gradients:
    shape = node.present[0].shape
    return lambda: fit(g, shape), None


@rule("Concat", 13)
def _concat(node: Node, g: Variable) -> Gradients:
    axis = normalise_axis(node.attributes["axis"], g.ndim)
    parts = cache(lambda: split(g, axis, [x.shape[axis] for x in node.present]))
    return [partial(lambda place: parts()[place], place) for place in range(len(node.inputs))]


@definition("Concat", 1)
def _concat_default_axis(*xs: Variable, axis: int | None) -> Variable:
    return concat(xs, 1 if axis is None else axis)


@rule("Split", 18, 13, 11, 1)
def _split(node: Node, *gradients: Variable | None) -> Gradients:
    _x, *rest = node.inputs
    like = next(gradient for gradient in gradients if gradient is not None)
    axis = node.attributes["axis"] or 0
    parts = (
        filled(like, 0, value.shape) if gradient is None else gradient
        for value, gradient in zip(node.values, gradients, strict=True)
    )
    return lambda: concat([*parts], axis), *(None for _ in rest)


# What takes from an input no more than its shape and type


@rule("EyeLike", 22)
@rule("RandomNormalLike", 22)
@rule("RandomUniformLike", 22)
def _like(_: Node, __: Variable) -> Gradients:
    return (None,)


@rule("TopK", 24, 1)
def _top_k(node: Node, g: Variable, _: Variable | None) -> Gradients:
    x, *rest = node.inputs
    assert x is not None
    places, axis, shape = np.asarray(node.values[1]), node.attributes["axis"], x.shape

    def spread() -> Variable:
        return apply("ScatterElements", filled(g, 0, shape), places, g, axis=axis, reduction="add")

    return spread, *(None for _ in rest)

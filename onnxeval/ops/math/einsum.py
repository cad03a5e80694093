"""Einsum: inputs are contracted two at a time, as products of matrices. The versions differ in types alone."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._precision import in_float32
from onnxeval.ops.math._equation import Labels, label_sizes, read_equation
from onnxeval.registry import op


class _Labelled(NamedTuple):
    labels: Labels
    x: Tensor


@op("Einsum", versions=(12, 28))
@in_float32
def einsum(*xs: Tensor, equation: str, allocate: Allocate) -> Tensor:
    """The sum over all labels that the output of ``equation`` lacks, of the products of the inputs.

    Integers wrap around like their type. An ellipsis that the output lacks is summed over too. Raises ValueError for
    an equation that is malformed or does not fit the inputs. Source: Einsum-28.
    """
    inputs, output = read_equation(equation, [x.shape for x in xs])
    sizes = label_sizes(inputs, xs)
    factors = [
        _unstretched(_diagonal(labels, x, equation), sizes) for labels, x in zip(inputs, xs, strict=True)
    ]  # fmt: skip
    if len(factors) > 2:  # what is too large is refused before what leads to it is computed
        allocate(tuple(sizes[label] for label in output), factors[0].x.dtype)
    while len(factors) > 1:
        one, other = _cheapest_pair(factors, output, sizes)
        rest = [factor for i, factor in enumerate(factors) if i not in (one, other)]
        keep = {*output, *(label for factor in rest for label in factor.labels)}
        factors = [*rest, _contracted(factors[one], factors[other], keep, allocate)]
    result = _summed(factors[0], set(output))
    return result.x.transpose([result.labels.index(label) for label in output])


def _diagonal(labels: Labels, x: Tensor, equation: str) -> _Labelled:
    """The input with each label once: a label that is repeated runs along the diagonal."""
    for label in labels:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                sizes = f"{x.shape[first]} and {x.shape[second]}"
                raise ValueError(f"the label {label!r}, twice in a term of {equation!r}, has the sizes {sizes}")
            x = np.diagonal(x, axis1=first, axis2=second)
            labels = (*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label)
    return _Labelled(labels, x)


def _unstretched(factor: _Labelled, sizes: dict[str, int]) -> _Labelled:
    """Without the axes of size 1 that another input stretches: there the factor is the same all along."""
    lone = [i for i, label in enumerate(factor.labels) if factor.x.shape[i] != sizes[label]]
    labels = tuple(label for i, label in enumerate(factor.labels) if i not in lone)
    return _Labelled(labels, factor.x.squeeze(tuple(lone)))


def _cheapest_pair(factors: list[_Labelled], output: Labels, sizes: dict[str, int]) -> tuple[int, int]:
    """The two factors whose contraction gives the smallest result."""

    def size(pair: tuple[int, int]) -> int:
        others = {label for i, factor in enumerate(factors) if i not in pair for label in factor.labels}
        mine = {*factors[pair[0]].labels, *factors[pair[1]].labels}
        return math.prod(sizes[label] for label in mine & {*output, *others})

    return min(combinations(range(len(factors)), 2), key=size)


def _summed(factor: _Labelled, keep: set[str]) -> _Labelled:
    dropped = tuple(i for i, label in enumerate(factor.labels) if label not in keep)
    labels = tuple(label for label in factor.labels if label in keep)
    return _Labelled(labels, factor.x.sum(dropped, dtype=factor.x.dtype) if dropped else factor.x)


def _contracted(one: _Labelled, other: _Labelled, keep: set[str], allocate: Allocate) -> _Labelled:
    """The product of two factors, summed over the labels that nothing else needs."""
    one, other = _summed(one, keep | {*other.labels}), _summed(other, keep | {*one.labels})
    shared = [label for label in one.labels if label in other.labels]
    batch = [label for label in shared if label in keep]
    inner = [label for label in shared if label not in keep]
    rows = [label for label in one.labels if label not in shared]
    columns = [label for label in other.labels if label not in shared]
    left, right = _arranged(one, batch, rows, inner), _arranged(other, batch, inner, columns)
    product = allocate((*left.shape[:2], right.shape[2]), left.dtype)
    (np.matmul if inner else np.multiply)(left, right, out=product)
    sizes = dict(zip((*one.labels, *other.labels), (*one.x.shape, *other.x.shape), strict=True))
    labels = (*batch, *rows, *columns)
    return _Labelled(labels, product.reshape([sizes[label] for label in labels]))


def _arranged(factor: _Labelled, *groups: list[str]) -> Tensor:
    """The factor with its axes in groups, each group one axis."""
    order = [factor.labels.index(label) for group in groups for label in group]
    sizes = dict(zip(factor.labels, factor.x.shape, strict=True))
    return factor.x.transpose(order).reshape([math.prod(sizes[label] for label in group) for group in groups])

"""Derivatives of matrix products: MatMul, Gemm and Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from string import ascii_letters

import numpy as np

from onnxeval.ops.math._equation import Labels, label_sizes, read_equation
from onnxeval.ops.training._algebra import expand, fit, reshape, swapped
from onnxeval.ops.training._definitions import definition
from onnxeval.ops.training._tape import Gradients, Node, Variable, apply, rule


@rule("MatMul", 13)
def _matmul(node: Node, g: Variable) -> Gradients:
    """A vector is one row on the left, one column on the right."""
    a, b = node.present
    rows = a if a.ndim > 1 else reshape(a, (1, a.size))
    columns = b if b.ndim > 1 else reshape(b, (b.size, 1))
    batch = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    product = reshape(g, (*batch, rows.shape[-2], columns.shape[-1]))
    return (
        lambda: reshape(fit(apply("MatMul", product, swapped(columns)), rows.shape), a.shape),
        lambda: reshape(fit(apply("MatMul", swapped(rows), product), columns.shape), b.shape),
    )


@definition("Gemm", 13)
def _gemm(
    a: Variable, b: Variable, c: Variable | None, *, alpha: float, beta: float, transA: int, transB: int
) -> Variable:
    product = apply("MatMul", swapped(a) if transA else a, swapped(b) if transB else b) * alpha
    return product if c is None else product + c * beta


@definition("Gemm", 6)
def _gemm_broadcast(
    a: Variable,
    b: Variable,
    c: Variable,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
    broadcast: int,  # noqa: ARG001  the kernel checked it
) -> Variable:
    return _gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@rule("Einsum", 28)
def _einsum(node: Node, g: Variable) -> Gradients:
    """The gradient of each input is that of the output, contracted with all other inputs."""
    xs = node.present
    inputs, output = read_equation(node.attributes["equation"], [x.shape for x in xs])
    sizes = label_sizes(inputs, tuple(x.value for x in xs))

    def gradient_of(place: int) -> Variable:
        x, own = xs[place], dict(zip(inputs[place], xs[place].shape, strict=True))
        factors = [(g, output), *((xs[other], inputs[other]) for other in range(len(xs)) if other != place)]
        elsewhere = {label for _, labels in factors for label in labels}
        kept = tuple(label for label, size in own.items() if label in elsewhere and size == sizes[label])
        result = _contract(factors, kept)
        spread = dict(zip(kept, result.shape, strict=True))
        result = expand(reshape(result, [spread.get(label, 1) for label in own]), [*own.values()])
        return _on_the_diagonal(result, inputs[place], x.shape)

    return [partial(gradient_of, place) for place in range(len(xs))]


def _contract(factors: Sequence[tuple[Variable, Labels]], output: Labels) -> Variable:
    letters = dict(zip(dict.fromkeys(label for _, labels in factors for label in labels), ascii_letters, strict=False))
    terms = ["".join(letters[label] for label in labels) for _, labels in factors]
    equation = f"{','.join(terms)}->{''.join(letters[label] for label in output)}"
    return apply("Einsum", *(factor for factor, _ in factors), equation=equation)


def _on_the_diagonal(x: Variable, labels: Labels, shape: tuple[int, ...]) -> Variable:
    """What has each label once, where they repeat: zero but where the indices of one label are equal."""
    factors = [(x, tuple(dict.fromkeys(labels)))]
    output: list[str] = []
    for place, (label, size) in enumerate(zip(labels, shape, strict=True)):
        if label in output:
            again = f"{label} at {place}"
            factors.append((x.tape.constant(np.eye(size, dtype=x.dtype)), (label, again)))
            output.append(again)
        else:
            output.append(label)
    return _contract(factors, tuple(output)) if len(factors) > 1 else x

"""Strategies of the math operators that are not element-wise."""

from __future__ import annotations

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, strategy
from differential.values import SUMS


@strategy("Softmax", "LogSoftmax", ulps=16, scaled=True)
@strategy("Hardmax")
def over_an_axis(d: Drawing) -> Node:
    shape = d.shape(1 if d.version >= 13 else 2)  # the axis was 1 by default
    return d.node(d.tensor(0, shape), **d.some(axis=d.axis(len(shape))))


@strategy("MatMul", ulps=8, scaled=True, palettes=SUMS)
@strategy("MatMulInteger", palettes=("plain", "special", "wide"))
def matmul(d: Drawing) -> Node:
    a, b = matrices(d)
    if d.schema.key.op_type == "MatMul":
        return d.node(d.tensor(0, a), d.tensor(1, b))
    rows = a[-2] if len(a) > 1 else 1
    zeros = [d.one_of(None, (), (1,), (rows, 1) if len(a) == 2 else ()), d.one_of(None, (), (b[-1],), (1,))]
    points = [None if shape is None else d.tensor(slot, shape) for slot, shape in zip((0, 1), zeros, strict=True)]
    return d.node(d.tensor(0, a), d.tensor(1, b), *points)


def matrices(d: Drawing) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes whose matrix product there is."""
    rows, inner, columns = d.size(), d.size(), d.size()
    batch = d.shape(0, 2, (0, 3))
    a = (*d.partner(batch), rows, inner) if d.integer(0, 4) else (inner,)
    b = (*batch, inner, columns) if d.integer(0, 4) else (inner,)
    return a, b


@strategy("QLinearMatMul", palettes=("plain", "wide"), bindings=700)  # onnxruntime knows few of them
def quantized_matmul(d: Drawing) -> Node:
    rows, inner, columns = d.size(1), d.size(1), d.size(1)
    batch = d.shape(0, 2, (1, 3))
    a, b = (*batch, rows, inner), (*batch, inner, columns)
    scales = [d.one_of(np.array(0.5, np.float32), np.array([0.125], np.float32)).astype(d.dtype(1)) for _ in range(3)]
    points = [d.tensor(slot, scale.shape) for slot, scale in zip((2, 5, 7), scales, strict=True)]
    return d.node(d.tensor(0, a), scales[0], points[0], d.tensor(3, b), scales[1], points[1], scales[2], points[2])


@strategy("Gemm", ulps=16, scaled=True, palettes=SUMS)
def gemm(d: Drawing) -> Node:
    rows, inner, columns = d.size(), d.size(), d.size()
    trans_a, trans_b = d.integer(0, 1), d.integer(0, 1)
    a = (inner, rows) if trans_a else (rows, inner)
    b = (columns, inner) if trans_b else (inner, columns)
    c = d.one_of((rows, columns), (), (1,), (columns,), (rows, 1), (1, columns), (1, 1), None)
    if c is None and d.version < 11:
        c = (rows, columns)
    factors = d.some(alpha=d.one_of(2.0, -1.0, 0.0), beta=d.one_of(2.0, -1.0, 0.0))
    third = None if c is None else d.tensor(2, c)
    return d.node(d.tensor(0, a), d.tensor(1, b), third, transA=trans_a, transB=trans_b, **factors)


_EQUATIONS = {
    "ij,jk->ik": 2,
    "ij,jk": 2,
    "bij,bjk->bik": 2,
    "ij->ji": 1,
    "ii->i": 1,
    "ii": 1,
    "ij->": 1,
    "ij->i": 1,
    "i,j->ij": 2,
    "i,i": 2,
    "...ij,...jk->...ik": 2,
    "...i->...": 1,
    "bij, bjk , bkl -> bil": 3,
    "ab,cd->abcd": 2,
    "ba,bc": 2,
    "aab->ab": 1,
    "Ab,bA->A": 2,
}


@strategy("Einsum", ulps=8, scaled=True, palettes=SUMS)
def einsum(d: Drawing) -> Node:
    equation = d.one_of(*_EQUATIONS)
    sizes: dict[str, int] = {}
    batch = d.shape(0, 2, (1, 3))
    arrays = []
    for term in equation.partition("->")[0].replace(" ", "").split(","):
        shape: list[int] = list(d.partner(batch)) if "..." in term else []
        shape += [sizes.setdefault(letter, d.size()) for letter in term.replace("...", "")]
        arrays.append(d.tensor(0, shape))
    return d.node(*arrays, equation=equation)


@strategy("CumSum", "CumProd", ulps=8, scaled=True, palettes=SUMS)
def cumulative(d: Drawing) -> Node:
    shape = d.shape(1, 3)
    axis = np.array(d.axis(len(shape)), d.dtype(1))
    return d.node(d.tensor(0, shape), axis, **d.some(exclusive=d.integer(0, 1), reverse=d.integer(0, 1)))


@strategy("TopK")
def top_k(d: Drawing) -> Node:
    shape = d.shape(1, 3, (1, 5))
    axis = d.axis(len(shape))
    k = d.integer(0, shape[axis])
    options = d.some(axis=axis, largest=d.integer(0, 1))
    if "axis" not in options:
        k = d.integer(0, shape[-1])
    x = d.tensor(0, shape)
    if d.has("k"):
        return d.node(x, k=max(k, 1), wanted=(True, True), **options)
    return d.node(x, np.array([k], np.int64), wanted=(True, True), **options)


@strategy("Expand")
def expand(d: Drawing) -> Node:
    shape = d.shape()
    target = d.partner(shape)
    x, to = (shape, target) if d.flag() else (target, shape)
    return d.node(d.tensor(0, x), np.array(to, np.int64))


@strategy("Det", ulps=64, scaled=True, palettes=("plain",))
def determinant(d: Drawing) -> Node:
    n = d.size(1)
    return d.node(d.tensor(0, (*d.shape(0, 2, (0, 3)), n, n)))


@strategy("BlackmanWindow", "HammingWindow", "HannWindow", ulps=4, scaled=True, absolute=4, single=True)
def window(d: Drawing) -> Node:
    kinds = d.some(output_datatype=d.one_of(1, 11, 6, 3, 10), periodic=d.integer(0, 1))
    return d.node(np.array(d.integer(0, 9), d.dtype(0)), **kinds)


@strategy("MelWeightMatrix", ulps=4, scaled=True)
def mel_weights(d: Drawing) -> Node:
    bins, length, rate = d.integer(1, 6), d.one_of(16, 32, 64), d.one_of(8000, 8192, 16000)
    low, high = d.one_of(0.0, 100.0), d.one_of(3000.0, 4000.0)
    whole = (np.array(v, d.dtype(i)) for i, v in enumerate((bins, length, rate)))
    edges = (np.array(v, d.dtype(3 + i)) for i, v in enumerate((low, high)))
    return d.node(*whole, *edges, **d.some(output_datatype=d.one_of(1, 11)))


@strategy("DFT", ulps=64, scaled=True, single=True, palettes=("plain",))
def fourier(d: Drawing) -> Node:
    inverse, onesided = d.integer(0, 1), d.integer(0, 1)
    real = not inverse and (onesided or d.flag())
    shape = (*d.shape(2, 3, (1, 5)), 1 if real else 2)
    axis = d.integer(0, len(shape) - 2) if d.flag() else d.integer(-len(shape), -2)
    length = np.array(d.integer(1, 8), d.dtype(1)) if d.flag() else None
    options = {"inverse": inverse, "onesided": onesided}
    if d.has("axis"):
        return d.node(d.tensor(0, shape), length, axis=axis % len(shape), **options)
    return d.node(d.tensor(0, shape), length, np.array(axis, np.int64) if d.flag() else None, **options)


@strategy("STFT", ulps=64, scaled=True, palettes=("plain",))
def short_time(d: Drawing) -> Node:
    onesided = d.integer(0, 1)
    shape = (d.integer(1, 2), d.integer(8, 16), 1 if onesided or d.flag() else 2)
    frame, step = d.integer(2, 8), np.array(d.integer(1, 4), d.dtype(1))
    form = d.integer(0, 2)
    windowing = d.tensor(2, (frame,)) if form else None
    length = np.array(frame, d.dtype(3)) if form != 1 else None
    return d.node(d.tensor(0, shape), step, windowing, length, onesided=onesided)


@strategy("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", ulps=64, scaled=True, palettes=SUMS)
def loss(d: Drawing) -> Node:
    batch, classes = d.size(1), d.size(1)
    rest = d.shape(0, 2, (1, 3))
    kept = d.some(reduction=d.one_of("none", "mean", "sum"), ignore_index=d.one_of(-1, 0, 1, -100))
    target = d.integers((batch, *rest), 0, classes - 1, d.dtype(1))
    ignored = kept.get("ignore_index")
    if ignored is not None and d.flag() and target.size:
        target.flat[0] = ignored
    weight = d.tensor(2, (classes,)) if d.flag() else None
    two = d.schema.key.op_type == "SoftmaxCrossEntropyLoss" and d.flag()
    return d.node(d.tensor(0, (batch, classes, *rest)), target, weight, wanted=(True,) * (1 + two), **kept)


@strategy("SwiGLU", ulps=64)
def swiglu(d: Drawing) -> Node:
    shape = d.shape()
    return d.node(d.tensor(0, shape), d.tensor(1, shape), **d.some(alpha=d.one_of(0.5, 1.5, -1.0)))

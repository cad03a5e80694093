"""Strategies of the reduction operators."""

from __future__ import annotations

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, strategy
from differential.values import PALETTES, SUMS

from onnxeval.dtypes import is_integer


@strategy("ReduceMax", "ReduceMin", ulps=1)
@strategy("ReduceSum", "ReduceMean", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2", ulps=8, palettes=SUMS)
@strategy("ReduceLogSum", "ReduceLogSumExp", ulps=16, scaled=True, absolute=16, palettes=SUMS)
def reduce(d: Drawing) -> Node:
    shape = d.shape()
    axes = d.axes(len(shape), 1) if shape and d.flag() else None
    options = d.some(keepdims=d.integer(0, 1), noop_with_empty_axes=d.integer(0, 1))
    # sums of integers are exact whatever they are
    x = d.tensor(0, shape, d.one_of(*PALETTES) if is_integer(d.dtype(0)) else None)
    if d.has("axes"):
        return d.node(x, axes=axes, **options)
    given = d.one_of(None, []) if axes is None else axes
    return d.node(x, None if given is None else np.array(given, np.int64), **options)


@strategy("ArgMax", "ArgMin")
def arg(d: Drawing) -> Node:
    shape = d.shape(1)
    options = d.some(axis=d.axis(len(shape)), keepdims=d.integer(0, 1), select_last_index=d.integer(0, 1))
    return d.node(d.tensor(0, shape), **options)

"""Concat, Expand and Tile, of any type but strings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from onnxeval.arena import empty
from onnxeval.dtypes import Tensor
from onnxeval.fast import replaces, replayable
from onnxeval.fast._checks import MOST_AXES, bits, is_movable
from onnxeval.fast.engine import native
from onnxeval.ops._allocate import Allocate
from onnxeval.ops.math.expand import expand
from onnxeval.ops.tensor.concat_split import concat, concat_default_axis, tile
from onnxeval.registry import Kernel

#: Arrays that one call joins: it holds their buffers.
_MOST_JOINED = 11

#: Shapes whose results are remembered.
_MOST_PLANS = 256


@lru_cache(_MOST_PLANS)
def _joined_shape(shapes: tuple[tuple[int, ...], ...], axis: int) -> tuple[int, ...] | None:
    """The shape of what arrays make one after the other; None where they do not fit."""
    first = shapes[0]
    if not 0 <= axis < len(first):
        return None
    around = first[:axis], first[axis + 1 :]
    if any(len(each) != len(first) or (each[:axis], each[axis + 1 :]) != around for each in shapes):
        return None
    return (*first[:axis], sum(each[axis] for each in shapes), *first[axis + 1 :])


def _bind_concat(readable: Kernel) -> Callable[[Sequence[Tensor | None], Mapping[str, Any]], Kernel]:
    def bind(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
        kernels = native()
        assert kernels is not None

        @replayable
        def concatenated(*inputs: Tensor, axis: int | None) -> Tensor:
            dtype = inputs[0].dtype
            if len(inputs) > 1 and all(is_movable(x) and x.dtype == dtype for x in inputs):
                along = 1 if axis is None else axis
                along += inputs[0].ndim if along < 0 else 0
                shape = _joined_shape(tuple([x.shape for x in inputs]), along)
                if shape is not None:
                    return _joined(inputs, empty(shape, dtype), along)
            return readable(*inputs, axis=axis)  # type: ignore[no-any-return]

        def _joined(inputs: Sequence[Tensor], result: Tensor, along: int) -> Tensor:
            whole = bits(result)
            if len(inputs) <= _MOST_JOINED:
                kernels.concat(tuple([bits(x) for x in inputs]), whole, along)
                return result
            start = 0
            for first in range(0, len(inputs), _MOST_JOINED):
                some = tuple([bits(x) for x in inputs[first : first + _MOST_JOINED]])
                stop = start + sum([x.shape[along] for x in some])
                kernels.concat(some, whole[(*(slice(None),) * along, slice(start, stop))], along)
                start = stop
            return result

        return concatenated

    return bind


for _kernel in (concat, concat_default_axis):
    replaces(_kernel)(_bind_concat(_kernel))


@replaces(expand)
def bind_expand(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """Expand."""
    kernels = native()
    assert kernels is not None

    @replayable
    def expanded(x: Tensor, shape: Tensor, *, allocate: Allocate) -> Tensor:
        wanted = tuple(shape.tolist()) if shape.ndim == 1 else (-1,)
        if is_movable(x) and len(wanted) <= MOST_AXES and min(wanted, default=0) >= 0:
            try:
                common = np.broadcast_shapes(x.shape, wanted)
            except ValueError:
                return expand(x, shape, allocate=allocate)
            result = allocate(common, x.dtype)
            kernels.copy(bits(x), bits(result))
            return result
        return expand(x, shape, allocate=allocate)

    return expanded


@replaces(tile)
def bind_tile(_constants: Sequence[Tensor | None], _attributes: Mapping[str, Any]) -> Kernel:
    """Tile: as (repeat, size) pairs of axes, the result is one broadcast of the input."""
    kernels = native()
    assert kernels is not None

    @replayable
    def tiled(x: Tensor, repeats: Tensor, *, allocate: Allocate) -> Tensor:
        counts = repeats.tolist() if repeats.shape == (x.ndim,) else [-1]
        if not is_movable(x) or 2 * x.ndim > MOST_AXES or min(counts, default=0) < 0 or max(counts, default=1) == 1:
            return tile(x, repeats, allocate=allocate)
        result = allocate(tuple([n * size for n, size in zip(counts, x.shape, strict=True)]), x.dtype)
        if result.size:
            pairs = bits(result).reshape([side for pair in zip(counts, x.shape, strict=True) for side in pair])
            kernels.copy(bits(x)[tuple([part for _ in x.shape for part in (None, slice(None))])], pairs)
        return result

    return tiled

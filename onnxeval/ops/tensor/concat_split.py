"""Concat, Split, Tile and Transpose: whole tensors joined, cut, repeated and turned.

Concat has a default axis of 1 in version 1 alone. The lengths of Split were an attribute before 13, beside an input in
version 1; ``num_outputs`` arrived in 18, where one of the two must be given. Tile repeated along one axis before 6.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnxeval.dtypes import Tensor
from onnxeval.ops._allocate import Allocate
from onnxeval.ops._axes import normalise_axis
from onnxeval.ops._parts import cut, joined
from onnxeval.registry import op


@op("Concat", versions=(4, 11, 13))
def concat(*inputs: Tensor, axis: int) -> Tensor:
    """The inputs one after the other along ``axis``; their other sizes agree, else ValueError. Source: Concat-13."""
    return joined(inputs, axis)


@op("Concat", versions=(1,))
def concat_default_axis(*inputs: Tensor, axis: int | None) -> Tensor:
    """As `concat`, along axis 1 where none is given. Source: Concat-1."""
    return concat(*inputs, axis=1 if axis is None else axis)


@op("Split", versions=(18,))
def split(
    x: Tensor, lengths: Tensor | None, *, axis: int, num_outputs: int | None, n_outputs: int
) -> tuple[Tensor, ...]:
    """``x`` cut along ``axis`` into parts of the given lengths, or into ``num_outputs`` equal ones; views.

    Where equal parts do not come out even, the last one is smaller. ValueError unless exactly one of the two is given,
    where the lengths do not add up to the size, where the last equal part would have less than no elements, and where
    the number of parts is not that of the node's outputs. Source: Split-18.
    """
    if num_outputs is None:
        if lengths is None:
            raise ValueError("neither the input split nor the attribute num_outputs is given")
        return _parts(x, _listed(lengths), axis, n_outputs)
    if lengths is not None:
        raise ValueError(f"both the input split and the attribute num_outputs = {num_outputs} are given")
    if num_outputs != n_outputs:
        raise ValueError(f"num_outputs is {num_outputs}, the node has {n_outputs} outputs")
    size = x.shape[normalise_axis(axis, x.ndim)]
    part = -(-size // num_outputs)
    last = size - part * (num_outputs - 1)
    if last < 0:
        raise ValueError(f"{size} elements do not fill {num_outputs} parts of {part} with only the last one smaller")
    return _parts(x, [part] * (num_outputs - 1) + [last], axis, n_outputs)


@op("Split", versions=(13,))
def split_evenly_by_default(x: Tensor, lengths: Tensor | None, *, axis: int, n_outputs: int) -> tuple[Tensor, ...]:
    """As `split`; without lengths into as many equal parts as the node has outputs. Source: Split-13."""
    return _parts(x, None if lengths is None else _listed(lengths), axis, n_outputs)


@op("Split", versions=(2, 11))
def split_attribute(x: Tensor, *, split: tuple[int, ...] | None, axis: int, n_outputs: int) -> tuple[Tensor, ...]:
    """As `split_evenly_by_default`, with the lengths an attribute. Source: Split-11."""
    return _parts(x, split, axis, n_outputs)


@op("Split", versions=(1,))
def split_attribute_or_input(
    x: Tensor, lengths: Tensor | None, *, split: tuple[int, ...] | None, axis: int | None, n_outputs: int
) -> tuple[Tensor, ...]:
    """As `split_attribute`; the lengths may be an input of the type of ``x`` instead.

    The text names no default for ``axis``: 0, that of version 2. Source: Split-1.
    """
    if lengths is not None and split is not None:
        raise ValueError("split is given twice, as an input and as an attribute")
    given = split if lengths is None else _listed(lengths)
    return _parts(x, given, axis or 0, n_outputs)


def _listed(lengths: Tensor) -> list[int]:
    if lengths.ndim != 1:
        raise ValueError(f"the lengths are a tensor of rank {lengths.ndim}, expected 1")
    return [_whole(length, "length") for length in lengths.tolist()]


def _whole(number: float, what: str) -> int:
    """An integer that version 1 has as an element of a float tensor."""
    if number != number // 1:
        raise ValueError(f"{what} {number} is not an integer")
    return int(number)


def _parts(x: Tensor, lengths: Sequence[int] | None, axis: int, n_outputs: int) -> tuple[Tensor, ...]:
    if lengths is None:
        size = x.shape[normalise_axis(axis, x.ndim)]
        if size % n_outputs:
            raise ValueError(f"{size} elements on axis {axis} do not split into {n_outputs} equal parts")
        lengths = [size // n_outputs] * n_outputs
    if len(lengths) != n_outputs:
        raise ValueError(f"{len(lengths)} lengths {list(lengths)} for {n_outputs} outputs")
    return tuple(cut(x, lengths, axis))


@op("Tile", versions=(6, 13))
def tile(x: Tensor, repeats: Tensor, *, allocate: Allocate) -> Tensor:
    """``x`` repeated ``repeats[i]`` times along each axis i. ValueError where one is negative. Source: Tile-13."""
    if repeats.shape != (x.ndim,):
        raise ValueError(f"repeats are of shape {list(repeats.shape)}, expected [{x.ndim}], one for each axis")
    return _tiled(x, repeats.tolist(), allocate)


@op("Tile", versions=(1,))
def tile_one_axis(x: Tensor, tiles: Tensor, axis: Tensor, *, allocate: Allocate) -> Tensor:
    """``x`` repeated ``tiles`` times along ``axis``, both of one element and of the type of ``x``. Source: Tile-1."""
    if tiles.size != 1 or axis.size != 1:
        raise ValueError(f"tiles {list(tiles.shape)} and axis {list(axis.shape)} are not of one element each")
    repeats = [1] * x.ndim
    repeats[normalise_axis(_whole(axis.item(), "axis"), x.ndim)] = _whole(tiles.item(), "tiles")
    return _tiled(x, repeats, allocate)


def _tiled(x: Tensor, repeats: list[int], allocate: Allocate) -> Tensor:
    if min(repeats, default=0) < 0:
        raise ValueError(f"repeats {repeats} must not be negative")
    if all(n == 1 for n in repeats):
        return x
    output = allocate(tuple(n * size for n, size in zip(repeats, x.shape, strict=True)), x.dtype)
    if output.size:
        # As (repeat, size) pairs of axes, the output is one broadcast of x.
        pairs = output.reshape([side for pair in zip(repeats, x.shape, strict=True) for side in pair])
        pairs[...] = x.reshape([side for size in x.shape for side in (1, size)])
    return output


@op("Transpose", versions=(1, 13, 21, 23, 24, 25))
def transpose(data: Tensor, *, perm: tuple[int, ...] | None) -> Tensor:
    """Axis i of the output is axis ``perm[i]`` of ``data``; all axes are reversed without ``perm``. A view.

    ValueError where ``perm`` is no permutation of the axes. Source: Transpose-25.
    """
    if perm is None:
        return data.transpose()
    if sorted(perm) != list(range(data.ndim)):
        raise ValueError(f"perm {list(perm)} is no permutation of the {data.ndim} axes")
    return data.transpose(perm)

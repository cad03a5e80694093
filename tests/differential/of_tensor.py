"""Strategies of operators that move elements about."""

from __future__ import annotations

import math

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, strategy


def int64(values: object) -> np.ndarray:
    return np.array(values, np.int64)


@strategy("Reshape")
def reshape(d: Drawing) -> Node:
    shape = d.shape()
    new = [shape[axis] for axis in d.permutation(len(shape))]
    if len(new) > 1 and d.flag():
        new[:2] = [new[0] * new[1]]
    if d.flag():
        new.insert(d.integer(0, len(new)), 1)
    allow_zero = d.integer(0, 1) if d.has("allowzero") else 0
    copied = [i for i, size in enumerate(new) if i < len(shape) and size == shape[i]]
    if copied and not allow_zero and d.flag():
        new[d.one_of(*copied)] = 0
    unknown = [i for i, size in enumerate(new) if size or not allow_zero]
    if unknown and math.prod(shape) and d.flag():
        new[d.one_of(*unknown)] = -1
    return d.node(d.tensor(0, shape), int64(new), **({"allowzero": 1} if allow_zero else {}))


@strategy("Transpose")
def transpose(d: Drawing) -> Node:
    shape = d.shape()
    return d.node(d.tensor(0, shape), **d.some(perm=d.permutation(len(shape))))


@strategy("Squeeze")
def squeeze(d: Drawing) -> Node:
    shape = tuple(1 if d.flag() else size for size in d.shape())
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    axes = None
    if ones and d.flag():
        axes = [ones[i] - d.one_of(0, len(shape)) * (d.version >= 11) for i in d.axes(len(ones), 1, 99)]
    return with_axes(d, d.tensor(0, shape), axes)


@strategy("Unsqueeze")
def unsqueeze(d: Drawing) -> Node:
    shape = d.shape(0, 3)
    rank = len(shape) + d.integer(0, 2)
    axes = d.axes(rank, 0, 11)[: rank - len(shape)]
    while len({axis % rank for axis in axes}) < rank - len(shape):
        axes.append(next(a for a in range(rank) if a not in {axis % rank for axis in axes}))
    return with_axes(d, d.tensor(0, shape), axes)


def with_axes(d: Drawing, x: np.ndarray, axes: list[int] | None) -> Node:
    """Axes were an attribute before they were an input."""
    if d.has("axes"):
        return d.node(x, axes=axes)
    return d.node(x, None if axes is None else int64(axes))


@strategy("Flatten")
def flatten(d: Drawing) -> Node:
    shape = d.shape()
    axis = d.integer(-len(shape) if d.version >= 11 else 0, len(shape))
    return d.node(d.tensor(0, shape), **d.some(axis=axis if shape or d.version >= 11 else 0))


@strategy("Concat")
def concat(d: Drawing) -> Node:
    shape = list(d.shape(1))
    axis = d.axis(len(shape))
    parts = []
    for _ in range(d.integer(1, 3)):
        shape[axis] = d.size()
        parts.append(d.tensor(0, shape))
    return d.node(*parts, axis=axis)


@strategy("Split")
def split(d: Drawing) -> Node:
    shape = list(d.shape(1))
    axis = d.axis(len(shape))
    parts = d.integer(1, 3)
    options = d.some(axis=axis)
    axis = options.get("axis", 0)
    wanted = (True,) * parts
    if d.flag():
        sizes = [d.size() for _ in range(parts)]
        shape[axis] = sum(sizes)
        if d.has("split"):
            return d.node(d.tensor(0, shape), wanted=wanted, split=sizes, **options)
        return d.node(d.tensor(0, shape), int64(sizes), wanted=wanted, **options)
    if not d.has("num_outputs"):
        shape[axis] = parts * d.size()
    return d.node(d.tensor(0, shape), wanted=wanted, num_outputs=parts, **options)


@strategy("Slice")
def slice_(d: Drawing) -> Node:
    shape = d.shape(1)
    axes = d.axes(len(shape), 1) if d.flag() else None
    count = len(shape) if axes is None else len(axes)
    steps = [d.one_of(1, -1, 2, -2, 3, -5) if d.version >= 10 else 1 for _ in range(count)]
    ends = [d.one_of(*range(-6, 7), 2**31 - 1, 2**63 - 1, -(2**31), -(2**63) + 1) for _ in range(count)]
    starts = [d.one_of(*range(-6, 7), 2**31 - 1, -(2**31)) for _ in range(count)]
    x = d.tensor(0, shape)
    if d.has("starts"):
        return d.node(x, starts=starts, ends=ends, axes=axes)
    kind = d.dtype(1)
    if kind == np.int32:
        ends = [min(max(end, -(2**31)), 2**31 - 1) for end in ends]
    last = np.array(steps, kind) if d.flag() else None
    return d.node(x, *(None if v is None else np.array(v, kind) for v in (starts, ends, axes)), last)


@strategy("Tile")
def tile(d: Drawing) -> Node:
    shape = d.shape()
    return d.node(d.tensor(0, shape), int64([d.size(0, 3) for _ in shape]))


@strategy("Gather")
def gather(d: Drawing) -> Node:
    shape = d.shape(1, 3, (1, 4))
    axis = d.axis(len(shape))
    options = d.some(axis=axis)
    size = shape[options.get("axis", 0)]
    indices = d.integers(d.shape(0, 2), -size if d.version >= 11 else 0, size - 1, d.dtype(1))
    return d.node(d.tensor(0, shape), indices, **options)


@strategy("GatherElements")
def gather_elements(d: Drawing) -> Node:
    shape = d.shape(1, 3, (1, 4))
    axis = d.axis(len(shape))
    options = d.some(axis=axis)
    at = options.get("axis", 0) % len(shape)
    index_shape = [d.size() if i == at else d.integer(1, size) for i, size in enumerate(shape)]
    return d.node(d.tensor(0, shape), d.integers(index_shape, -shape[at], shape[at] - 1, d.dtype(1)), **options)


def paths(d: Drawing, shape: tuple[int, ...], batch: tuple[int, ...], depth: int, dtype: type = np.int64) -> np.ndarray:
    """Index tuples into the leading axes of a shape."""
    columns = [d.integers(batch, -size, size - 1, dtype) for size in shape[:depth]]
    return np.stack(columns, axis=-1) if columns else np.zeros((*batch, 0), dtype)


@strategy("GatherND")
def gather_nd(d: Drawing) -> Node:
    batch_dims = d.integer(0, 1) if d.has("batch_dims") else 0
    batch = tuple(d.size(1, 3) for _ in range(batch_dims))
    inner = d.shape(1, 3, (1, 4))
    indices = paths(d, inner, (*batch, *d.shape(0, 2, (0, 3))), d.integer(1, len(inner)))
    options = {"batch_dims": batch_dims} if batch_dims else {}
    return d.node(d.tensor(0, (*batch, *inner)), indices, **options)


#: "max" and "min" came with version 18.
_REDUCTIONS = ("none", "add", "mul", "max", "min")


@strategy("ScatterND", palettes=("plain", "special"), ulps=1)
def scatter_nd(d: Drawing) -> Node:
    shape = d.shape(1, 3, (1, 4))
    depth = d.integer(1, len(shape))
    batch = d.shape(0, 2, (0, 3))
    options = d.some(reduction=d.one_of(*_REDUCTIONS[: 5 if d.version >= 18 else 3]))
    indices = paths(d, shape, batch, depth)
    if options.get("reduction", "none") == "none":  # which of two updates of one place wins is open
        chosen = d.permutation(math.prod(shape[:depth]))[: math.prod(batch)]
        batch = (len(chosen),)
        indices = np.stack(np.unravel_index(np.array(chosen, int), shape[:depth]), -1).astype(np.int64)
    return d.node(d.tensor(0, shape), indices, d.tensor(2, (*batch, *shape[depth:])), **options)


@strategy("ScatterElements", "Scatter", palettes=("plain", "special"), ulps=1)
def scatter_elements(d: Drawing) -> Node:
    shape = d.shape(1, 3, (1, 4))
    options = d.some(axis=d.axis(len(shape), 9), reduction=d.one_of(*_REDUCTIONS[: 5 if d.version >= 18 else 3]))
    at = options.get("axis", 0) % len(shape)
    index_shape = [d.integer(1, size) for size in shape]
    if options.get("reduction", "none") == "none":
        line = np.array(d.permutation(shape[at])[: index_shape[at]]).reshape(
            [-1 if i == at else 1 for i in range(len(shape))]
        )
        indices = np.broadcast_to(line - shape[at] * d.integer(0, 1) * (d.version >= 11), index_shape).astype(
            d.dtype(1)
        )
    else:
        indices = d.integers(index_shape, -shape[at], shape[at] - 1, d.dtype(1))
    return d.node(d.tensor(0, shape), indices, d.tensor(2, index_shape), **options)


@strategy("Compress")
def compress(d: Drawing) -> Node:
    shape = d.shape(1)
    options = d.some(axis=d.axis(len(shape)))
    length = shape[options["axis"]] if "axis" in options else math.prod(shape)
    return d.node(d.tensor(0, shape), d.array(bool, (d.integer(0, length),)), **options)


@strategy("DepthToSpace", "SpaceToDepth")
def depth_space(d: Drawing) -> Node:
    block = d.integer(1, 3)
    batch, channels, height, width = d.size(), d.size(1, 2), d.size(1, 2), d.size(1, 2)
    if d.schema.key.op_type == "DepthToSpace":
        shape = (batch, channels * block * block, height, width)
    else:
        shape = (batch, channels, height * block, width * block)
    return d.node(d.tensor(0, shape), blocksize=block, **d.some(mode=d.one_of("DCR", "CRD")))


@strategy("Shape")
def shape_(d: Drawing) -> Node:
    return d.node(d.tensor(0, d.shape()), **d.some(start=d.integer(-5, 5), end=d.integer(-5, 5)))


@strategy("Size", "NonZero")
def size(d: Drawing) -> Node:
    return d.node(d.tensor(0, d.shape()))


@strategy("Trilu")
def trilu(d: Drawing) -> Node:
    k = int64(d.integer(-4, 4)) if d.flag() else None
    return d.node(d.tensor(0, d.shape(2)), k, **d.some(upper=d.integer(0, 1)))


@strategy("EyeLike")
def eye_like(d: Drawing) -> Node:
    options = d.some(dtype=d.one_of(1, 7, 11, 6, 10, 12, 9), k=d.integer(-4, 4))
    return d.node(d.tensor(0, (d.size(), d.size())), **options)


@strategy("OneHot", bindings=2000)  # onnxruntime knows few of them
def one_hot(d: Drawing) -> Node:
    depth = d.integer(1, 5)
    shape = d.shape(0, 3)
    dtype = d.dtype(0)
    least = 0 if dtype.kind == "u" else -depth - 1
    indices = d.integers(shape, least, depth, dtype)
    size_ = np.array(depth, d.dtype(1)).reshape(d.one_of((), (1,)))
    return d.node(indices, size_, d.tensor(2, (2,)), **d.some(axis=d.integer(-len(shape) - 1, len(shape))))


@strategy("Unique")
def unique(d: Drawing) -> Node:
    shape = d.shape(1, 3, (1, 4))
    return d.node(
        d.tensor(0, shape), wanted=(True,) * d.integer(1, 4), **d.some(axis=d.axis(len(shape)), sorted=d.integer(0, 1))
    )


@strategy("ReverseSequence")
def reverse_sequence(d: Drawing) -> Node:
    shape = (d.size(1), d.size(1), *d.shape(0, 2))
    time = d.integer(0, 1)
    lengths = d.integers((shape[1 - time],), 1, shape[time])
    return d.node(d.tensor(0, shape), lengths, time_axis=time, batch_axis=1 - time)


@strategy("ConstantOfShape")
def constant_of_shape(d: Drawing) -> Node:
    from differential.drawing import element_of
    from onnx import helper

    from onnxeval.dtypes import BY_ELEMENT_TYPE, ELEMENT_TYPES

    types = sorted(ELEMENT_TYPES[element_of(name)] for name in d.schema.outputs[0].allowed)
    dtype = BY_ELEMENT_TYPE[d.one_of(*types)]
    value = d.array(dtype, (1,))
    packed = helper.make_tensor("value", ELEMENT_TYPES[dtype], (1,), value)
    return d.node(int64(d.shape()), **d.some(value=packed))


@strategy("Range", ulps=4, scaled=True, palettes=("plain",))
def range_(d: Drawing) -> Node:
    start, limit, delta = (d.tensor(slot, ()) for slot in range(3))
    return d.node(start, limit, delta if delta else np.ones((), delta.dtype))


@strategy("Pad")
def pad(d: Drawing) -> Node:
    modes = ["constant", "reflect", "edge", *(["wrap"] if d.version >= 19 else [])]
    mode = d.one_of(*modes)
    shape = d.shape(1, 4, (0, 4) if mode == "constant" else (2, 4))
    axes = d.axes(len(shape), 1) if d.version >= 18 and d.flag() else None
    padded = [shape[a] for a in axes] if axes is not None else list(shape)
    amounts = [d.integer(-1, min(3, size - 1) if mode == "reflect" else 3) for size in padded * 2]
    if mode != "constant" or d.flag():
        amounts = [max(amount, 0) for amount in amounts]
    x = d.tensor(0, shape)
    if d.has("pads"):
        return d.node(x, pads=amounts, mode=mode, **d.some(value=d.one_of(1.5, 0.0)))
    value = d.tensor(0, (), "plain") if d.flag() else None
    return d.node(
        x, int64(amounts), value, None if axes is None else np.array(axes, d.one_of(np.int64, np.int32)), mode=mode
    )


@strategy("CenterCropPad")
def center_crop_pad(d: Drawing) -> Node:
    shape = d.shape(1, 3, (1, 5))
    axes = d.axes(len(shape), 1) if d.flag() else None
    count = len(shape) if axes is None else len(axes)
    return d.node(d.tensor(0, shape), np.array([d.size(0, 6) for _ in range(count)], d.dtype(1)), axes=axes)


@strategy("TensorScatter")
def tensor_scatter(d: Drawing) -> Node:
    shape = (d.size(1), *d.shape(2, 3, (1, 4)))
    axis = d.integer(1, len(shape) - 2)
    mode = d.one_of("linear", "circular")
    update = [*shape]
    update[axis] = d.integer(1, shape[axis])
    last = shape[axis] - 1 if mode == "circular" else shape[axis] - update[axis]
    starts = d.integers((shape[0],), 0, last) if d.flag() else None
    return d.node(d.tensor(0, shape), d.tensor(1, update), starts, axis=axis - d.one_of(0, len(shape)), mode=mode)

"""Hints for inputs that are positions, axes, sizes and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from onnxeval.dtypes import DType, Tensor
from onnxeval.random_feeds.looking import Looked, Shape
from onnxeval.random_feeds.wishes import ANY, TRUTH, Wish, between, exactly

Wishes = Mapping[int, Wish]

_FEW = 3


# Positions


def _along_axis(node: Looked) -> Wishes:
    """Indices along one axis of the first input."""
    return {1: between(0, node.size(0, node.attribute("axis", 0)) - 1)}


def _points(node: Looked) -> Wishes:
    """Each row of the indices is a position in the first input."""
    skipped, shape, indices = node.attribute("batch_dims", 0), node.dimensions(0) or (), node.dimensions(1)
    count = indices[-1] if indices and isinstance(indices[-1], int) else 1
    sizes = [size for size in shape[skipped : skipped + count] if isinstance(size, int)]
    return {1: between(0, min(sizes, default=1) - 1)}


def _one_hot(node: Looked) -> Wishes:
    depth = node.number(1)
    axis, result = node.attribute("axis", -1), node.result()
    if depth is None and result is not None and -len(result) <= axis < len(result):
        depth = result[axis]
    return {0: between(0, (depth or 4) - 1), 1: exactly([depth or 4])}


def _cached(node: Looked) -> Wishes:
    axis = node.attribute("axis", -2)
    return {2: between(0, node.size(0, axis) - node.size(1, axis))}


def _unpooled(node: Looked) -> Wishes:
    shape = node.shape(0) or (1,)
    result = node.result()
    wishes = {1: Wish(make=partial(_distinct, below=math.prod(shape)))}
    return {**wishes, 2: exactly(result)} if result is not None else wishes


def _distinct(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, below: int) -> Tensor:
    count = math.prod(shape)
    numbers = rng.permutation(below)[:count] if count <= below else rng.integers(0, max(below, 1), count)
    return numbers.reshape(shape).astype(dtype)


# Axes


def _axes(place: int) -> Callable[[Looked], Wishes]:
    """Distinct axes of the first input, or the one axis of a scalar."""

    def hint(node: Looked) -> Wishes:
        return {place: Wish(make=partial(_distinct, below=node.rank(0)))}

    return hint


def _axes_of_one(node: Looked) -> Wishes:
    shape = node.dimensions(0) or ()
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    return {1: exactly(ones[: node.length(1)])}


def _new_axes(node: Looked) -> Wishes:
    shape, result, count = node.shape(0), node.result(), node.length(1) or 1
    if shape is not None and result is not None:
        places = [axis for axis, size in enumerate(result) if size == 1]
        if [size for axis, size in enumerate(result) if axis not in places[:count]] == list(shape):
            return {1: exactly(places[:count])}
    return {1: Wish(make=partial(_distinct, below=node.rank(0) + count))}


# Shapes


def _reshaped(node: Looked) -> Wishes:
    shape, result = node.shape(0), node.result()
    if shape is None:
        return {}
    count = node.length(1)
    if result is not None and len(result) == count and math.prod(result) == math.prod(shape):
        return {1: exactly(result)}
    return {1: exactly(_fold(shape, count))}


def _fold(shape: Shape, count: int) -> Shape:
    """The same number of elements in another number of dimensions."""
    if count >= len(shape):
        return (1,) * (count - len(shape)) + shape
    return (*shape[: count - 1], math.prod(shape[count - 1 :])) if count else ()


def _expanded(node: Looked) -> Wishes:
    shape, result, count = node.shape(0), node.result(), node.length(1)
    if shape is None:
        return {1: exactly([1] * count)}
    if result is not None and len(result) == count:
        return {1: exactly(result)}
    return {1: exactly(_fold(shape, count) if count >= len(shape) else shape[len(shape) - count :])}


def _filled(node: Looked) -> Wishes:
    result = node.result()
    return {0: exactly(result) if result is not None else between(1, _FEW)}


def _tiled(node: Looked) -> Wishes:
    if node.version < 6:
        return {1: between(1, _FEW), 2: between(0, node.rank(0) - 1)}
    shape, result = node.shape(0), node.result()
    if shape and result and all(shape) and not any(out % size for size, out in zip(shape, result, strict=True)):
        return {1: exactly([out // size for size, out in zip(shape, result, strict=True)])}
    return {1: between(1, 2)}


def _sliced(node: Looked) -> Wishes:
    """The whole of so many axes, or what is left of them in the declared result."""
    count = node.length(1) or 1
    shape, result = node.dimensions(0) or (), node.result()
    known = node.elements(3)
    axes = known.reshape(-1).tolist() if known is not None else range(count)
    ends = []
    for axis in axes:
        size = shape[axis] if -len(shape) <= axis < len(shape) else 1
        left = result[axis] if result is not None and -len(result) <= axis < len(result) else size
        ends.append(left if isinstance(left, int) else size if isinstance(size, int) else 1)
    return {1: exactly([0] * count), 2: exactly(ends), 3: exactly(range(count)), 4: exactly([1] * count)}


def _split(node: Looked) -> Wishes:
    """Parts that make up the axis, as equal as can be."""
    size, count = node.size(0, node.attribute("axis", 0)), node.length(1)
    if not count:
        return {1: between(1, size)}
    return {1: exactly([size // count + (place < size % count) for place in range(count)])}


def _padded(node: Looked) -> Wishes:
    shape, result = node.shape(0), node.result()
    count = node.length(1) // 2
    least = min(shape, default=1) if shape else 1
    most = min(2, max(least - 1, 0)) if node.attribute("mode", "constant") == "reflect" else 2 if least else 0
    wishes = {1: between(0, most), 3: Wish(make=partial(_distinct, below=node.rank(0)))}
    if shape and result and len(shape) == len(result) == count:
        more = [out - size for size, out in zip(shape, result, strict=True)]
        wishes[1] = exactly([*(n // 2 for n in more), *(n - n // 2 for n in more)])
    return wishes


def _cropped(node: Looked) -> Wishes:
    shape, result = node.shape(0), node.result()
    axes = node.attribute("axes") or range(node.rank(0))
    of = result or shape
    return {1: exactly([of[axis] for axis in axes])} if of else {1: between(1, _FEW)}


def _resized(node: Looked) -> Wishes:
    """The declared result, or twice the size of the last axis."""
    shape, result = node.shape(0), node.result()
    if shape is None:
        return {}
    axes = node.attribute("axes") or tuple(range(len(shape)))
    if result is None or len(result) != len(shape):
        result = (*shape[:-1], 2 * shape[-1]) if shape and len(axes) == len(shape) else shape
    scales = exactly([result[axis] / max(shape[axis], 1) for axis in axes])
    sizes = exactly([result[axis] for axis in axes])
    if node.version < 11:
        return {1: scales}
    region = exactly([0.0] * len(axes) + [1.0] * len(axes))
    return {1: region, 2: scales, 3: sizes}


def _upsampled(node: Looked) -> Wishes:
    wishes = dict(_resized(node))
    scales = wishes.get(1, ANY).exact
    return {1: exactly([max(scale, 1.0) for scale in scales])} if scales else wishes


def _range(node: Looked) -> Wishes:
    """So many steps as the declared result has, or three."""
    result = node.result()
    count = result[0] if result else _FEW
    start, step = node.number(0), node.number(2)
    start, step = 0 if start is None else start, step or 1
    return {0: exactly([start]), 1: exactly([start + count * step]), 2: exactly([step])}


def _largest(node: Looked) -> Wishes:
    axis, result = node.attribute("axis", -1), node.result()
    if result and -len(result) <= axis < len(result):
        return {1: exactly([result[axis]])}
    return {1: between(1, node.size(0, axis))}


def _triangle(node: Looked) -> Wishes:
    return {1: between(-node.size(0, -2) + 1, node.size(0, -1) - 1)}


def _folded(node: Looked) -> Wishes:
    """Col2Im: blocks and an image that make the columns there are."""
    shape, result = node.shape(0), node.result()
    if shape is None or len(shape) != 3:
        return {}
    count = node.length(1) or 2
    if result is None:
        image, block = (1,) * (count - 1) + (shape[2],), (1,) * count
        return {1: exactly(image), 2: exactly(block)}
    image, area = result[2:], shape[1] // max(result[1], 1)
    for block in _factors(area, len(image)):
        if math.prod(_steps(node, image, block)) == shape[2]:
            return {1: exactly(image), 2: exactly(block)}
    return {1: exactly(image)}


def _steps(node: Looked, image: Shape, block: Shape) -> list[int]:
    rank = len(image)
    pads, strides = node.attribute("pads") or (0,) * 2 * rank, node.attribute("strides") or (1,) * rank
    dilations = node.attribute("dilations") or (1,) * rank
    return [
        (image[a] + pads[a] + pads[a + rank] - dilations[a] * (block[a] - 1) - 1) // strides[a] + 1 for a in range(rank)
    ]


def _factors(number: int, count: int) -> list[Shape]:
    """All lists of so many factors whose product is the number."""
    if count == 1:
        return [(number,)]
    ways = []
    for factor in range(1, number + 1):
        if number % factor == 0:
            ways += [(factor, *rest) for rest in _factors(number // factor, count - 1)]
    return ways


def _grid(node: Looked) -> Wishes:
    """AffineGrid: (N, C, sizes) for N matrices."""
    result, batch = node.result(), node.size(0, 0)
    if result is not None:
        return {1: exactly([batch, 1, *result[1:-1]])}
    return {1: exactly([batch, 1, *[2] * (node.length(1) - 2 if node.length(1) else 2)])}


def _lengths(place: int, axis: int) -> Callable[[Looked], Wishes]:
    """Lengths of sequences along an axis of the first input."""

    def hint(node: Looked) -> Wishes:
        return {place: between(1, node.size(0, axis))}

    return hint


def _reversed(node: Looked) -> Wishes:
    return {1: between(1, node.size(0, node.attribute("time_axis", 0)))}


def _first_of_sequence(place: int) -> Callable[[Looked], Wishes]:
    return lambda _node: {place: exactly([0])}


def _fixed(wishes: Wishes) -> Callable[[Looked], Wishes]:
    return lambda _node: wishes


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

HINTS: dict[tuple[str, str], Callable[[Looked], Wishes]] = {
    ("", "AffineGrid"): _grid,
    ("", "CenterCropPad"): _cropped,
    ("", "Col2Im"): _folded,
    ("", "Compress"): _fixed({1: TRUTH}),
    ("", "ConstantOfShape"): _filled,
    ("", "CumProd"): _axes(1),
    ("", "CumSum"): _axes(1),
    ("", "Expand"): _expanded,
    ("", "Gather"): _along_axis,
    ("", "GatherElements"): _along_axis,
    ("", "GatherND"): _points,
    ("", "Loop"): _fixed({0: between(1, _FEW), 1: Wish(choices=(1,))}),
    ("", "MaxUnpool"): _unpooled,
    ("", "OneHot"): _one_hot,
    ("", "Pad"): _padded,
    ("", "Range"): _range,
    ("", "Reshape"): _reshaped,
    ("", "Resize"): _resized,
    ("", "ReverseSequence"): _reversed,
    ("", "Scatter"): _along_axis,
    ("", "ScatterElements"): _along_axis,
    ("", "ScatterND"): _points,
    ("", "SequenceAt"): _first_of_sequence(1),
    ("", "SequenceErase"): _first_of_sequence(1),
    ("", "SequenceInsert"): _first_of_sequence(2),
    ("", "Slice"): _sliced,
    ("", "Split"): _split,
    ("", "SplitToSequence"): _split,
    ("", "Squeeze"): _axes_of_one,
    ("", "TensorScatter"): _cached,
    ("", "Tile"): _tiled,
    ("", "TopK"): _largest,
    ("", "Trilu"): _triangle,
    ("", "Unsqueeze"): _new_axes,
    ("", "Upsample"): _upsampled,
    ("", "GRU"): _lengths(4, 0),
    ("", "LSTM"): _lengths(4, 0),
    ("", "RNN"): _lengths(4, 0),
    **{("", f"Reduce{name}"): _axes(1) for name in _REDUCTIONS},
}

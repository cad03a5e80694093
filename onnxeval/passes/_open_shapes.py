"""What follows of shapes some of whose sizes are open: for any sizes, not for those of one run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from onnxeval.passes._sizes import (
    MOST_NUMBERS,
    Shape,
    Size,
    Symbol,
    View,
    axis_of,
    broadcast,
    open_shape,
    same,
    size_of,
    without,
)

#: Of each output, None where nothing is known.
Shapes: TypeAlias = "Sequence[Shape | None] | None"


def _like_first(view: View) -> Shapes:
    return [view.shape(0)]


def _broadcasting(view: View) -> Shapes:
    return [broadcast(*map(view.shape, range(len(view.inputs))))]


def _product(view: View, right: int = 1) -> Shapes:
    a, b = view.shape(0), view.shape(right)
    if not a or not b:
        return None
    stack = broadcast(a[:-2], b[:-2]) or ()
    return [(*stack, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))]


def _gemm(view: View) -> Shapes:
    a, b = view.shape(0), view.shape(1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return None
    return [(a[1 if view.attributes["transA"] else 0], b[0 if view.attributes["transB"] else 1])]


def _transposed(view: View) -> Shapes:
    shape, perm = view.shape(0), view.attributes["perm"]
    if shape is None or (perm is not None and sorted(perm) != list(range(len(shape)))):
        return None
    return [tuple([shape[axis] for axis in perm]) if perm is not None else shape[::-1]]


def reshaped(view: View) -> Shapes:
    numbers, shape = view.numbers(1), view.shape(0)
    if numbers is None or numbers.rank != 1:
        target = view.shape(1)
        return [open_shape(target[0])] if target and isinstance(target[0], int) and target[0] <= MOST_NUMBERS else None
    sizes: list[Size] = []
    for axis, item in enumerate(numbers.items):
        copied = item == 0 and not view.attributes.get("allowzero")
        if copied and (shape is None or axis >= len(shape)):
            sizes.append(Symbol())
        elif copied and shape is not None:
            sizes.append(shape[axis])
        else:
            sizes.append(Symbol() if item is None else item)
    if -1 in sizes:
        place = sizes.index(-1)
        sizes[place] = _left_over(shape, [*sizes[:place], *sizes[place + 1 :]])
    return [tuple(sizes)]


def _left_over(shape: Shape | None, others: Sequence[Size]) -> Size:
    """The size that a shape has besides others. They are not 0 beside a -1, or the run fails."""
    if shape is None:
        return Symbol()
    left = Counter(size for size in shape if isinstance(size, Symbol))
    left.subtract(size for size in others if isinstance(size, Symbol))
    symbols = [symbol for symbol, count in left.items() if count]
    whole, part = (math.prod(size for size in sizes if isinstance(size, int)) for sizes in (shape, others))
    if part <= 0 or whole % part or len(symbols) > 1:
        return Symbol()
    if not symbols:
        return whole // part
    return symbols[0] if whole == part and left[symbols[0]] == 1 else Symbol()


def unsqueezed(view: View) -> Shapes:
    shape, axes = view.shape(0), view.constants(1, "axes")
    if shape is None or axes is None:
        return None
    rank = len(shape) + len(axes)
    places = {axis_of(axis, rank) for axis in axes}
    if None in places or len(places) < len(axes):
        return None
    left = iter(shape)
    return [tuple([1 if place in places else next(left) for place in range(rank)])]


def squeezed(view: View) -> Shapes:
    shape = view.shape(0)
    if shape is None:
        return None
    if not view.has(1) and view.attributes.get("axes") is None:
        return None if any(isinstance(size, Symbol) for size in shape) else [tuple([s for s in shape if s != 1])]
    axes = view.constants(1, "axes")
    if axes is None:
        return None
    places = {axis_of(axis, len(shape)) for axis in axes}
    return None if None in places else [tuple([size for place, size in enumerate(shape) if place not in places])]


def _flattened(view: View) -> Shapes:
    shape = view.shape(0)
    if shape is None or not -len(shape) <= (axis := view.attributes["axis"]) <= len(shape):
        return None
    at = axis if axis >= 0 else axis + len(shape)
    return [(size_of(shape[:at]), size_of(shape[at:]))]


def _joined(view: View) -> Shapes:
    shapes = [view.shape(place) for place in range(len(view.inputs)) if view.has(place)]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not known or len({len(shape) for shape in known}) > 1:
        return None
    along = axis_of(view.attributes["axis"], len(known[0]))
    if along is None:
        return None
    sizes = [shape[along] for shape in known]
    total = sum(size for size in sizes if isinstance(size, int))
    symbols = [size for size in sizes if isinstance(size, Symbol)]
    whole: Size = total if not symbols else symbols[0] if len(symbols) == 1 and not total else Symbol()
    rest = [same(each) for each in zip(*known, strict=True)]
    return [(*rest[:along], whole, *rest[along + 1 :])]


def _parted(view: View) -> Shapes:
    shape = view.shape(0)
    if shape is None or (along := axis_of(view.attributes["axis"], len(shape))) is None:
        return None
    parts = view.constants(1, "split")
    size = shape[along]
    if parts is None and isinstance(size, int) and not size % view.count and not view.has(1):
        parts = (size // view.count,) * view.count
    if parts is None or len(parts) != view.count:
        return [(*shape[:along], Symbol(), *shape[along + 1 :]) for _ in range(view.count)]
    return [(*shape[:along], part, *shape[along + 1 :]) for part in parts]


def _sliced(view: View) -> Shapes:
    shape = view.shape(0)
    if shape is None:
        return None
    axes = view.constants(3, "axes")
    if axes is None:
        if view.has(3):
            return [open_shape(len(shape))]
        axes = tuple(range(len(shape)))
    unknown = (None,) * len(axes)
    starts, ends = view.items(1, "starts") or unknown, view.items(2, "ends") or unknown
    steps = view.items(4) or unknown if view.has(4) else (1,) * len(axes)
    sizes = list(shape)
    for axis, *bounds in zip(axes, starts, ends, steps, strict=False):
        along = axis_of(axis, len(shape))
        if along is None:
            return None
        sizes[along] = _length(shape[along], *bounds)
    return [tuple(sizes)]


def _length(size: Size, start: Size | None, end: Size | None, step: Size | None) -> Size:
    """Of a slice."""
    if start == 0 and step == 1 and (end is size or (isinstance(end, int) and end >= np.iinfo(np.int32).max)):
        return size
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int) and step:
        return len(range(size)[start:end:step])
    if start == 0 and step == 1 and isinstance(size, int) and size > 0 and isinstance(end, Symbol):
        return Symbol(end)
    return Symbol()


def _gathered(view: View) -> Shapes:
    data, indices = view.shape(0), view.shape(1)
    if data is None or indices is None or (along := axis_of(view.attributes["axis"], len(data))) is None:
        return None
    return [(*data[:along], *indices, *data[along + 1 :])]


def _gathered_slices(view: View) -> Shapes:
    data, indices, batch = view.shape(0), view.shape(1), view.attributes.get("batch_dims", 0)
    if data is None or not indices or not isinstance(indices[-1], int) or batch + indices[-1] > len(data):
        return None
    return [(*indices[:-1], *data[batch + indices[-1] :])]


def _expanded(view: View) -> Shapes:
    shape, numbers = view.shape(0), view.numbers(1)
    if shape is None or numbers is None or numbers.rank != 1:
        return None
    return [broadcast(shape, tuple([Symbol() if item is None else item for item in numbers.items]))]


def _tiled(view: View) -> Shapes:
    shape, numbers = view.shape(0), view.numbers(1)
    if shape is None:
        return None
    items = numbers.items if numbers is not None else (None,) * len(shape)
    return [tuple([_times(size, item) for size, item in zip(shape, items, strict=False)])]


def _times(size: Size, by: Size | None) -> Size:
    if by == 1:
        return size
    return size * by if isinstance(size, int) and isinstance(by, int) else Symbol()


def _padded(view: View) -> Shapes:
    shape, pads = view.shape(0), view.constants(1, "pads")
    if shape is None:
        return None
    axes = view.constants(3) if view.has(3) else tuple(range(len(shape)))
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return [open_shape(len(shape))]
    sizes = list(shape)
    for place, axis in enumerate(axes):
        along, more = axis_of(axis, len(shape)), pads[place] + pads[place + len(axes)]
        if along is None:
            return None
        size = shape[along]
        sizes[along] = size + more if isinstance(size, int) else size if not more else Symbol()
    return [tuple(sizes)]


def _reduced(view: View) -> Shapes:
    shape = view.shape(0)
    if shape is None:
        return None
    keeps = view.attributes.get("keepdims", 1)
    given = view.has(1) or view.attributes.get("axes") is not None
    axes = view.constants(1, "axes") if given else ()
    if axes is None:
        return [open_shape(len(shape))] if keeps else None
    if not axes and view.attributes.get("noop_with_empty_axes"):
        return [shape]
    return [without(shape, axes or range(len(shape)), keeps)]


def _searched(view: View) -> Shapes:
    shape = view.shape(0)
    return None if shape is None else [without(shape, (view.attributes["axis"],), view.attributes["keepdims"])]


def _convolved(view: View, weights: int = 1) -> Shapes:
    x, w = view.shape(0), view.shape(weights)
    return None if x is None or w is None or len(x) < 3 else [(x[0], w[0], *open_shape(len(x) - 2))]


def _deconvolved(view: View) -> Shapes:
    x, w = view.shape(0), view.shape(1)
    if x is None or w is None or len(x) < 3 or len(w) < 2 or not isinstance(w[1], int):
        return None
    return [(x[0], w[1] * view.attributes["group"], *open_shape(len(x) - 2))]


def _pooled(view: View) -> Shapes:
    x = view.shape(0)
    return None if x is None or len(x) < 3 else [(*x[:2], *open_shape(len(x) - 2))] * view.count


def _pooled_whole(view: View) -> Shapes:
    x = view.shape(0)
    return None if x is None or len(x) < 3 else [(*x[:2], *(1,) * (len(x) - 2))]


def _recurrent(view: View, hidden: int = 2) -> Shapes:
    """``hidden`` is the axis of the third input that is as long as a state."""
    x, r = view.shape(0), view.shape(2)
    if x is None or r is None or len(x) != 3 or len(r) != 3 or view.attributes.get("layout", 0):
        return None
    last = (r[0], x[1], r[hidden])
    return [(x[0], *last), last, last]


def _normalised(view: View) -> Shapes:
    return [view.shape(0), *[None] * (view.count - 1)]


def _of_rank(view: View) -> Shapes:
    x = view.shape(0)
    return [None if x is None else open_shape(len(x))]


def _filled(view: View) -> Shapes:
    numbers = view.numbers(0)
    return None if numbers is None else [tuple([Symbol() if item is None else item for item in numbers.items])]


def _counted(view: View) -> Shapes:
    bounds = [view.constants(place) for place in range(3)]
    if all(bound is not None and len(bound) == 1 for bound in bounds):
        start, limit, delta = (bound[0] for bound in bounds if bound)
        return [(len(range(start, limit, delta)),)] if delta else None
    return [open_shape(1)]


def _quantized(view: View) -> Shapes:
    return [view.shape(0), (), ()]


def _each(operators: str, rule: Callable[[View], Shapes]) -> dict[str, Callable[[View], Shapes]]:
    return dict.fromkeys(operators.split(), rule)


RULES: dict[str, Callable[[View], Shapes]] = {
    **_each(
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh CumSum "
        "DequantizeLinear Elu Erf Exp EyeLike Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax "
        "Identity InstanceNormalization IsInf IsNaN LRN LeakyRelu Log LogSoftmax LpNormalization "
        "MeanVarianceNormalization Mish Neg Not PRelu QuantizeLinear RMSNormalization Reciprocal Relu Round "
        "Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt "
        "Swish Tan Tanh ThresholdedRelu Trilu",
        _like_first,
    ),
    **_each(
        "BatchNormalization Dropout LayerNormalization",
        _normalised,
    ),
    **_each(
        "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual "
        "Max Mean Min Mod Mul Or Pow Sub Sum Where Xor",
        _broadcasting,
    ),
    **_each(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare",
        _reduced,
    ),
    **_each(
        "AveragePool LpPool MaxPool",
        _pooled,
    ),
    **_each(
        "GlobalAveragePool GlobalLpPool GlobalMaxPool",
        _pooled_whole,
    ),
    **_each(
        "GRU LSTM RNN",
        _recurrent,
    ),
    **_each(
        "ArgMax ArgMin",
        _searched,
    ),
    **_each(
        "Resize TopK Upsample",
        _of_rank,
    ),
    "Concat": _joined,
    "ConstantOfShape": _filled,
    "Conv": _convolved,
    "ConvInteger": _convolved,
    "ConvTranspose": _deconvolved,
    "DynamicQuantizeLinear": _quantized,
    "Expand": _expanded,
    "Flatten": _flattened,
    "Gather": _gathered,
    "GatherElements": lambda view: [view.shape(1)],
    "GatherND": _gathered_slices,
    "com.microsoft.DynamicQuantizeLSTM": lambda view: _recurrent(view, 1),
    "com.microsoft.DynamicQuantizeMatMul": _product,
    "com.microsoft.MatMulIntegerToFloat": _product,
    "Gemm": _gemm,
    "MatMul": _product,
    "MatMulInteger": _product,
    "Pad": _padded,
    "QLinearConv": lambda view: _convolved(view, 3),
    "QLinearMatMul": lambda view: _product(view, 3),
    "Range": _counted,
    "Reshape": reshaped,
    "Slice": _sliced,
    "Split": _parted,
    "Squeeze": squeezed,
    "Tile": _tiled,
    "Transpose": _transposed,
    "Unsqueeze": unsqueezed,
}

"""Accepted differences of math, reduction and tensor operators."""

from __future__ import annotations

import numpy as np
from differential.accepted import accept
from differential.accepted_elements import has_nan, is_infinite
from differential.cases import Node

from onnxeval.dtypes import STRING, is_integer


@accept("NaN in ArgMax and ArgMin", "ArgMax", "ArgMin")
@accept("NaN in Hardmax", "Hardmax")
@accept("NaN in ReduceMax and ReduceMin", "ReduceMax", "ReduceMin", "ReduceLogSumExp")
@accept("NaN in Unique", "Unique")
def chooses_among_nans(node: Node) -> bool:
    return has_nan(node, 0)


@accept("LogSoftmax of NaN and infinity", "LogSoftmax", "SoftmaxCrossEntropyLoss")
def logarithms_of_no_numbers(node: Node) -> bool:
    return has_nan(node, 0) or is_infinite(node)


@accept("ReduceLogSum and ReduceLogSumExp of integers", "ReduceLogSum", "ReduceLogSumExp")
def logarithms_of_integers(node: Node) -> bool:
    return is_integer(node.inputs[0].dtype)


@accept("Products over an empty axis", "MatMul", "MatMulInteger")
def sums_nothing(node: Node) -> bool:
    return node.inputs[0].shape[-1] == 0


@accept("MatMulInteger zero points", "MatMulInteger")
def zero_points_by_row_or_column(node: Node) -> bool:
    return any(node.input(place) is not None and node.inputs[place].ndim > 0 for place in (2, 3))


@accept("Inverse one-sided DFT", "DFT")
def inverts_one_side(node: Node) -> bool:
    return node.attribute("inverse") == node.attribute("onesided") == 1


@accept("Scalars in OneHot", "OneHot")
def one_scalar(node: Node) -> bool:
    return bool(node.inputs[0].ndim == 0)


@accept("OneHot-9 and negative indices", "OneHot")
def counts_from_the_back(node: Node) -> bool:
    return node.version == 9 and bool(np.any(node.inputs[0] < 0))


@accept("NonZero of a scalar", "NonZero")
def nonzero_scalar(node: Node) -> bool:
    return node.inputs[0].ndim == 0


@accept("Slice backwards from INT_MAX", "Slice")
def slices_backwards(node: Node) -> bool:
    steps, ends = node.input(4), node.input(2)
    return steps is not None and bool(np.any((steps < 0) & (ends >= 2**31 - 1)))


@accept("Gather of strings", "Gather")
def gathers_strings(node: Node) -> bool:
    return node.inputs[0].dtype == STRING


@accept("Scatter with a reduction of strings", "ScatterElements", "ScatterND")
def scatters_strings(node: Node) -> bool:
    return node.inputs[0].dtype == STRING and node.attribute("reduction") != "none"


@accept("Scatter with a reduction of NaN", "ScatterElements", "ScatterND")
def scatters_nan(node: Node) -> bool:
    return node.attribute("reduction") in ("max", "min") and has_nan(node)


@accept("Reductions of nothing", "ReduceMean", "ReduceMax", "ReduceMin")
def reduces_nothing(node: Node) -> bool:
    return node.inputs[0].size == 0


@accept(
    "Sums and products beyond the type",
    "ReduceProd",
    "ReduceSum",
    "ReduceMean",
    "ReduceSumSquare",
    "ReduceL1",
    "ReduceL2",
)
def gathers_integers(node: Node) -> bool:
    x = np.abs(node.inputs[0].astype(float))
    greatest = {"ReduceProd": np.prod(x[x != 0]), "ReduceSumSquare": np.sum(x * x), "ReduceL2": np.sum(x * x)}
    limit = min(np.iinfo(node.inputs[0].dtype).max, 2**53) if is_integer(node.inputs[0].dtype) else np.inf
    return bool(greatest.get(node.op_type, np.sum(x)) > limit)


@accept("Resize of integers", "Resize", "Upsample")
def resizes_integers(node: Node) -> bool:
    return is_integer(node.inputs[0].dtype) and node.attribute("mode") != "nearest"


@accept("QuantizeLinear of NaN", "QuantizeLinear")
def quantizes_nan(node: Node) -> bool:
    return has_nan(node, 0)


@accept("Resize and fractional lengths", "Resize")
def resizes_to_fractions(node: Node) -> bool:
    scales = node.input(2 if node.version > 10 else 1)
    mode = node.attribute("coordinate_transformation_mode")
    return mode == "align_corners" and scales is not None and scales.size > 0


@accept("Resize of any rank", "Resize")
def resizes_other_ranks(node: Node) -> bool:
    return node.attribute("mode") == "linear" and node.inputs[0].ndim in (1, 4, 5)


@accept("Einsum of nothing", "Einsum", avoid=True)
def multiplies_nothing(node: Node) -> bool:
    return any(x.size == 0 for x in node.inputs)


@accept("SplitToSequence and keepdims", "SplitToSequence")
def splits_by_a_size(node: Node) -> bool:
    return node.attribute("keepdims") == 0 and node.input(1) is not None


@accept("StringSplit of an empty string", "StringSplit")
def splits_nothing(node: Node) -> bool:
    return bool(node.attribute("delimiter")) and bool(np.any(node.inputs[0] == ""))


@accept("DynamicQuantizeLinear of zeros", "DynamicQuantizeLinear")
def quantizes_zeros(node: Node) -> bool:
    return not node.inputs[0].any()


def crops(node: Node) -> bool:
    return node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize" and node.input(1) is not None


@accept("Resize and a region of interest", "Resize")
def scales_a_region(node: Node) -> bool:
    if not crops(node) or node.input(2) is None or node.inputs[2].size == 0:
        return False
    starts, ends = np.split(node.inputs[1], 2)
    return bool(np.any(ends - starts != 1))


@accept("Resize of an axis that keeps its length", "Resize")
def keeps_a_length(node: Node) -> bool:
    if not crops(node) or node.input(3) is None:
        return False
    axes = node.attribute("axes") or range(node.inputs[0].ndim)
    return any(node.inputs[0].shape[axis] == size for axis, size in zip(axes, node.inputs[3], strict=True))


@accept("Casting to integers", "BlackmanWindow", "HammingWindow", "HannWindow")
def casts_the_window_of_one(node: Node) -> bool:
    alone = node.inputs[0] == 1 and node.attribute("periodic") == 0  # it is NaN
    return bool(alone) and node.attribute("output_datatype") not in (1, 10, 11)

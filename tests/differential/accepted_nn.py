"""Accepted differences of convolutions, pools, normalisations, attention and recurrent layers."""

from __future__ import annotations

import numpy as np
from differential.accepted import accept
from differential.cases import Node

from onnxeval.dtypes import is_float, is_integer


def query_length(node: Node) -> int:
    length: int = node.inputs[0].shape[-2]
    return length


@accept("Causal attention of one query", "Attention")
def one_query_looks_ahead(node: Node) -> bool:
    past = node.input(4) is not None
    return past and node.version < 25 and bool(node.attribute("is_causal")) and query_length(node) == 1


@accept("Attention masks that broadcast over the queries", "Attention")
def mask_for_all_queries(node: Node) -> bool:
    mask = node.input(3)
    return mask is not None and node.version < 25 and mask.shape[-2] == 1 < query_length(node)


@accept("Attention masks of integers", "Attention")
def integers_beside_hidden_keys(node: Node) -> bool:
    mask = node.input(3)
    hides = node.attribute("is_causal") == 1 or node.input(6) is not None
    return mask is not None and is_integer(mask.dtype) and hides


@accept("Attention scores at hidden keys", "Attention")
def shows_hidden_scores(node: Node) -> bool:
    hides = node.input(3) is not None or node.attribute("is_causal")
    return bool(hides) and node.attribute("qk_matmul_output_mode") == 2 and len(node.wanted) == 4


_MOVING = ("AveragePool", "LpPool", "MaxPool", "Conv", "ConvInteger", "QLinearConv")


def is_same(node: Node) -> bool:
    return str(node.attribute("auto_pad")).startswith("SAME")


@accept("Dilations with auto_pad SAME", *_MOVING)
def dilated_same(node: Node) -> bool:
    return is_same(node) and any(step > 1 for step in node.attribute("dilations") or ())


@accept("Strides longer than the kernel with auto_pad SAME", *_MOVING)
def skipping_same(node: Node) -> bool:
    kernel = node.attribute("kernel_shape") or node.inputs[3 if node.op_type == "QLinearConv" else 1].shape[2:]
    strides = node.attribute("strides") or [1] * len(kernel)
    return is_same(node) and any(step > size for step, size in zip(strides, kernel, strict=True))


@accept("ConvTranspose with auto_pad SAME", "ConvTranspose")
def transposed_same(node: Node) -> bool:
    return is_same(node)


@accept("ConvTranspose and output_padding", "ConvTranspose")
def padded_beyond_the_stride(node: Node) -> bool:
    extra = node.attribute("output_padding") or ()
    strides = node.attribute("strides") or [1] * len(extra)
    return any(size >= step for size, step in zip(extra, strides, strict=False))


@accept("NaN and infinity in MaxPool and GlobalMaxPool", "MaxPool", "GlobalMaxPool")
def pools_what_is_no_number(node: Node) -> bool:
    x = node.inputs[0]
    return is_float(x.dtype) and not bool(np.isfinite(x.astype(float)).all())


@accept("Pictures without elements", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def pools_nothing(node: Node) -> bool:
    return node.inputs[0].size == 0


@accept("Col2Im of three axes", "Col2Im")
def dilated_space(node: Node) -> bool:
    return node.inputs[1].size > 2 and any(step > 1 for step in node.attribute("dilations") or ())


@accept("Col2Im of one axis", "Col2Im")
def folds_a_line(node: Node) -> bool:
    return node.inputs[1].size == 1


@accept("LRN of any rank and size", "LRN")
def normalises_freely(node: Node) -> bool:
    return node.inputs[0].ndim != 4 or node.attribute("size") % 2 == 0


@accept("Dropout's mask", "Dropout")
def asks_for_the_mask(node: Node) -> bool:
    return node.version in (7, 10) and len(node.wanted) == 2


@accept("RoiAlign in max mode", "RoiAlign")
def aligns_maxima(node: Node) -> bool:
    return node.attribute("mode") == "max"


@accept("ConvInteger zero points", "ConvInteger")
def zero_point_by_channel(node: Node) -> bool:
    return node.input(3) is not None and node.inputs[3].ndim > 0


@accept("AffineGrid with aligned corners of one element", "AffineGrid")
def one_aligned_element(node: Node) -> bool:
    return bool(node.attribute("align_corners")) and 1 in node.inputs[1][2:]


@accept("Function bodies at fault", "AffineGrid")
def squeezes_the_batch(node: Node) -> bool:
    return node.inputs[0].dtype == np.float16 and node.inputs[1][0] == 1


@accept("MeanVarianceNormalization of a constant", "MeanVarianceNormalization")
def normalises_a_constant(node: Node) -> bool:
    axes = tuple(node.attribute("axes"))
    return bool((node.inputs[0].astype(float).std(axes) == 0).any())


@accept("Softplus in recurrent layers", "RNN", "GRU", "LSTM")
def softplus_within(node: Node) -> bool:
    return "Softplus" in (node.attribute("activations") or ())


@accept("LSTM and clip", "LSTM")
def clips_cells(node: Node) -> bool:
    return node.attribute("clip") is not None


@accept("auto_pad VALID with ceil_mode", "AveragePool", "MaxPool", "LpPool")
def rounds_valid_up(node: Node) -> bool:
    return node.attribute("auto_pad") == "VALID" and node.attribute("ceil_mode") == 1

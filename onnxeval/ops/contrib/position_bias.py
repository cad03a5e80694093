"""Biases of attention that depend on how far a key is from a query."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._precision import in_float32
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._attention import single
from onnxeval.ops.contrib._typed import FLOAT16, FLOAT32, INT32, INT64, microsoft_op
from onnxeval.ops.contrib.padding import spread
from onnxeval.values import shape_text


@microsoft_op("RelativePositionBias", "TUU", T=(FLOAT32, FLOAT16), U=(INT64,))
def relative_position_bias(
    bias_table: Tensor, query_length: Tensor, key_length: Tensor, *, is_bidirectional: int = 0, max_distance: int
) -> Tensor:
    """(1, heads, S, S): for each query and key what the table has for their distance, as in T5.

    The table says that it is (buckets, heads), and holds the buckets of the first head, then those of the next. Keys
    that come later have half of the buckets with ``is_bidirectional``, else they count as near. Of the buckets of a
    side the first half is for one distance each, the others for ever more until ``max_distance``.

    Raises ValueError for lengths that differ and for fewer buckets than this takes.
    Source: com.microsoft.RelativePositionBias-1.
    """
    length = single(query_length, "query_length") or 0
    if length < 0 or length != single(key_length, "key_length"):
        raise ValueError(f"lengths are {length} and {single(key_length, 'key_length')}, expected the same")
    if bias_table.ndim != 2:
        raise ValueError(f"the table has shape {shape_text(bias_table.shape)}, expected [buckets, heads]")
    buckets, heads = bias_table.shape
    side = buckets // 2 if is_bidirectional else buckets
    exact = side // 2
    if exact < 1 or max_distance <= exact:
        raise ValueError(f"{buckets} buckets cannot hold distances up to {max_distance}")
    ahead = np.arange(length) - np.arange(length)[:, np.newaxis]
    distance = np.abs(ahead) if is_bidirectional else np.maximum(-ahead, 0)
    logs = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact))
    steps = logs / np.log(np.float32(max_distance / exact)) * np.float32(side - exact)
    bucket = np.where(distance < exact, distance, np.minimum(exact + steps.astype(np.int64), side - 1))
    if is_bidirectional:
        bucket += np.where(ahead > 0, side, 0)
    return bias_table.reshape(heads, buckets)[np.newaxis, :, bucket]


@microsoft_op("GatedRelativePositionBias", "TTTTTTM", T=(FLOAT32, FLOAT16), M=(INT32,))
@in_float32
def gated_relative_position_bias(
    query_layer: Tensor,
    query_bias: Tensor,
    rel_pos: Tensor,
    weight: Tensor,
    bias: Tensor,
    eco_a: Tensor,
    token_offset: Tensor | None,
    *,
    num_heads: int,
) -> Tensor:
    """``rel_pos`` (1, N, S, S) -> (B, N, S, S): times a gate of each query (B, S, N * H) and head.

    The query with its bias goes through ``weight`` (H, D) and ``bias`` (D,); the sums of both halves, through sigmoid,
    are u and r of the gate u (r ``eco_a`` - 1) + 2. Queries may be packed, (tokens, N * H), at the places that
    ``token_offset`` (B, S) tells; the padding then counts as zero queries.

    Raises ValueError where shapes do not fit together. Source: com.microsoft.GatedRelativePositionBias-1.
    """
    if token_offset is not None:
        if query_layer.ndim != 2:
            raise ValueError(f"query_layer has shape {shape_text(query_layer.shape)}, expected [tokens, N * H]")
        query_layer = spread(query_layer, token_offset)
    if query_layer.ndim != 3 or num_heads < 1 or query_layer.shape[2] % num_heads:
        raise ValueError(f"query_layer has shape {shape_text(query_layer.shape)}, expected [B, S, {num_heads} * H]")
    batch, length, width = query_layer.shape
    size = width // num_heads
    columns = weight.shape[-1] if weight.ndim == 2 else 0
    expected = {
        "query_bias": (query_bias, (width,)),
        "rel_pos": (rel_pos, (1, num_heads, length, length)),
        "weight": (weight, (size, columns)),
        "bias": (bias, (columns,)),
        "eco_a": (eco_a, (1, num_heads, 1, 1)),
    }
    for name, (given, shape) in expected.items():
        if given.shape != shape:
            raise ValueError(f"{name} has shape {shape_text(given.shape)}, expected {shape_text(shape)}")
    if columns % 2:
        raise ValueError(f"weight has {columns} columns, expected an even number")
    q = (query_layer + query_bias).reshape(batch, length, num_heads, size).transpose(0, 2, 1, 3)
    halves = (q @ weight + bias).reshape(batch, num_heads, length, 2, columns // 2).sum(axis=-1)
    gates = curves.sigmoid(halves)
    u, r = gates[..., :1], gates[..., 1:]
    return np.asarray((u * (r * eco_a - 1) + 2) * rel_pos)

"""Strategies of normalisations, attention and their like."""

from __future__ import annotations

import numpy as np
from differential.cases import Node
from differential.drawing import Drawing, strategy


@strategy("BatchNormalization", ulps=64, scaled=True, palettes=("plain",), tied=("T", "T1", "T2", "U"))
def batch_normalization(d: Drawing) -> Node:
    channels = d.integer(1, 3)
    shape = (d.integer(1, 3), channels, *d.shape(0, 3, (1, 3)))
    scale, bias, mean = (d.tensor(slot, (channels,)) for slot in (1, 2, 3))
    variance = np.abs(d.tensor(4, (channels,))) + d.dtype(4).type(0.5)
    training = d.integer(0, 1) if d.version >= 14 else 0
    wanted = (True,) * (3 if training else 1)
    options = d.some(epsilon=d.one_of(1e-3, 0.5), momentum=d.one_of(0.5, 0.0), spatial=1)
    return d.node(
        d.tensor(0, shape),
        scale,
        bias,
        mean,
        variance.astype(d.dtype(4)),
        wanted=wanted,
        training_mode=training,
        **options,
    )


@strategy("InstanceNormalization", ulps=256, scaled=True, single=True, palettes=("plain",))
def instance_normalization(d: Drawing) -> Node:
    channels = d.integer(1, 3)
    shape = (d.integer(1, 3), channels, *d.shape(1, 3, (1, 3)))
    return d.node(d.tensor(0, shape), d.tensor(1, (channels,)), d.tensor(2, (channels,)), **d.some(epsilon=1e-2))


@strategy("GroupNormalization", ulps=256, scaled=True, single=True, palettes=("plain",))
def group_normalization(d: Drawing) -> Node:
    groups, each = d.integer(1, 3), d.integer(1, 2)
    shape = (d.integer(1, 3), groups * each, *d.shape(1, 2, (1, 3)))
    size = groups if d.version == 18 else groups * each
    options = d.some(epsilon=1e-2)
    return d.node(d.tensor(0, shape), d.tensor(1, (size,)), d.tensor(2, (size,)), num_groups=groups, **options)


@strategy("LayerNormalization", "RMSNormalization", ulps=256, scaled=True, single=True, palettes=("plain",))
def layer_normalization(d: Drawing) -> Node:
    shape = d.shape(1, 3, (1, 4))
    options = d.some(axis=d.axis(len(shape)), epsilon=d.one_of(1e-2, 0.5))
    inner = shape[options.get("axis", -1) :]
    scale = d.tensor(1, inner)
    if d.schema.key.op_type == "RMSNormalization":
        return d.node(d.tensor(0, shape), scale, **options)
    bias = d.tensor(0, inner) if d.flag() else None
    return d.node(d.tensor(0, shape), scale, bias, wanted=(True,) * d.one_of(1, 1, 3), **options)


@strategy("LpNormalization", ulps=16, palettes=("plain",))
def lp_normalization(d: Drawing) -> Node:
    shape = d.shape(1)
    return d.node(d.tensor(0, shape), **d.some(axis=d.axis(len(shape), 1), p=d.integer(1, 2)))


@strategy("MeanVarianceNormalization", ulps=512, scaled=True, palettes=("plain",))
def mean_variance_normalization(d: Drawing) -> Node:
    shape = d.shape(4, 4, (1, 3))
    return d.node(d.tensor(0, shape), **d.some(axes=d.axes(len(shape), 1, 9)))


@strategy("RotaryEmbedding", ulps=32, scaled=True, palettes=("plain",))
def rotary_embedding(d: Drawing) -> Node:
    batch, length, heads, half = d.integer(1, 2), d.integer(1, 3), d.integer(1, 2), d.integer(1, 3)
    rotated = d.integer(1, half)
    flat = d.flag()
    shape = (batch, length, heads * half * 2) if flat else (batch, heads, length, half * 2)
    positions = d.integers((batch, length), 0, 4) if d.flag() else None
    cached = (5, rotated) if positions is not None else (batch, length, rotated)
    options = {"num_heads": heads} if flat else {}
    if rotated < half or d.flag():
        options["rotary_embedding_dim"] = 2 * rotated
    caches = (d.tensor(0, cached), d.tensor(0, cached))
    return d.node(d.tensor(0, shape), *caches, positions, interleaved=d.integer(0, 1), **options)


@strategy("Attention", ulps=64, scaled=True, single=True, palettes=("plain",), tied=("T1", "T2"))
def attention(d: Drawing) -> Node:
    batch, kv_heads, repeats = d.integer(1, 2), d.integer(1, 2), d.integer(1, 2)
    queries, keys, size, value_size = d.integer(1, 3), d.integer(1, 4), d.integer(1, 3), d.integer(1, 3)
    heads = kv_heads * repeats
    past = d.integer(1, 3) if d.flag() else 0
    flat = d.flag()
    if flat:
        shapes = [(batch, queries, heads * size), (batch, keys, kv_heads * size), (batch, keys, kv_heads * value_size)]
        options = {"q_num_heads": heads, "kv_num_heads": kv_heads}
    else:
        shapes = [(batch, heads, queries, size), (batch, kv_heads, keys, size), (batch, kv_heads, keys, value_size)]
        options = {}
    q, k, v = (d.tensor(slot, shape) for slot, shape in zip((0, 1, 2), shapes, strict=True))
    total = keys + past
    mask_shape = d.one_of(
        (queries, total), (1, 1, queries, total), (batch, heads, queries, total), (batch, 1, 1, total)
    )
    mask = d.tensor(3, mask_shape) if d.flag() else None
    if mask is not None and mask.dtype == bool:
        mask[..., 0] = True  # a row that attends to nothing is another question
    pasts = [d.tensor(1, (batch, kv_heads, past, n)) if past else None for n in (size, value_size)]
    lengths = None
    if d.takes("nonpad_kv_seqlen") and not past and d.flag():
        lengths = d.integers((batch,), 1, keys)
    options |= d.some(
        is_causal=d.integer(0, 1),
        scale=d.one_of(0.5, 1.0),
        softcap=d.one_of(2.0, 0.0),
        qk_matmul_output_mode=d.integer(0, 3),
    )
    count = d.one_of(3, 4) if past else d.one_of(1, 1, 4)
    wanted = (True, past > 0, past > 0, count == 4)[:count]
    return d.node(q, k, v, mask, *pasts, lengths, wanted=wanted, **options)


@strategy("CausalConvWithState", ulps=32, scaled=True, absolute=16, palettes=("plain",))
def causal_conv(d: Drawing) -> Node:
    batch, channels, length, kernel = d.integer(1, 2), d.integer(1, 3), d.integer(1, 4), d.integer(1, 3)
    bias = d.tensor(0, (channels,)) if d.flag() else None
    state = d.tensor(0, (batch, channels, kernel - 1)) if d.flag() and kernel > 1 else None
    x, w = d.tensor(0, (batch, channels, length)), d.tensor(0, (channels, 1, kernel))
    return d.node(x, w, bias, state, wanted=(True, True), **d.some(activation=d.one_of("silu", "swish", "none")))


@strategy("LinearAttention", ulps=256, scaled=True, single=True, palettes=("plain",))
def linear_attention(d: Drawing) -> Node:
    batch, heads, length, size = d.integer(1, 2), d.integer(1, 2), d.integer(1, 3), d.integer(1, 3)
    rule = d.one_of("linear", "gated", "delta", "gated_delta")
    q, k, v = (d.tensor(slot, (batch, length, heads * size)) for slot in range(3))
    state = d.tensor(3, (batch, heads, size, size)) if d.flag() else None
    decay = -np.abs(d.tensor(4, (batch, length, heads))) if "gated" in rule else None
    beta = np.abs(d.tensor(5, (batch, length, heads))) / 4 if "delta" in rule else None
    decay = None if decay is None else decay.astype(q.dtype)
    beta = None if beta is None else beta.astype(q.dtype)
    options = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": rule}
    return d.node(q, k, v, state, decay, beta, wanted=(True, True), **options)

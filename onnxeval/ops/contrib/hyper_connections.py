"""Residual streams side by side: their norms, how a block reads and writes them, and the gate of Engram."""

from __future__ import annotations

import numpy as np

from onnxeval.dtypes import Tensor
from onnxeval.ops._cast import convert
from onnxeval.ops.contrib import _curves as curves
from onnxeval.ops.contrib._typed import FLOATS, microsoft_op
from onnxeval.values import shape_text


@microsoft_op("BranchwiseRMSNorm", "TM", T=FLOATS, M=FLOATS)
def branchwise_rms_norm(x: Tensor, scale: Tensor | None, *, epsilon: float = 1e-5, num_branches: int = 0) -> Tensor:
    """Streams (..., C, H), or (..., ``num_branches`` * H), each by its root mean square, times ``scale``.

    The scale is (C * H,), (C, H) or (H,). Computed in float32. Raises ValueError where shapes do not fit together.
    Source: com.microsoft.BranchwiseRMSNorm-1.
    """
    streams = _streams(x, num_branches)
    y = _normed(streams, epsilon)
    if scale is not None:
        shape = streams.shape[-2:]
        if scale.shape not in (shape, shape[1:], (shape[0] * shape[1],)):
            raise ValueError(f"the scale has shape {shape_text(scale.shape)}, expected {shape_text(shape)}")
        y = y * (scale if scale.shape == shape[1:] else scale.reshape(shape)).astype(np.float32)
    return convert(y.reshape(x.shape), x.dtype)


@microsoft_op("HyperConnectionPreMix", "TM", T=FLOATS, M=FLOATS)
def hyper_connection_pre_mix(
    streams: Tensor, pre_mix: Tensor, *, num_branches: int = 0, reduction_scale: float = 1.0
) -> Tensor:
    """Streams (..., C, H) -> (..., H): ``reduction_scale`` times the sum over C of them times their gates.

    Streams may be flat as in `branchwise_rms_norm`. Gates are (..., C), (..., C, 1) or (..., C, H), or flat as the
    streams. Raises ValueError where shapes do not fit together. Source: com.microsoft.HyperConnectionPreMix-1.
    """
    x = _streams(streams, num_branches)
    mixed = (x * _gates(pre_mix, "pre_mix", x.shape)).sum(axis=-2, dtype=np.float32)
    return convert(np.float32(reduction_scale) * mixed, streams.dtype)


@microsoft_op("HyperConnectionPostMix", "TTMM", T=FLOATS, M=FLOATS)
def hyper_connection_post_mix(
    streams: Tensor, block_output: Tensor, post_mix: Tensor, stream_mix: Tensor | None, *, num_branches: int = 0
) -> Tensor:
    """Streams (..., C, H) through the matrices (..., C, C), plus what a block says (..., H) times the gate of each.

    Streams and gates as in `hyper_connection_pre_mix`; without matrices streams stay what they are.
    Raises ValueError where shapes do not fit together. Source: com.microsoft.HyperConnectionPostMix-1.
    """
    x = _streams(streams, num_branches)
    if block_output.shape != (*x.shape[:-2], x.shape[-1]):
        shapes = f"{shape_text(block_output.shape)}, the streams {shape_text(x.shape)}"
        raise ValueError(f"block_output has shape {shapes}")
    said = block_output.astype(np.float32)[..., np.newaxis, :]
    mixed = x
    if stream_mix is not None:
        if stream_mix.shape != (*x.shape[:-1], x.shape[-2]):
            raise ValueError(f"stream_mix has shape {shape_text(stream_mix.shape)}, the streams {shape_text(x.shape)}")
        mixed = stream_mix.astype(np.float32).swapaxes(-1, -2) @ x
    y = mixed + _gates(post_mix, "post_mix", x.shape) * said
    return convert(y.reshape(streams.shape), streams.dtype)


@microsoft_op("HyperConnectionLowRankMix", "TTTTTTT", T=FLOATS)
def hyper_connection_low_rank_mix(
    streams: Tensor,
    norm_scale: Tensor,
    down_weight: Tensor,
    up_weight: Tensor,
    inject_weight: Tensor,
    prev_block_output: Tensor | None,
    prev_post_gate: Tensor | None,
    *,
    epsilon: float = 1e-5,
    gate_div: float = 1.0,
    gate_mul: float = 1.0,
    num_branches: int,
    reduction_scale: float = 1.0,
    silu_alpha: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(what the next block reads (..., H), how it is to be written (..., C), streams) of streams (..., C * H).

    First the streams take up what the last block said, (..., H) times its gate (..., C). Their norms h, scaled by
    (C * H,), go through (C * H, R), scaled SiLU, (R, C * H) and sigmoid to the gates of a `hyper_connection_pre_mix` of
    h; and through (C * H, C), ``gate_div`` and sigmoid to the gates of the next block, times ``gate_mul``. Each step is
    computed in float32 and rounded. Raises ValueError where shapes do not fit together.
    Source: com.microsoft.HyperConnectionLowRankMix-1.
    """

    def rounded(x: Tensor) -> Tensor:
        return convert(x, streams.dtype).astype(np.float32)

    if num_branches < 1:
        raise ValueError(f"num_branches {num_branches} is not positive")
    if (prev_block_output is None) != (prev_post_gate is None):
        raise ValueError("prev_block_output and prev_post_gate come together, one of them is absent")
    x = _streams(streams, num_branches)
    width = x.shape[-2] * x.shape[-1]
    rank = down_weight.shape[-1] if down_weight.ndim else 0
    expected = {
        "norm_scale": (norm_scale, (width,)),
        "down_weight": (down_weight, (width, rank)),
        "up_weight": (up_weight, (rank, width)),
        "inject_weight": (inject_weight, (width, num_branches)),
    }
    for name, (given, shape) in expected.items():
        if given.shape != shape:
            raise ValueError(f"{name} has shape {shape_text(given.shape)}, expected {shape_text(shape)}")
    if prev_block_output is not None and prev_post_gate is not None:
        block = (prev_block_output, prev_post_gate)
        x = _streams(hyper_connection_post_mix(streams, *block, None, num_branches=num_branches), num_branches)
    h = rounded(_normed(x, epsilon) * norm_scale.astype(np.float32).reshape(x.shape[-2:])).reshape(streams.shape)
    z = rounded(np.float32(silu_alpha) * rounded(h @ down_weight.astype(np.float32)))
    hidden = rounded(z * rounded(curves.sigmoid(z)))
    gates = rounded(curves.sigmoid(rounded(hidden @ up_weight.astype(np.float32))))
    read = np.float32(reduction_scale) * (h * gates).reshape(x.shape).sum(axis=-2, dtype=np.float32)
    inject = rounded(rounded(h @ inject_weight.astype(np.float32)) / np.float32(gate_div))
    written = rounded(curves.sigmoid(inject)) * np.float32(gate_mul)
    results = (read, written, x.reshape(streams.shape))
    first, second, third = (convert(result, streams.dtype) for result in results)
    return first, second, third


@microsoft_op("EngramGate", "TTTTTT", outputs=2, T=FLOATS)
def engram_gate(
    key: Tensor,
    query: Tensor,
    value: Tensor,
    key_norm_scale: Tensor,
    query_norm_scale: Tensor,
    conv_norm_scale: Tensor | None,
    *,
    epsilon: float = 1e-5,
    n_outputs: int,
) -> tuple[Tensor, ...]:
    """(gated values (B, S, C, H), those normed) of keys and queries (B, S, C, H) and values (B, S, H).

    The gate is the sigmoid of the signed root of the product of key and query, normed and scaled by (C, H), over
    sqrt(H); the root is of 1e-6 at least. Raises ValueError where shapes do not fit together, and where the second
    output has no ``conv_norm_scale``. Source: com.microsoft.EngramGate-1.
    """
    if key.ndim != 4 or query.shape != key.shape or value.shape != (*key.shape[:2], key.shape[3]):
        shapes = f"{shape_text(key.shape)}, {shape_text(query.shape)} and {shape_text(value.shape)}"
        raise ValueError(f"key, query and value have shapes {shapes}, expected [B, S, C, H] twice and [B, S, H]")
    scales = {"key_norm_scale": key_norm_scale, "query_norm_scale": query_norm_scale}
    if n_outputs > 1:
        if conv_norm_scale is None:
            raise ValueError("gated_value_normed needs conv_norm_scale, which is absent")
        scales["conv_norm_scale"] = conv_norm_scale
    for name, scale in scales.items():
        if scale.shape != key.shape[2:]:
            raise ValueError(f"{name} has shape {shape_text(scale.shape)}, expected {shape_text(key.shape[2:])}")
    k = _normed(key.astype(np.float32), epsilon) * key_norm_scale.astype(np.float32)
    q = _normed(query.astype(np.float32), epsilon) * query_norm_scale.astype(np.float32)
    product = (k * q).sum(axis=-1, keepdims=True) / np.sqrt(np.float32(key.shape[3]))
    gate = curves.sigmoid(np.sign(product) * np.sqrt(np.maximum(np.abs(product), np.float32(1e-6))))
    gated = convert(gate * value.astype(np.float32)[:, :, np.newaxis], key.dtype)
    if n_outputs < 2 or conv_norm_scale is None:
        return (gated,)
    normed = _normed(gated.astype(np.float32), epsilon) * conv_norm_scale.astype(np.float32)
    return gated, convert(normed, key.dtype)


def _normed(x: Tensor, epsilon: float) -> Tensor:
    return np.asarray(x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(epsilon)))


def _streams(x: Tensor, branches: int) -> Tensor:
    """(..., C, H) in float32."""
    if branches:
        if branches < 0 or not x.ndim or x.shape[-1] % branches:
            raise ValueError(f"streams of shape {shape_text(x.shape)} are not {branches} side by side")
        x = x.reshape(*x.shape[:-1], branches, x.shape[-1] // branches)
    elif x.ndim < 2:
        raise ValueError(f"streams have shape {shape_text(x.shape)}, expected [..., C, H]")
    return x.astype(np.float32)


def _gates(gates: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    """In float32, fit to be broadcast to streams of that shape."""
    *batch, branches, width = shape
    match gates.shape:
        case given if given == shape or given == (*batch, branches, 1):
            fitting = gates
        case given if given == (*batch, branches):
            fitting = gates[..., np.newaxis]
        case given if given == (*batch, branches * width):
            fitting = gates.reshape(shape)
        case given:
            raise ValueError(f"{name} has shape {shape_text(given)}, the streams {shape_text(shape)}")
    return fitting.astype(np.float32)

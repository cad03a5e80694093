"""Residual streams side by side, the gates beside them and the routers of experts, against formulas and onnxruntime."""

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(23)
BFLOAT16 = ml_dtypes.bfloat16
#: How far results of a type may be apart.
CLOSE = {np.float32: 1e-5, np.float16: 2e-3, BFLOAT16: 2e-2}


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def rms(x, epsilon=1e-5):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon)


def check(op_type, inputs, expected, dtype=np.float32, **how):
    """Ours is as expected and, where onnxruntime can be given the type, as there."""
    y = ours(op_type, inputs, **how)
    assert y.dtype == dtype
    close = CLOSE[dtype]
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=close, atol=close)
    if dtype != BFLOAT16:
        assert_agree(op_type, inputs, rtol=close / 2, atol=close / 2, **how)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16])
def test_scaled_silu(dtype) -> None:
    x = normal(3, 5).astype(dtype)
    z = x.astype(np.float64)
    check("ScaledSiLU", [x], z * sigmoid(z), dtype)
    check("ScaledSiLU", [x], 0.7 * z * sigmoid(0.7 * z), dtype, alpha=0.7)
    check("ScaledSiLU", [x, np.array(1.5, np.float32)], 1.5 * z * sigmoid(1.5 * z), dtype, alpha=0.7)


def test_scaled_silu_fault() -> None:
    with pytest.raises(NodeError, match="scale has shape"):
        ours("ScaledSiLU", [normal(3), normal(3)])


@pytest.mark.parametrize("limit", [0.0, 0.75])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16])
def test_swiglu(dtype, limit) -> None:
    both = normal(4, 12).astype(dtype)
    gate, up = np.split(both.astype(np.float64), 2, axis=1)
    if limit:
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    expected = gate * sigmoid(1.702 * gate) * (up + 1)
    for inputs in ([both], [both[:, :6], both[:, 6:]]):
        y = ours("SwiGLU", inputs, activation_alpha=1.702, activation_beta=1.0, limit=limit)
        assert y.dtype == dtype
        np.testing.assert_allclose(y.astype(np.float64), expected, rtol=CLOSE[dtype], atol=CLOSE[dtype])


def test_swiglu_rounds_once_or_twice() -> None:
    gate, up = (normal(500).astype(np.float16) for _ in range(2))
    wide = gate.astype(np.float32)
    silu = (wide * sigmoid(wide)).astype(np.float32)
    once, twice = (ours("SwiGLU", [gate, up], round_activation=rounds) for rounds in (0, 1))
    np.testing.assert_allclose(once, silu * up, rtol=5.1e-4)
    np.testing.assert_array_equal(twice, (silu.astype(np.float16).astype(np.float32) * up).astype(np.float16))
    assert np.any(once != twice)
    with pytest.raises(NodeError, match="both halves"):
        ours("SwiGLU", [normal(2, 3)])
    with pytest.raises(NodeError, match="gate and up have shapes"):
        ours("SwiGLU", [normal(2, 3), normal(3, 2)])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16])
def test_branchwise_rms_norm(dtype) -> None:
    x = normal(2, 3, 4).astype(dtype)
    flat = x.reshape(2, 12)
    check("BranchwiseRMSNorm", [x], rms(x), dtype)
    check("BranchwiseRMSNorm", [flat], rms(x, 0.5).reshape(2, 12), dtype, num_branches=3, epsilon=0.5)
    for scale in (normal(12), normal(3, 4), normal(4), normal(4).astype(np.float16)):
        wide = scale.astype(np.float64)
        expected = rms(x) * (wide if wide.size == 4 else wide.reshape(3, 4))
        check("BranchwiseRMSNorm", [x, scale], expected, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16])
def test_pre_mix(dtype) -> None:
    x = normal(5, 2, 3, 4).astype(dtype)
    flat = x.reshape(5, 2, 12)
    wide = x.astype(np.float64)
    for gates in (normal(5, 2, 3), normal(5, 2, 3, 1), normal(5, 2, 3, 4)):
        mixed = (wide * (gates if gates.ndim == 4 else gates[..., None])).sum(axis=2)
        check("HyperConnectionPreMix", [x, gates], mixed, dtype)
        check("HyperConnectionPreMix", [flat, gates], mixed / 2, dtype, num_branches=3, reduction_scale=0.5)
    gates = normal(5, 2, 12)
    check(
        "HyperConnectionPreMix",
        [flat, gates],
        (wide * gates.reshape(wide.shape)).sum(axis=2),
        dtype,
        num_branches=3,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16])
def test_post_mix(dtype) -> None:
    x, said = normal(5, 3, 4).astype(dtype), normal(5, 4).astype(dtype)
    gates, mix = normal(5, 3), normal(5, 3, 3)
    wide, injected = x.astype(np.float64), gates[..., None] * said.astype(np.float64)[:, None]
    check("HyperConnectionPostMix", [x, said, gates], wide + injected, dtype)
    mixed = np.einsum("bck,bch->bkh", mix, wide) + injected
    check("HyperConnectionPostMix", [x, said, gates, mix], mixed, dtype)
    inputs = [x.reshape(5, 12), said, gates[..., None], mix]
    check("HyperConnectionPostMix", inputs, mixed.reshape(5, 12), dtype, num_branches=3)


@pytest.mark.parametrize("with_last", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_low_rank_mix(dtype, with_last) -> None:
    c, h, r = 3, 4, 5
    x, scale = normal(2, c * h), normal(c * h)
    down, up, inject = normal(c * h, r), normal(r, c * h), normal(c * h, c)
    said, gate = (normal(2, h), normal(2, c)) if with_last else (None, None)
    inputs = [None if v is None else v.astype(dtype) for v in (x, scale, down, up, inject, said, gate)]
    x, scale, down, up, inject, said, gate = (None if v is None else v.astype(np.float64) for v in inputs)
    streams = x.reshape(2, c, h)
    if with_last:
        streams = streams + gate[..., None] * said[:, None]
    normed = (rms(streams) * scale.reshape(c, h)).reshape(2, -1)
    z = 0.7 * (normed @ down)
    gates = sigmoid((z * sigmoid(z)) @ up)
    read = 0.5 * (normed * gates).reshape(2, c, h).sum(axis=1)
    written = sigmoid((normed @ inject) / 2) * 3
    attributes = {"silu_alpha": 0.7, "reduction_scale": 0.5, "gate_div": 2.0, "gate_mul": 3.0, "num_branches": c}
    given = ours("HyperConnectionLowRankMix", inputs, outputs=3, **attributes)
    for our, expected in zip(given, (read, written, streams.reshape(2, -1)), strict=True):
        assert our.dtype == dtype
        np.testing.assert_allclose(our, expected, rtol=4 * CLOSE[dtype], atol=4 * CLOSE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16])
def test_engram_gate(dtype) -> None:
    key, query, value = (normal(*shape).astype(dtype) for shape in ((2, 3, 4, 8), (2, 3, 4, 8), (2, 3, 8)))
    scales = [normal(4, 8).astype(dtype) for _ in range(3)]
    of_key, of_query, of_conv = (scale.astype(np.float64) for scale in scales)
    dot = (rms(key) * of_key * rms(query) * of_query).sum(axis=-1, keepdims=True) / np.sqrt(8)
    gate = sigmoid(np.sign(dot) * np.sqrt(np.maximum(np.abs(dot), 1e-6)))
    gated = gate * value.astype(np.float64)[:, :, None]
    y, normed = ours("EngramGate", [key, query, value, *scales], outputs=2)
    for our, expected in ((y, gated), (normed, rms(gated) * of_conv)):
        assert our.dtype == dtype
        np.testing.assert_allclose(our.astype(np.float64), expected, rtol=4 * CLOSE[dtype], atol=2 * CLOSE[dtype])
    if dtype != BFLOAT16:
        assert_agree("EngramGate", [key, query, value, *scales], outputs=2, rtol=1e-3, atol=1e-3)
        assert_agree("EngramGate", [np.zeros_like(key), query, value, *scales[:2]])


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("BranchwiseRMSNorm", [normal(2, 12)], {"num_branches": 5}, "not 5 side by side"),
        ("BranchwiseRMSNorm", [normal(12)], {}, r"expected \[..., C, H\]"),
        ("BranchwiseRMSNorm", [normal(2, 3, 4), normal(3)], {}, "the scale has shape"),
        ("HyperConnectionPreMix", [normal(2, 3, 4), normal(2, 4)], {}, "pre_mix has shape"),
        ("HyperConnectionPostMix", [normal(2, 3, 4), normal(2, 3), normal(2, 3)], {}, "block_output has shape"),
        (
            "HyperConnectionPostMix",
            [normal(2, 3, 4), normal(2, 4), normal(2, 3), normal(3, 3)],
            {},
            "stream_mix has shape",
        ),
        (
            "HyperConnectionLowRankMix",
            [normal(2, 12), normal(12), normal(12, 5), normal(5, 12), normal(12, 4)],
            {"num_branches": 3},
            "inject_weight has shape",
        ),
        (
            "HyperConnectionLowRankMix",
            [normal(2, 12), normal(12), normal(12, 5), normal(5, 12), normal(12, 3), normal(2, 4)],
            {"num_branches": 3},
            "come together",
        ),
        (
            "EngramGate",
            [normal(2, 3, 4, 8), normal(2, 3, 4, 8), normal(2, 3, 8), normal(4, 8), normal(4, 8)],
            {"outputs": 2},
            "needs conv_norm_scale",
        ),
        (
            "EngramGate",
            [normal(2, 3, 4, 8), normal(2, 3, 4, 8), normal(2, 3, 8), normal(8), normal(4, 8)],
            {},
            "key_norm_scale has shape",
        ),
    ],
)
def test_faults(op_type, inputs, attributes, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours(op_type, inputs, **attributes)


def routed_by_hand(weights, scores, top_k, groups, kept, of_group, sentinel):
    y = np.full(weights.shape, sentinel, np.float64)
    size = weights.shape[1] // groups
    for token, row in enumerate(scores):
        sums = [sum(sorted(row[g * size : (g + 1) * size], reverse=True)[:of_group]) for g in range(groups)]
        allowed = sorted(range(groups), key=lambda g: (-sums[g], g))[:kept]
        experts = [e for e in range(len(row)) if e // size in allowed]
        for expert in sorted(experts, key=lambda e: (-row[e], e))[:top_k]:
            y[token, expert] = np.log(max(weights[token, expert], 1e-20))
    return y


@pytest.mark.parametrize(
    ("groups", "kept", "of_group", "top_k"), [(1, 1, 2, 3), (4, 2, 2, 3), (4, 3, 1, 4), (2, 1, 9, 4)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_moe_group_router(groups, kept, of_group, top_k, dtype) -> None:
    logits, bias = normal(2, 5, 8).astype(dtype), normal(8)
    weights = sigmoid(logits.astype(np.float64)).reshape(10, 8)
    expected = routed_by_hand(weights, weights + bias, top_k, groups, kept, of_group, -50.0)
    how = {"top_k": top_k, "n_group": groups, "topk_group": kept, "group_topk": of_group, "router_sentinel": -50.0}
    check("MoEGroupRouter", [logits, bias], expected, dtype, **how)
    assert_agree("MoEGroupRouter", [np.zeros((3, 8), dtype), np.zeros(8, np.float32)], **how)


def test_moe_group_router_gives_all_scores() -> None:
    logits, bias = normal(5, 8), normal(8)
    scores, weights = ours("MoEGroupRouter", [logits, bias], top_k=3, outputs=[1, 2])
    np.testing.assert_allclose(weights, sigmoid(logits), rtol=1e-6)
    np.testing.assert_allclose(scores, sigmoid(logits) + bias, rtol=1e-5)
    assert_agree("MoEGroupRouter", [logits, bias], top_k=3, outputs=[1, 2])
    tokens, projection = normal(4, 256) / 16, normal(8, 256)
    _, weights = ours("MoEGroupRouter", [tokens, bias, projection], top_k=3, outputs=[1, 2])
    np.testing.assert_allclose(weights, sigmoid(tokens @ projection.T), rtol=1e-4)
    assert_agree("MoEGroupRouter", [tokens, bias, projection], top_k=3, outputs=[1, 2], rtol=1e-4)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ([normal(5, 8), normal(7)], {}, "logits and expert_bias have shapes"),
        ([normal(5, 8), normal(8)], {"n_group": 3}, "8 experts in n_group 3"),
        ([normal(5, 8), normal(8)], {"n_group": 4, "top_k": 3}, "more than 1 groups of 2 hold"),
        ([normal(5, 8), normal(8), normal(8, 8)], {}, "not asked for"),
        ([normal(5, 8), normal(8), normal(8, 7)], {"outputs": [1, 2]}, "tokens and projection"),
    ],
)
def test_moe_group_router_faults(inputs, attributes, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours("MoEGroupRouter", inputs, **{"top_k": 2, **attributes})

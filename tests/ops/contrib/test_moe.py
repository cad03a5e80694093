"""MoE and EmbedLayerNormalization against loops over tokens, and against onnxruntime."""

import math

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(18)
TOKENS, EXPERTS, HIDDEN, INNER = 9, 4, 8, 6


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


X, LOGITS = normal(TOKENS, HIDDEN), normal(TOKENS, EXPERTS)


def weights(inner=INNER, of_fc1=INNER):
    """fc1, its bias, fc2, its bias."""
    first = [normal(EXPERTS, of_fc1, HIDDEN), normal(EXPERTS, of_fc1)]
    return [*first, normal(EXPERTS, HIDDEN, inner), normal(EXPERTS, HIDDEN)]


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def gelu(v):
    return np.array([0.5 * t * (1 + math.erf(t / math.sqrt(2))) for t in v])


def fast_gelu(v):
    return 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


CURVES = {
    "relu": lambda v: np.maximum(v, 0),
    "relu2": lambda v: np.maximum(v, 0) ** 2,
    "gelu": gelu,
    "silu": lambda v: v * sigmoid(v),
    "identity": lambda v: v,
}


def by_hand(inputs, between, k=1, normalize=0):
    """``between`` makes what fc2 takes of a token's fc1 and fc3."""
    x, logits, fc1, fc1_bias, fc2, fc2_bias, fc3, fc3_bias = (inputs + [None] * 8)[:8]
    y = np.zeros((len(x), HIDDEN))
    for t, token in enumerate(x.astype(np.float64)):
        powers = np.exp(logits[t].astype(np.float64))
        shares = powers / powers.sum()
        best = sorted(range(EXPERTS), key=lambda e: (-shares[e], e))[:k]
        total = sum(shares[e] for e in best) if normalize else 1
        for e in best:
            inner = fc1[e] @ token + (0 if fc1_bias is None else fc1_bias[e])
            other = None if fc3 is None else fc3[e] @ token + (0 if fc3_bias is None else fc3_bias[e])
            said = fc2[e] @ between(inner, other) + (0 if fc2_bias is None else fc2_bias[e])
            y[t] += shares[e] / total * said
    return y


@pytest.mark.parametrize("activation", CURVES)
@pytest.mark.parametrize(("k", "normalize"), [(1, 0), (2, 0), (2, 1), (4, 1)])
def test_experts(activation, k, normalize) -> None:
    inputs = [X, LOGITS, *weights()]
    how = {"k": k, "normalize_routing_weights": normalize, "activation_type": activation}
    expected = by_hand(inputs, lambda inner, _: CURVES[activation](inner), k, normalize)
    np.testing.assert_allclose(ours("MoE", inputs, **how), expected, rtol=1e-4, atol=1e-5)
    if activation != "relu2":
        # onnxruntime's CPU kernel takes the estimate by tanh for gelu
        assert_agree("MoE", inputs, **how, rtol=1e-4, atol=2e-2 if activation == "gelu" else 1e-5)


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_a_third_product_gates_the_first(activation) -> None:
    inputs = [X, LOGITS, *weights(), normal(EXPERTS, INNER, HIDDEN), normal(EXPERTS, INNER)]
    expected = by_hand(inputs, lambda inner, other: CURVES[activation](inner) * other, 2)
    np.testing.assert_allclose(ours("MoE", inputs, k=2, activation_type=activation), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fusion", [0, 1, 2])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"activation_alpha": 1.7, "activation_beta": 1.0},
        {"swiglu_limit": 0.5},
        {"swiglu_limit": 0.5, "swiglu_limit_after_activation": 1},
    ],
)
def test_swiglu(fusion, attributes) -> None:
    alpha, beta = attributes.get("activation_alpha", 1.0), attributes.get("activation_beta", 0.0)
    limit = attributes.get("swiglu_limit", np.inf)

    def between(inner, other):
        gate, value = inner, other
        if fusion == 1:
            gate, value = inner[0::2], inner[1::2]
        elif fusion == 2:
            gate, value = inner[:INNER], inner[INNER:]
        value = np.clip(value, -limit, limit) + beta
        if attributes.get("swiglu_limit_after_activation"):
            return np.minimum(gate * sigmoid(alpha * gate), limit) * value
        gate = np.minimum(gate, limit)
        return gate * sigmoid(alpha * gate) * value

    inputs = [X, LOGITS, *weights(of_fc1=2 * INNER if fusion else INNER)]
    if not fusion:
        inputs += [normal(EXPERTS, INNER, HIDDEN), normal(EXPERTS, INNER)]
    how = {"k": 2, "activation_type": "swiglu", "swiglu_fusion": fusion, **attributes}
    np.testing.assert_allclose(ours("MoE", inputs, **how), by_hand(inputs, between, 2), rtol=1e-4, atol=1e-5)
    if fusion == 1 and "swiglu_limit_after_activation" not in attributes:
        assert_agree("MoE", inputs, **how, rtol=1e-4, atol=1e-5)


def test_geglu() -> None:
    inputs = [X, LOGITS, *weights(of_fc1=2 * INNER)]
    expected = by_hand(inputs, lambda inner, _: fast_gelu(inner[0::2]) * inner[1::2])
    y = ours("MoE", inputs, activation_type="geglu", swiglu_fusion=1)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_rank_3_no_bias_and_half_precision() -> None:
    fc1, _, fc2, _ = weights()
    inputs = [X.reshape(3, 3, HIDDEN), LOGITS, fc1, None, fc2]
    flat = by_hand([X, LOGITS, fc1, None, fc2], lambda inner, _: CURVES["relu"](inner))
    np.testing.assert_allclose(ours("MoE", inputs), flat.reshape(3, 3, HIDDEN), rtol=1e-4, atol=1e-5)
    assert_agree("MoE", inputs, rtol=1e-4, atol=1e-5)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        narrow = [None if x is None else x.astype(dtype) for x in inputs]
        y = ours("MoE", narrow)
        assert y.dtype == dtype
        wide = [None if x is None else x.astype(np.float32) for x in narrow]
        eps = float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(y.astype(np.float32), ours("MoE", wide), rtol=eps, atol=eps)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"k": 5}, r"k 5 is outside \[1, 4\]"),
        ({"activation_type": "tanh"}, "activation_type 'tanh' is none of relu"),
        ({"use_sparse_mixer": 1}, "use_sparse_mixer asks for a routing that is not documented"),
        ({"activation_type": "swiglu"}, "swiglu needs fc3, or fc1 of twice the size"),
        ({"swiglu_fusion": 3}, "swiglu_fusion 3"),
    ],
)
def test_faults(attributes, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours("MoE", [X, LOGITS, *weights()], **attributes)


def test_faults_of_shapes() -> None:
    fc1, fc1_bias, fc2, fc2_bias = weights()
    for inputs, message in (
        ([X, LOGITS[:3], fc1, None, fc2], r"router_probs have shape \[3, 4\], expected \[9, 4\]"),
        ([X, LOGITS, fc1[:, :, :4], None, fc2], r"tokens and fc1 have shapes \[9, 8\] and \[4, 6, 4\]"),
        ([X, LOGITS, fc1, fc1_bias[:, :2], fc2], r"bias and weights of fc1 have shapes \[4, 2\] and \[4, 6, 8\]"),
        ([X, LOGITS, fc1, None, fc2[:, :, :3]], r"fc2 has shape \[4, 8, 3\], 6 features come in"),
        ([X, LOGITS, fc1, None, fc2[:, :5], fc2_bias[:, :5]], "fc2 gives 5 features, the tokens have 8"),
    ):
        with pytest.raises(NodeError, match=message):
            ours("MoE", inputs)


# EmbedLayerNormalization

IDS, SEGMENTS = RNG.integers(0, 7, (2, 4)).astype(np.int32), RNG.integers(0, 2, (2, 4)).astype(np.int32)
WORDS, PLACES, PARTS, GAMMA, BETA = normal(7, 8), normal(5, 8), normal(2, 8), normal(8), normal(8)
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)


@pytest.mark.parametrize("with_segments", [True, False])
@pytest.mark.parametrize("mask", [MASK, None])
@pytest.mark.parametrize("positions", [None, [[3, 2, 1, 0]], [[3, 2, 1, 0], [0, 1, 2, 4]]])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_embed_layer_normalization(with_segments, mask, positions, dtype) -> None:
    words, places, parts, gamma, beta = (x.astype(dtype) for x in (WORDS, PLACES, PARTS, GAMMA, BETA))
    position_ids = None if positions is None else np.array(positions, np.int32)
    total = words.astype(np.float64)[IDS] + places.astype(np.float64)[positions or [[0, 1, 2, 3]]]
    if with_segments:
        total = total + parts.astype(np.float64)[SEGMENTS]
    centred = total - total.mean(axis=-1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 0.1) * gamma + beta
    counts = [0, 0] if mask is None else mask.sum(axis=1)
    inputs = [IDS, SEGMENTS if with_segments else None, words, places, parts if with_segments else None, gamma, beta]
    inputs += [mask, position_ids]
    given = ours("EmbedLayerNormalization", inputs, outputs=3, epsilon=0.1)
    eps = 1e-5 if dtype == np.float32 else 1e-3
    for one, other in zip(given, (y, counts, total), strict=True):
        np.testing.assert_allclose(one, other, rtol=eps, atol=eps)
    assert [x.dtype for x in given] == [dtype, np.int32, dtype]
    if dtype == np.float32:
        assert_agree("EmbedLayerNormalization", inputs, outputs=3, epsilon=0.1)


def test_embed_layer_normalization_faults() -> None:
    for inputs, message in (
        ([IDS + 5, None, WORDS, PLACES, None, GAMMA, BETA], "leave the 7 rows of word_embedding"),
        ([IDS, None, WORDS, PLACES[:3], None, GAMMA, BETA], "leave the 3 rows of position_embedding"),
        ([IDS, SEGMENTS, WORDS, PLACES, None, GAMMA, BETA], "segment_ids and segment_embedding come together"),
        ([IDS, None, WORDS, PLACES, None, GAMMA, BETA, MASK[:1]], r"the mask has shape \[1, 4\]"),
        ([IDS, None, WORDS, PLACES, None, GAMMA[:4], BETA], r"word_embedding has shape \[7, 8\], gamma \[4\]"),
    ):
        with pytest.raises(NodeError, match=message):
            ours("EmbedLayerNormalization", inputs)

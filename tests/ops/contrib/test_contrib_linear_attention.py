"""LinearAttention, its gates and causal convolutions of com.microsoft, token by token, and against onnxruntime."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(20)
BFLOAT16 = ml_dtypes.bfloat16


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def split(x, heads):
    return x.astype(np.float64).reshape(*x.shape[:2], heads, -1)


def attention_by_hand(inputs, rule, q_heads, kv_heads, scale=0.0):
    """(Y, the state after each token) written from the recurrences of the text."""
    query, key, value, past, decay, beta = inputs
    q, k, v = split(query, q_heads), split(key, kv_heads), split(value, kv_heads)
    batch, tokens, _, width = q.shape
    heads = max(q_heads, kv_heads)
    state = np.zeros((batch, kv_heads, width, v.shape[3])) if past is None else past.astype(np.float64)
    y, states = np.zeros((batch, tokens, heads, v.shape[3])), []
    for t in range(tokens):
        state = state.copy()
        for b, h in np.ndindex(batch, kv_heads):
            if "gated" in rule:
                state[b, h] *= np.exp(split(decay, kv_heads)[b, t, h])[:, None]
            news = v[b, t, h]
            if "delta" in rule:
                rate = beta[b, t, h if beta.shape[2] > 1 else 0]
                news = float(rate) * (news - state[b, h].T @ k[b, t, h])
            state[b, h] += np.outer(k[b, t, h], news)
        states.append(state)
        for b, n in np.ndindex(batch, heads):
            of_query, of_state = n * q_heads // heads, n * kv_heads // heads
            y[b, t, n] = state[b, of_state].T @ q[b, t, of_query] * (scale or width**-0.5)
    return y.reshape(batch, tokens, -1), states


def attention_inputs(rule, q_heads, kv_heads, tokens, with_past, decays=1, betas=None):
    key = normal(2, tokens, kv_heads, 4)
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    return [
        normal(2, tokens, q_heads * 4),
        key.reshape(2, tokens, -1),
        normal(2, tokens, kv_heads * 6),
        normal(2, kv_heads, 4, 6) if with_past else None,
        -np.abs(normal(2, tokens, kv_heads * decays)) if "gated" in rule else None,
        np.abs(normal(2, tokens, betas or kv_heads)) if "delta" in rule else None,
    ]


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("heads", [(2, 2), (4, 2), (2, 4)])
@pytest.mark.parametrize(("tokens", "with_past", "decays", "betas"), [(5, False, 1, None), (1, True, 4, 1)])
def test_linear_attention(rule, heads, tokens, with_past, decays, betas) -> None:
    inputs = attention_inputs(rule, *heads, tokens, with_past, decays, betas)
    how = {"q_num_heads": heads[0], "kv_num_heads": heads[1], "update_rule": rule, "outputs": 2}
    y, states = attention_by_hand(inputs, rule, *heads)
    given = ours("LinearAttention", inputs, **how)
    for one, other in zip(given, (y, states[-1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert_agree("LinearAttention", inputs, **how, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [1, 3, 8])
@pytest.mark.parametrize("tokens", [5, 2])
@pytest.mark.parametrize("with_past", [False, True])
def test_a_window_of_states(window, tokens, with_past) -> None:
    """onnxruntime has it on devices alone."""
    inputs = attention_inputs("gated_delta", 2, 2, tokens, with_past)
    y, states = attention_by_hand(inputs, "gated_delta", 2, 2, scale=0.3)
    if with_past:
        inputs[3] = np.concatenate([normal(window - 1, 2, 2, 4, 6), inputs[3][None]])
    how = {"q_num_heads": 2, "kv_num_heads": 2, "outputs": 2, "state_window": window, "scale": 0.3}
    given = ours("LinearAttention", inputs, **how)
    np.testing.assert_allclose(given[0], y, rtol=1e-4, atol=1e-5)
    kept = states[-window:]
    blank = np.zeros((window - len(kept), 2, 2, 4, 6))
    np.testing.assert_allclose(given[1], np.concatenate([blank, np.stack(kept)]), rtol=1e-4, atol=1e-5)


def test_faults_of_linear_attention() -> None:
    inputs = attention_inputs("gated_delta", 2, 2, 3, with_past=True)
    for how, message in (
        ({"state_window": 9}, r"state_window 9 is outside \[0, 8\]"),
        ({"state_window": 2}, "past_state has shape .*, expected 2 states"),
        ({"update_rule": "gate"}, "update_rule 'gate'"),
    ):
        with pytest.raises(NodeError, match=message):
            ours("LinearAttention", inputs, q_num_heads=2, kv_num_heads=2, outputs=2, **how)


def test_linear_attention_gate() -> None:
    a, b, bias, scale = normal(2, 3, 4), normal(2, 3, 4), normal(4), -np.abs(normal(4))
    for dtype in (np.float32, np.float16, BFLOAT16):
        eps = float(ml_dtypes.finfo(dtype).eps) if dtype != np.float32 else 1e-5
        narrow = a.astype(dtype), b.astype(dtype)
        decay, beta = ours("LinearAttentionGate", [narrow[0], bias, scale, narrow[1]], outputs=2)
        wide = [x.astype(np.float64) for x in narrow]
        np.testing.assert_allclose(decay.astype(float), scale * np.log1p(np.exp(wide[0] + bias)), rtol=eps, atol=1e-6)
        np.testing.assert_allclose(beta.astype(float), sigmoid(wide[1]), rtol=eps, atol=1e-6)
        assert decay.dtype == beta.dtype == dtype
        if dtype != BFLOAT16:
            assert_agree("LinearAttentionGate", [narrow[0], bias, scale, narrow[1]], outputs=2, rtol=eps)
    assert ours("LinearAttentionGate", [a, bias, scale]).shape == (2, 3, 4)
    with pytest.raises(NodeError, match="beta needs b"):
        ours("LinearAttentionGate", [a, bias, scale], outputs=2)


@pytest.mark.parametrize("activation", ["silu", "swish", "sigmoid"])
@pytest.mark.parametrize("size", [4, 8])
def test_gated_rms_norm(activation, size) -> None:
    x, scale, gate = normal(2, 3, 8), normal(size), normal(2, 3, 8)
    groups = x.astype(np.float64).reshape(2, 3, -1, size)
    normed = (groups / np.sqrt((groups**2).mean(axis=-1, keepdims=True) + 0.01) * scale).reshape(x.shape)
    expected = normed * sigmoid(gate.astype(np.float64)) * (1 if activation == "sigmoid" else gate)
    how = {"activation": activation, "epsilon": 0.01}
    np.testing.assert_allclose(ours("GatedRMSNorm", [x, scale, gate], **how), expected, rtol=1e-5, atol=1e-6)
    assert_agree("GatedRMSNorm", [x, scale, gate], **how)
    with pytest.raises(NodeError, match="activation 'relu' is none of"):
        ours("GatedRMSNorm", [x, scale, gate], activation="relu")
    with pytest.raises(NodeError, match=r"have shapes \[2, 3, 8\], \[3\]"):
        ours("GatedRMSNorm", [x, normal(3), gate])


def test_gated_add_rounds_the_product() -> None:
    x, y, gate = normal(2, 3, 8), normal(2, 3, 8), normal(2, 3, 1)
    np.testing.assert_allclose(ours("GatedAdd", [x, y, gate]), x + y * gate, rtol=1e-6)
    assert_agree("GatedAdd", [x, y, gate])
    half = [v.astype(np.float16) for v in (x, y, gate)]
    np.testing.assert_array_equal(ours("GatedAdd", half), half[0] + half[1] * half[2])
    assert_agree("GatedAdd", half, rtol=0, atol=0)
    bf = [v.astype(BFLOAT16) for v in (x, y, normal(2, 3, 5))]
    weight = normal(5, 1).astype(BFLOAT16)
    projected = (bf[2].astype(np.float32) @ weight.astype(np.float32)).astype(BFLOAT16)
    share = sigmoid(projected.astype(np.float64)).astype(np.float32).astype(BFLOAT16)
    np.testing.assert_array_equal(ours("GatedAdd", [*bf, weight]), bf[0] + bf[1] * share)
    with pytest.raises(NodeError, match="a gate that is projected is float32, expected bfloat16"):
        ours("GatedAdd", [x, y, normal(2, 3, 5), normal(5, 1)])


# Convolutions


def convolution_by_hand(x, weight, bias, past, dilation, activation):
    """(Y, everything that was seen) of (B, C, L)."""
    taps = weight.shape[2]
    reach = (taps - 1) * dilation
    before = np.zeros((*x.shape[:2], reach)) if past is None else past
    seen = np.concatenate([before, x], axis=2).astype(np.float64)
    y = np.zeros(x.shape)
    for b, c, t in np.ndindex(x.shape):
        y[b, c, t] = sum(weight[c, 0, j] * seen[b, c, t + j * dilation] for j in range(taps))
        y[b, c, t] += 0 if bias is None else bias[c]
    return (y if activation == "none" else y * sigmoid(y)), seen


@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize(
    ("length", "with_past", "with_bias"), [(9, False, True), (1, True, True), (4, True, False), (0, True, True)]
)
def test_causal_conv(dilation, activation, length, with_past, with_bias) -> None:
    past = normal(2, 3, 3 * dilation) if with_past else None
    inputs = [normal(2, 3, length), normal(3, 1, 4), normal(3) if with_bias else None, past]
    y, seen = convolution_by_hand(*inputs, dilation, activation)
    how = {"dilation": dilation, "activation": activation, "outputs": 2}
    given = ours("CausalConvWithState", inputs, **how)
    np.testing.assert_allclose(given[0], y, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(given[1], seen[:, :, length:].astype(np.float32))
    assert_agree("CausalConvWithState", inputs, **how)


@pytest.mark.parametrize(("shape", "taps"), [((2, 5, 6), 4), ((2, 5, 2, 3), 4), ((2, 5, 6), 1)])
def test_channels_last(shape, taps) -> None:
    x, past = normal(*shape), normal(2, (taps - 1) * 2, *shape[2:])
    weight, bias = normal(6, 1, taps), normal(6)

    def first(v):
        return v.reshape(*v.shape[:2], 6).transpose(0, 2, 1)

    y, seen = convolution_by_hand(first(x), weight, bias, first(past), 2, "silu")
    how = {"channels_last": 1, "dilation": 2, "activation": "silu", "outputs": 2}
    given = ours("CausalConvWithState", [x, weight, bias, past], **how)
    np.testing.assert_allclose(given[0], y.transpose(0, 2, 1).reshape(shape), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(given[1], seen[:, :, 5:].transpose(0, 2, 1).reshape(past.shape).astype(np.float32))
    assert_agree("CausalConvWithState", [x, weight, bias, past], **how)


@pytest.mark.parametrize("length", [6, 2])
def test_a_window_of_past_elements(length) -> None:
    x, weight, past = normal(2, 3, length), normal(3, 1, 4), normal(4, 2, 3, 3)
    y, seen = convolution_by_hand(x, weight, None, past[-1], 1, "none")
    given = ours("CausalConvWithState", [x, weight, None, past], state_window=4, outputs=2)
    np.testing.assert_allclose(given[0], y, rtol=1e-5, atol=1e-5)
    for slot in range(4):
        place = length - 4 + slot
        expected = seen[:, :, place + 1 : place + 4] if place >= 0 else np.zeros((2, 3, 3))
        np.testing.assert_array_equal(given[1][slot], expected.astype(np.float32))


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        ([normal(2, 3, 5), normal(3, 1, 4)], {"activation": "relu"}, "activation 'relu' is none of"),
        ([normal(2, 3, 5), normal(3, 1, 4)], {"ndim": 2}, "for devices alone"),
        ([normal(2, 3, 5), normal(3, 1, 4)], {"state_length": 5}, "for devices alone"),
        ([normal(2, 3, 5), normal(3, 1, 4)], {"dilation": 0}, "dilation 0 is below 1"),
        ([normal(2, 3, 5), normal(2, 1, 4)], {}, r"the weight has shape \[2, 1, 4\], expected \[3, 1, k\]"),
        ([normal(2, 3, 5), normal(3, 1, 4), normal(2)], {}, r"the bias has shape \[2\], expected \[3\]"),
        ([normal(2, 3, 5), normal(3, 1, 4), None, normal(2, 3, 2)], {}, r"past_state has shape \[2, 3, 2\]"),
        ([normal(3, 5), normal(3, 1, 4)], {}, r"the input has shape \[3, 5\], expected \[B, C, L\]"),
    ],
)
def test_faults_of_convolutions(inputs, attributes, message) -> None:
    with pytest.raises(NodeError, match=message):
        ours("CausalConvWithState", inputs, outputs=2, **attributes)


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("capacity", [0, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_convolutions_of_packed_sequences(dilation, activation, with_bias, capacity, dtype) -> None:
    x, weight, past = (
        normal(9, 3).astype(dtype),
        normal(3, 1, 3).astype(dtype),
        normal(3, 3, 2 * dilation).astype(dtype),
    )
    bias = normal(3).astype(dtype) if with_bias else None
    ends, counts = np.array([0, 3, 4, 9], np.int32), np.array([2, 5, -1], np.int32)
    y, states, captured = np.zeros((9, 3)), np.zeros(past.shape), np.zeros((3, capacity, 3))
    for b, (start, end) in enumerate(itertools.pairwise(ends)):
        one, seen = convolution_by_hand(
            x[None, start:end].swapaxes(1, 2), weight, bias, past[[b]], dilation, activation
        )
        y[start:end], states[b] = one[0].T, seen[0, :, end - start :]
        count = max(0, min(counts[b], capacity, end - start))
        captured[b, :count] = x[start : start + count]
    inputs = [x, weight, ends, bias, past, counts if capacity else None]
    how = {"dilation": dilation, "activation": activation, "state_update_capacity": capacity or None}
    how["outputs"] = 3 if capacity else 2
    given = ours("VarlenCausalConvWithState", inputs, **how)
    close = 1e-5 if dtype == np.float32 else 5e-3
    for our, expected in zip(given, (y, states, captured), strict=False):
        assert our.dtype == dtype
        np.testing.assert_allclose(our, expected, rtol=close, atol=close)
    assert_agree("VarlenCausalConvWithState", inputs, **how, rtol=close / 2, atol=close / 2)


@pytest.mark.parametrize(
    ("change", "attributes", "message"),
    [
        ({2: np.array([0, 3, 3], np.int32)}, {}, r"its sequences end at \[0, 3, 3\]"),
        ({2: np.array([0, 3], np.int32)}, {}, r"expected \[1, C, n\]"),
        ({4: normal(2, 3, 3)}, {}, r"past_state has shape \[1, 3, 3\]"),
        ({5: np.array([1, 1], np.int32)}, {}, "do not go together"),
        ({5: np.array([1], np.int32)}, {"state_update_capacity": 2}, "capture_count has shape"),
        ({6: normal(3, 2, 3), 7: normal(3, 1)}, {}, "for devices alone"),
    ],
)
def test_faults_of_packed_sequences(change, attributes, message) -> None:
    inputs = [normal(3, 3), normal(3, 1, 3), np.array([0, 1, 3], np.int32), None, normal(2, 3, 2), None, None, None]
    for place, x in change.items():
        inputs[place] = x
    with pytest.raises(NodeError, match=message):
        ours("VarlenCausalConvWithState", inputs, outputs=2, **attributes)

"""CausalConvWithState and LinearAttention against loops over positions and tokens, as their texts read."""

import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.ops.nn.causal_conv import causal_conv_with_state
from onnxeval.ops.nn.linear_attention import linear_attention


def causal(x, weight, bias=None, past_state=None, activation="none"):
    return causal_conv_with_state(x, weight, bias, past_state, activation=activation, allocate=np.empty)


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize(("kernel", "length"), [(4, 6), (4, 2), (1, 3), (3, 1)])
def test_causal_conv(kernel, length, with_state, activation):
    x, weight, bias = normal(2, 3, length), normal(3, 1, kernel, seed=1), normal(3, seed=2)
    past = normal(2, 3, kernel - 1, seed=3) if with_state else None
    y, state = causal(x, weight, bias, past, activation)
    before = np.zeros((2, 3, kernel - 1)) if past is None else past
    line = np.concatenate((before, x), axis=2)
    expected = np.empty(x.shape)
    for b, c, t in np.ndindex(x.shape):
        total = float(bias[c]) + sum(float(line[b, c, t + i]) * float(weight[c, 0, i]) for i in range(kernel))
        expected[b, c, t] = total if activation == "none" else total / (1 + math.exp(-total))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state, line[:, :, line.shape[2] - kernel + 1 :])
    assert state.dtype == y.dtype == np.float32


def test_two_steps_are_one():
    x, weight = normal(1, 2, 7), normal(2, 1, 3, seed=1)
    whole, last = causal(x, weight)
    first, carried = causal(x[:, :, :4], weight)
    second, end = causal(x[:, :, 4:], weight, past_state=carried)
    np.testing.assert_array_equal(np.concatenate((first, second), axis=2), whole)
    np.testing.assert_array_equal(end, last)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_causal_conv_in_half_precision(dtype):
    y, state = causal(np.ones((1, 1, 2), dtype), np.ones((1, 1, 2), dtype), past_state=np.full((1, 1, 1), 2, dtype))
    assert y.dtype == state.dtype == dtype
    np.testing.assert_array_equal(y.astype(float), [[[3, 2]]])


def test_causal_conv_of_nothing_keeps_the_state():
    past = normal(1, 2, 2)
    y, state = causal(np.empty((1, 2, 0), np.float32), normal(2, 1, 3), past_state=past)
    assert y.shape == (1, 2, 0)
    np.testing.assert_array_equal(state, past)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"activation": "relu"}, "activation 'relu'"),
        ({"x": np.zeros((2, 3), np.float32)}, "rank 2"),
        ({"weight": np.zeros((3, 2, 2), np.float32)}, r"the weight has shape \[3, 2, 2\], expected \[3, 1, k\]"),
        ({"weight": np.zeros((3, 1, 0), np.float32)}, "k >= 1"),
        ({"bias": np.zeros(2, np.float32)}, "the bias has shape"),
        ({"past_state": np.zeros((1, 3, 2), np.float32)}, r"past_state has shape \[1, 3, 2\], expected \[1, 3, 1\]"),
    ],
)
def test_bad_causal_conv(changed, message):
    given = {"x": np.zeros((1, 3, 4), np.float32), "weight": np.zeros((3, 1, 2), np.float32)}
    with pytest.raises(ValueError, match=message):
        causal(**{**given, **changed})


def attended(query, key, value, past_state=None, decay=None, beta=None, **attributes):
    return linear_attention(query, key, value, past_state, decay, beta, chunk_size=64, **{"scale": 0.0, **attributes})


def looped_attention(query, key, value, past_state, decay, beta, kv_num_heads, q_num_heads, scale, update_rule):
    """The four recurrences, in float64, one head of the query at a time."""
    batch, tokens, wide = query.shape
    dk, dv, per_group = wide // q_num_heads, value.shape[2] // kv_num_heads, q_num_heads // kv_num_heads
    scale = scale or 1 / math.sqrt(dk)
    output, states = np.empty((batch, tokens, q_num_heads * dv)), np.empty((batch, kv_num_heads, dk, dv))
    for b in range(batch):
        for head in range(q_num_heads):
            shared = head // per_group
            state = np.zeros((dk, dv)) if past_state is None else past_state[b, shared].astype(np.float64)
            for t in range(tokens):
                q = query[b, t, head * dk : (head + 1) * dk].astype(np.float64)
                k = key[b, t, shared * dk : (shared + 1) * dk].astype(np.float64)
                v = value[b, t, shared * dv : (shared + 1) * dv].astype(np.float64)
                if "gated" in update_rule:
                    one = decay.shape[2] == kv_num_heads
                    g = decay[b, t, shared] if one else decay[b, t, shared * dk : (shared + 1) * dk]
                    state = np.reshape(np.exp(g), (-1, 1)) * state
                if "delta" in update_rule:
                    rate = beta[b, t, 0 if beta.shape[2] == 1 else shared]
                    state = state + rate * np.outer(k, v - state.T @ k)
                else:
                    state = state + np.outer(k, v)
                output[b, t, head * dv : (head + 1) * dv] = scale * (q @ state)
            states[b, shared] = state
    return output, states


@pytest.mark.parametrize("update_rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize(("q_num_heads", "kv_num_heads"), [(2, 2), (4, 2), (3, 1)])
@pytest.mark.parametrize("variant", [0, 1])
def test_linear_attention(update_rule, q_num_heads, kv_num_heads, variant):
    batch, tokens, dk, dv = 2, 3, 4, 5
    inputs = {
        "query": normal(batch, tokens, q_num_heads * dk),
        "key": normal(batch, tokens, kv_num_heads * dk, seed=1) / 2,
        "value": normal(batch, tokens, kv_num_heads * dv, seed=2),
        "past_state": normal(batch, kv_num_heads, dk, dv, seed=3) if variant else None,
        "decay": -np.abs(normal(batch, tokens, kv_num_heads * (dk if variant else 1), seed=4)),
        "beta": np.abs(normal(batch, tokens, 1 if variant else kv_num_heads, seed=5)),
    }
    attributes = {
        "q_num_heads": q_num_heads,
        "kv_num_heads": kv_num_heads,
        "scale": 0.3 if variant else 0.0,
        "update_rule": update_rule,
    }
    output, state = attended(**inputs, **attributes)
    expected, expected_state = looped_attention(**inputs, **attributes)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state, expected_state, rtol=1e-4, atol=1e-5)
    assert output.dtype == state.dtype == np.float32


def test_the_state_may_have_another_type():
    query = np.ones((1, 1, 2), np.float16)
    attributes = {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "linear"}
    output, state = attended(query, query, query, np.ones((1, 1, 2, 2), np.float32), **attributes)
    assert (output.dtype, state.dtype) == (np.float16, np.float32)
    output, state = attended(query, query, query, **attributes)
    assert (output.dtype, state.dtype) == (np.float16, np.float16)


ONES = np.ones((1, 2, 4), np.float32)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"update_rule": "none"}, "update_rule 'none'"),
        ({"update_rule": "gated"}, "update_rule 'gated' needs decay"),
        ({"update_rule": "delta"}, "update_rule 'delta' needs beta"),
        ({"q_num_heads": 3}, "q_num_heads 3 is not a positive multiple of kv_num_heads 2"),
        ({"kv_num_heads": 0}, "kv_num_heads 0"),
        ({"query": ONES[0]}, "the query has shape"),
        ({"key": ONES[:, :1]}, r"the key has shape \[1, 1, 4\], expected \[1, 2, a multiple of 2\]"),
        ({"key": np.ones((1, 2, 6), np.float32)}, "heads of the query have 2 elements, heads of the key have 3"),
        ({"past_state": np.ones((1, 2, 2, 3), np.float32)}, r"expected \[1, 2, 2, 2\]"),
        ({"update_rule": "gated", "decay": np.ones((1, 2, 6), np.float32)}, "heads of the decay have 3"),
        ({"update_rule": "delta", "beta": np.ones((1, 2, 4), np.float32)}, r"expected \[1, 2, 2\] or \[1, 2, 1\]"),
    ],
)
def test_bad_linear_attention(changed, message):
    given = {"query": ONES, "key": ONES, "value": ONES, "q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
    with pytest.raises(ValueError, match=message):
        attended(**{**given, **changed})

"""GatedDeltaNet token by token in float64, and against onnxruntime."""

import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(21)
TOKENS, HEADS, VALUE_HEADS, SIZE, VALUE_SIZE = 6, 2, 4, 8, 5
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


Q, K, V = normal(TOKENS, HEADS, SIZE), normal(TOKENS, HEADS, SIZE), normal(TOKENS, VALUE_HEADS, VALUE_SIZE)
STATE = normal(2, VALUE_HEADS, VALUE_SIZE, SIZE)
DECAY, BETA = -np.abs(normal(TOKENS, VALUE_HEADS)), np.abs(normal(TOKENS, VALUE_HEADS))
CUTS = np.array([0, 2, 6], np.int32)
NAMES = ("q", "k", "v", "cuts", "decay", "beta", "state", "a_log", "dt_bias", "capture", "active")


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def by_hand(given, rule="gated_delta", gate="none", rate="none", bound=-5.0, scale=None, normed=True):
    """(Y, states, what each token multiplies by, its keys, what it adds)."""
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    if normed:
        q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    cuts = given["cuts"] if given.get("cuts") is not None else [0, 3, 6]
    states = np.zeros(STATE.shape) if given.get("state") is None else given["state"].astype(np.float64)
    fade = np.ones((TOKENS, VALUE_HEADS, 1))
    if "gated" in rule:
        fade = given["decay"].astype(np.float64).reshape(TOKENS, VALUE_HEADS, -1)
        if gate != "none":
            speed = np.exp(given["a_log"].astype(np.float64))[:, None]
            biased = fade + given["dt_bias"].reshape(VALUE_HEADS, -1)
            qwen = gate in ("softplus", "qwen")
            fade = -speed * np.log1p(np.exp(biased)) if qwen else bound * sigmoid(speed * biased)
        fade = np.exp(fade)
    y, added = np.zeros(V.shape), np.zeros(V.shape)
    for b in range(2):
        for t in range(cuts[b], cuts[b + 1]):
            for h in range(VALUE_HEADS):
                one = k[t, h // (VALUE_HEADS // HEADS)]
                states[b, h] *= fade[t, h]
                news = v[t, h]
                if "delta" in rule:
                    beta = float(given["beta"][t, h])
                    news = (sigmoid(beta) if rate == "sigmoid" else beta) * (news - states[b, h] @ one)
                added[t, h] = news
                states[b, h] += np.outer(news, one)
                y[t, h] = states[b, h] @ q[t, h // (VALUE_HEADS // HEADS)] * (scale or SIZE**-0.5)
    return y, states, fade, k, added


def check(given, *, gate="none", rate="none", rule="gated_delta", scale=None, bound=None):
    inputs = [given.get(name) for name in NAMES]
    how = {"gate_activation": gate, "beta_activation": rate, "update_rule": rule, "scale": scale, "qk_l2_norm": 1}
    how |= {"outputs": 2, "gate_lower_bound": bound}
    y, states, *_ = by_hand(given, rule, gate, rate, bound or -5.0, scale)
    for one, other in zip(ours("GatedDeltaNet", inputs, **how), (y, states), strict=True):
        np.testing.assert_allclose(one, other, **CLOSE)
    assert_agree("GatedDeltaNet", inputs, **how, **CLOSE)


BASE = {"q": Q, "k": K, "v": V, "cuts": CUTS, "state": STATE}


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("start", ["state", "none", "equal lengths"])
def test_rules(rule, start) -> None:
    given = BASE | ({"decay": DECAY} if "gated" in rule else {}) | ({"beta": BETA} if "delta" in rule else {})
    if start == "none":
        given["state"] = None
    elif start == "equal lengths":
        given["cuts"] = None
    check(given, rule=rule, scale=0.3 if start == "none" else None)


@pytest.mark.parametrize("gate", ["softplus", "qwen", "sigmoid", "kda"])
@pytest.mark.parametrize("each_feature", [False, True])
def test_gates(gate, each_feature) -> None:
    width = (SIZE,) if each_feature else ()
    given = BASE | {"decay": normal(TOKENS, VALUE_HEADS, *width), "beta": normal(TOKENS, VALUE_HEADS)}
    given |= {"a_log": normal(VALUE_HEADS), "dt_bias": normal(VALUE_HEADS, *width)}
    check(given, gate=gate, rate="sigmoid", bound=-3.0 if gate == "kda" else None)


def test_other_layouts() -> None:
    given = BASE | {"decay": DECAY, "beta": BETA, "cuts": None}
    how = {"qk_l2_norm": 1, "outputs": 2}
    y, states = ours("GatedDeltaNet", [given.get(name) for name in NAMES], **how)

    def in_two(x):
        return x.reshape(2, 3, *x.shape[1:])

    apart = [in_two(Q), in_two(K), in_two(V), None, in_two(DECAY), in_two(BETA), STATE]
    flat = np.concatenate([x.reshape(TOKENS, -1) for x in (Q, K, V)], axis=1)
    packed = [flat, None, None, None, DECAY, BETA, STATE]
    packed_apart = [in_two(flat), None, None, None, in_two(DECAY), in_two(BETA), STATE]
    for inputs in (apart, packed, packed_apart):
        given_y, given_states = ours("GatedDeltaNet", inputs, **how)
        np.testing.assert_array_equal(given_y.reshape(y.shape), y)
        np.testing.assert_array_equal(given_states, states)
        assert_agree("GatedDeltaNet", inputs, **how, **CLOSE)


@pytest.mark.parametrize("counts", [[1, 3], [0, 2], [5, 5]])
@pytest.mark.parametrize("each_feature", [False, True])
@pytest.mark.parametrize("active", [None, 1, 0])
def test_updates_of_the_first_tokens(counts, each_feature, active) -> None:
    decay = -np.abs(normal(TOKENS, VALUE_HEADS, SIZE)) if each_feature else DECAY
    given = BASE | {"decay": decay, "beta": BETA, "capture": np.array(counts, np.int32)}
    given["active"] = None if active is None else np.array([active], np.int32)
    _, _, *parts = by_hand(given)
    expected = []
    for b in range(2):
        for part in parts:
            rows = np.zeros((3, *part.shape[1:]))
            kept = 0 if active == 0 else min(counts[b], 3, CUTS[b + 1] - CUTS[b])
            rows[:kept] = part[CUTS[b] : CUTS[b] + kept]
            expected.append(rows.reshape(-1))
    inputs = [given.get(name) for name in NAMES]
    how = {"qk_l2_norm": 1, "state_update_capacity": 3, "outputs": 3}
    updates = ours("GatedDeltaNet", inputs, **how)[2]
    np.testing.assert_allclose(updates.reshape(-1), np.concatenate(expected), **CLOSE)
    assert_agree("GatedDeltaNet", inputs, **how, **CLOSE)


def test_half_precision_keeps_the_state_in_float32() -> None:
    q, k, v, decay, beta = (x.astype(np.float16) for x in (Q, K, V, DECAY, BETA))
    inputs = [q, k, v, CUTS, decay, beta, STATE]
    y, states = ours("GatedDeltaNet", inputs, qk_l2_norm=1, outputs=2)
    assert (y.dtype, states.dtype) == (np.float16, np.float32)
    assert_agree("GatedDeltaNet", inputs, qk_l2_norm=1, outputs=2, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("change", "attributes", "message"),
    [
        ({"cuts": np.array([0, 2, 5], np.int32)}, {}, "cu_seqlens .0, 2, 5. do not cut 6 tokens"),
        ({"cuts": None, "state": None}, {}, "6 tokens are not of 0 sequences"),
        ({"decay": None}, {}, "update_rule 'gated_delta' and the decay, which is absent, differ"),
        ({}, {"update_rule": "gated"}, "update_rule 'gated' and beta, which is there, differ"),
        ({"state": STATE[:1]}, {}, r"initial_state has shape \[1, 4, 5, 8\], expected \[2, 4, 5, 8\]"),
        ({}, {"gate_activation": "qwen"}, "gate_activation 'qwen' needs a_log"),
        ({}, {"gate_activation": "tanh"}, "gate_activation 'tanh' is none of"),
        ({}, {"beta_activation": "tanh"}, "beta_activation 'tanh' is neither"),
        ({}, {"update_rule": "plain"}, "update_rule 'plain' is none of"),
        ({"k": K[:, :1]}, {}, "do not fit"),
        ({"k": None, "v": None, "state": None}, {}, "need a state, which tells their sizes"),
        ({}, {"state_update_capacity": 2}, "capture_count goes with a positive state_update_capacity"),
        ({}, {"state_update_capacity": 9}, "state_update_capacity 9 is outside"),
    ],
)
def test_faults(change, attributes, message) -> None:
    given = BASE | {"decay": DECAY, "beta": BETA} | change
    with pytest.raises(NodeError, match=message):
        ours("GatedDeltaNet", [given.get(name) for name in NAMES], outputs=2, **attributes)

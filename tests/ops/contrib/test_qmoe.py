"""QMoE: the mixture of experts whose weights are what the codes stand for."""

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.codes import F32
from ops.contrib.nodes import assert_agree, ours

import onnxeval

TOKENS, EXPERTS, HIDDEN, INNER = 5, 3, 32, 64


def packed(codes, bits):
    """Rows of codes as bytes, bit by bit from the low ones up."""
    bit = (codes[..., None] >> np.arange(bits)) & 1
    return np.packbits(bit.reshape(*codes.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little")


class Layer:
    """The codes of all experts' matrices (rows, width), and what they stand for."""

    def __init__(self, draw, rows, width, bits, block, zero_points, dtype=F32) -> None:
        groups = width // block if block else 1
        codes = draw.integers(0, 2**bits, (EXPERTS, rows, width))
        zeros = np.full((EXPERTS, rows, groups), 2 ** (bits - 1))
        if zero_points and bits != 3:
            zeros = draw.integers(0, 2**bits, zeros.shape)
        scales = (draw.random(zeros.shape) * 0.1 / 2 ** (bits - 1) + 0.01).astype(dtype)
        self.codes, self.scales = packed(codes, bits), scales if block else scales[..., 0]
        self.zeros = packed(zeros if block else zeros[..., 0], bits) if zero_points else None
        self.numbers = (codes - zeros.repeat(width // groups, 2)) * scales.astype(float).repeat(width // groups, 2)
        self.bias = draw.standard_normal((EXPERTS, rows)).astype(dtype)


def node(bits=4, block=0, zero_points=False, fused=False, third=False, weights=False, dtype=F32, inner_bits=None):
    """(inputs, the numbers of each layer)."""
    draw = np.random.default_rng(bits + block)
    fc1 = Layer(draw, INNER * (2 if fused else 1), HIDDEN, bits, block, zero_points, dtype)
    fc2 = Layer(draw, HIDDEN, INNER, inner_bits or bits, block, zero_points, dtype)
    fc3 = Layer(draw, INNER, HIDDEN, bits, block, zero_points, dtype) if third else None
    inputs = [
        draw.standard_normal((TOKENS, HIDDEN)).astype(dtype),
        draw.standard_normal((TOKENS, EXPERTS)).astype(dtype),
    ]
    for layer in (fc1, fc2, fc3):
        inputs += [None] * 3 if layer is None else [layer.codes, layer.scales, layer.bias]
    inputs += [None if layer is None else layer.zeros for layer in (fc1, fc2, fc3)]
    inputs.append(draw.random((TOKENS, EXPERTS)).astype(dtype) if weights else None)
    while inputs[-1] is None:
        inputs.pop()
    return inputs, (fc1, fc2, fc3)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


def expected(inputs, layers, between, k=1, normalize=0, biased=True):
    """Token by token; ``between`` makes what fc2 takes of what fc1 and fc3 give."""
    x, logits = inputs[0].astype(float), inputs[1].astype(float)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    if len(inputs) > 14:
        shares = inputs[14].astype(float)
    y = np.zeros((TOKENS, HIDDEN))
    for t in range(TOKENS):
        best = np.argsort(-logits[t], kind="stable")[:k]
        total = shares[t, best].sum() if normalize else 1
        for e in best:
            given = [
                None if layer is None else layer.numbers[e] @ x[t] + (layer.bias[e] if biased else 0)
                for layer in (layers[0], layers[2])
            ]
            y[t] += shares[t, e] / total * (layers[1].numbers[e] @ between(*given) + layers[1].bias[e] * biased)
    return y


FORMS = [
    {"bits": 4},
    {"bits": 8},
    {"bits": 2},
    {"bits": 4, "block": 16},
    {"bits": 8, "block": 32},
    {"bits": 2, "block": 16},
    {"bits": 4, "zero_points": True},
    {"bits": 8, "block": 16, "zero_points": True},
    {"bits": 2, "block": 32, "zero_points": True},
    {"bits": 4, "block": 32, "zero_points": True},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_forms_of_weights(form) -> None:
    inputs, layers = node(**form)
    how = {"expert_weight_bits": form["bits"], "block_size": form.get("block"), "k": 2, "normalize_routing_weights": 1}
    given = ours("QMoE", inputs, **how)
    assert given.dtype == F32
    np.testing.assert_allclose(given, expected(inputs, layers, lambda a, _: relu(a), 2, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_forms_of_weights_as_onnxruntime(form) -> None:
    inputs, _ = node(**form)
    how = {"expert_weight_bits": form["bits"], "block_size": form.get("block"), "k": 2, "normalize_routing_weights": 1}
    # Its kernels of 8 bits in blocks take the tokens as 8 bits too.
    tolerance = 5e-2 if form["bits"] == 8 and "block" in form else 1e-4
    assert_agree("QMoE", inputs, rtol=tolerance, atol=tolerance, **how)


@pytest.mark.parametrize("block", [0, 32])
@pytest.mark.parametrize("zero_points", [False, True])
def test_three_bits(block, zero_points) -> None:
    inputs, layers = node(3, block, zero_points)
    given = ours("QMoE", inputs, expert_weight_bits=3, block_size=block or None)
    np.testing.assert_allclose(given, expected(inputs, layers, lambda a, _: relu(a)), rtol=1e-4, atol=1e-4)


def test_bits_for_each_layer() -> None:
    inputs, layers = node(4, inner_bits=8)
    given = ours("QMoE", inputs, expert_weight_bits=2, fc1_expert_weight_bits=4, fc2_expert_weight_bits=8)
    np.testing.assert_allclose(given, expected(inputs, layers, lambda a, _: relu(a)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("normalize", [0, 1])
@pytest.mark.parametrize("weights", [False, True])
def test_routing(k, normalize, weights) -> None:
    inputs, layers = node(weights=weights)
    how = {"k": k, "normalize_routing_weights": normalize}
    wanted = expected(inputs, layers, lambda a, _: relu(a), k, normalize)
    np.testing.assert_allclose(ours("QMoE", inputs, **how), wanted, rtol=1e-4, atol=1e-4)
    if normalize or weights:  # else its weights add up to 1 all the same
        assert_agree("QMoE", inputs, rtol=1e-4, atol=1e-4, **how)


ACTIVATIONS = {"silu": lambda x: x * sigmoid(x), "identity": lambda x: x, "relu2": lambda x: relu(x) ** 2}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation) -> None:
    inputs, layers = node()
    how = {"activation_type": activation, "k": 2, "normalize_routing_weights": 1}
    wanted = expected(inputs, layers, lambda a, _: ACTIVATIONS[activation](a), 2, 1)
    np.testing.assert_allclose(ours("QMoE", inputs, **how), wanted, rtol=1e-4, atol=1e-4)
    if activation != "relu2":
        assert_agree("QMoE", inputs, rtol=1e-4, atol=1e-4, **how)


@pytest.mark.parametrize("fusion", [0, 1, 2])
@pytest.mark.parametrize("limit", [None, 0.7])
def test_swiglu(fusion, limit) -> None:
    inputs, layers = node(fused=fusion > 0, third=not fusion)
    bound = np.inf if limit is None else limit

    def between(a, b):
        gate, value = (a, b) if not fusion else (a[0::2], a[1::2]) if fusion == 1 else (a[:INNER], a[INNER:])
        gate, value = np.minimum(gate, bound), np.clip(value, -bound, bound)
        return gate * sigmoid(1.7 * gate) * (value + 1)

    how = {
        "activation_type": "swiglu",
        "activation_alpha": 1.7,
        "activation_beta": 1.0,
        "swiglu_fusion": fusion,
        "swiglu_limit": limit,
        "k": 2,
        "normalize_routing_weights": 1,
    }
    given = ours("QMoE", inputs, **how)
    np.testing.assert_allclose(given, expected(inputs, layers, between, 2, 1), rtol=1e-4, atol=1e-4)
    if fusion == 1:
        assert_agree("QMoE", inputs, rtol=1e-4, atol=1e-4, **how)


@pytest.mark.parametrize("block", [0, 20])
def test_float8(block) -> None:
    inputs, layers = node()
    draw = np.random.default_rng(1)
    whole = [None, None]
    for place, layer in enumerate(layers[:2]):
        values = draw.standard_normal(layer.numbers.shape).astype(ml_dtypes.float8_e4m3fn)
        _, rows, width = values.shape
        blocks = (-(-rows // block), -(-width // block)) if block else ()
        scales = (draw.random((EXPERTS, *blocks)) + 0.5).astype(F32)
        full = scales.repeat(block, 1)[:, :rows].repeat(block, 2)[:, :, :width] if block else scales[:, None, None]
        layer.numbers = values.astype(float) * full
        inputs[2 + 3 * place], inputs[3 + 3 * place] = values, scales if block else None
        whole[place] = None if block else scales
    inputs += [None] * (15 - len(inputs)) + whole
    given = ours("QMoE", inputs, quant_type="fp8", block_size=block or None)
    np.testing.assert_allclose(given, expected(inputs[:8], layers, lambda a, _: relu(a)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats(dtype) -> None:
    inputs, layers = node(block=16, dtype=dtype)
    given = ours("QMoE", [inputs[0].reshape(1, TOKENS, HIDDEN), *inputs[1:]], block_size=16)
    assert given.dtype == dtype
    wanted = expected(inputs, layers, lambda a, _: relu(a))[None]
    np.testing.assert_allclose(given.astype(float), wanted, rtol=2e-2, atol=2e-2)


REFUSALS = [
    ({}, 2, np.zeros((EXPERTS, INNER, 8), np.uint8), "fc1 has weights of shape .3, 64, 8., expected .3, 64, 16."),
    ({}, 3, np.ones((EXPERTS, 5), F32), "fc1 has scales of shape"),
    ({}, 4, np.ones((EXPERTS, 5), F32), "fc1 has bias of shape"),
    ({}, 6, None, "fc2 has weights of shape .3, 32, 32. and no scales"),
    ({}, 1, np.ones((TOKENS, 2), F32), "router_probs have shape"),
    ({"block_size": 24}, 0, np.ones((TOKENS, HIDDEN), F32), "block_size 24 is no power of 2"),
    ({"block_size": 64}, 0, np.ones((TOKENS, HIDDEN), F32), "32 features of fc1 are no blocks of 64"),
    ({"expert_weight_bits": 5}, 0, np.ones((TOKENS, HIDDEN), F32), "have 5 bits"),
    ({"quant_type": "nvfp4"}, 0, np.ones((TOKENS, HIDDEN), F32), "'nvfp4' is a layout of a device"),
    ({"quant_type": "fp8"}, 0, np.ones((TOKENS, HIDDEN), F32), "weights of fc1 are uint8"),
    ({"weights_prepacked": 1}, 0, np.ones((TOKENS, HIDDEN), F32), "weights_prepacked 1 is a layout"),
    ({"use_sparse_mixer": 1}, 0, np.ones((TOKENS, HIDDEN), F32), "use_sparse_mixer"),
    ({"k": 4}, 0, np.ones((TOKENS, HIDDEN), F32), "k 4 is outside"),
]


@pytest.mark.parametrize(("attributes", "place", "value", "message"), REFUSALS)
def test_refusals(attributes, place, value, message) -> None:
    inputs, _ = node()
    inputs[place] = value
    with pytest.raises(onnxeval.NodeError, match=message):
        ours("QMoE", inputs, **attributes)


def test_three_bits_have_one_zero_point() -> None:
    inputs, _ = node(3, zero_points=True)
    inputs[11] = np.zeros_like(inputs[11])
    with pytest.raises(onnxeval.NodeError, match=r"of 3 bits are \[0\], expected 4"):
        ours("QMoE", inputs, expert_weight_bits=3)

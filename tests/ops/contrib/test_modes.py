"""Operators on floats against onnxruntime, one mode after the other: attributes, optional inputs and types.

Beside the tests of each operator, which hold formulas: here is what those leave to a formula alone.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.codes import F32
from ops.contrib.sweeps import Sweep, rounded, sweeping, varied
from ops.contrib.test_group_query_attention import EVERY, call, listed
from ops.contrib.test_matmul_nbits import Weights
from ops.contrib.test_qmoe import node as mixture

pytest.importorskip("onnxruntime")

HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
TYPES = (np.dtype(F32), *HALVES)
RNG = np.random.default_rng(41)


@pytest.fixture
def sweep():
    with sweeping() as sweep:
        yield sweep


def normal(*shape, dtype=F32):
    return RNG.standard_normal(shape).astype(dtype)


def narrowed(inputs, dtype):
    return [x if x is None or x.dtype != F32 else x.astype(dtype) for x in inputs]


# Products and convolutions


@pytest.mark.parametrize("dtype", [F32, np.float64])
def test_fused_matmul(dtype, sweep: Sweep) -> None:
    for trans_a, trans_b, batch_a, batch_b, alpha in itertools.product((0, 1), (0, 1), (0, 1), (0, 1), (None, 0.3)):
        a, b = normal(2, 3, 4, 5, dtype=dtype), normal(2, 3, 5, 6, dtype=dtype)
        a, b = (x.swapaxes(-1, -2) if turned else x for x, turned in ((a, trans_a), (b, trans_b)))
        a, b = (np.moveaxis(x, -2, 0) if moved else x for x, moved in ((a, batch_a), (b, batch_b)))
        how = {"transA": trans_a, "transB": trans_b, "transBatchA": batch_a, "transBatchB": batch_b, "alpha": alpha}
        if batch_a == batch_b:  # onnxruntime asks for both or none of two batches
            sweep.agree("FusedMatMul", [np.ascontiguousarray(a), np.ascontiguousarray(b)], **how, atol=1e-4)


ACTIVATIONS = [
    {},
    *({"activation": name} for name in ("Relu", "Tanh", "Sigmoid")),
    {"activation": "LeakyRelu", "activation_params": [0.2]},
    {"activation": "Clip", "activation_params": [-0.5, 0.7]},
    {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
]
WINDOWS = [
    {},
    {"pads": [1, 0, 2, 1]},
    {"strides": [2, 1], "kernel_shape": [3, 2]},
    {"dilations": [2, 3], "pads": [2, 2, 2, 2]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"auto_pad": "SAME_LOWER"},
    {"auto_pad": "VALID"},
    {"group": 2},
    {"group": 4},
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_fused_conv(activation, sweep: Sweep) -> None:
    for window, biased in itertools.product(WINDOWS, (False, True)):
        inputs = [normal(2, 4, 9, 8), normal(8, 4 // window.get("group", 1), 3, 2), normal(8) if biased else None]
        sweep.agree("FusedConv", inputs, **window, **activation, rtol=1e-4, atol=1e-4)
        if window.get("pads") == [1, 0, 2, 1]:
            sweep.agree("FusedConv", [*inputs, normal(2, 8, 10, 8)], **window, **activation, rtol=1e-4, atol=1e-4)


def test_conv_transpose_with_dynamic_pads(sweep: Sweep) -> None:
    modes = [{}, {"strides": [2, 3]}, {"kernel_shape": [3, 2]}, {"dilations": [2, 2]}, {"group": 2}]
    modes.append({"strides": [2, 2], "output_padding": [1, 1]})
    for mode in modes:
        inputs = [normal(2, 4, 5, 6), normal(4, 3, 3, 2), np.array([1, 0, 0, 1]), normal(3 * mode.get("group", 1))]
        for given in varied(inputs, 3):
            sweep.agree("ConvTransposeWithDynamicPads", given, **mode, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", TYPES[:2])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_matmul_nbits(dtype, bits, sweep: Sweep) -> None:
    for zero_points, level, k in itertools.product((None, "packed", "float"), (0, 1, 2), (64, 40)):
        weights = Weights(bits, 16, k, zero_points=zero_points, dtype=dtype)
        a = normal(3, k, dtype=dtype)
        for bias in (None, normal(5, dtype=dtype)):
            inputs = [a, *weights.inputs, bias]
            constants = tuple(place for place in (1, 2, 3) if inputs[place] is not None)
            close = {"rtol": 2e-2, "atol": 2e-3 * 2**bits * 8} if dtype == np.float16 else {"atol": 1e-3 * 2**bits}
            sweep.agree("MatMulNBits", inputs, **weights.attributes, accuracy_level=level, constants=constants, **close)


# Norms and curves


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("op_type", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_skip_layer_normalization(op_type, dtype, sweep: Sweep) -> None:
    x, skips = normal(2, 3, 8), [normal(2, 3, 8), normal(1, 3, 8), normal(3, 8)]
    ends = [normal(8), normal(8), normal(8)] if op_type == "SkipLayerNormalization" else [normal(8), normal(8)]
    listed_outputs = (1, (0, 3))
    for skip, epsilon, outputs in itertools.product(skips, (None, 0.1), listed_outputs):
        for given in varied([x, skip, *ends], *range(3, 2 + len(ends))):
            sweep.agree(op_type, narrowed(given, dtype), epsilon=epsilon, outputs=outputs, **rounded(dtype))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_norms_of_branches_and_gates(dtype, sweep: Sweep) -> None:
    how = rounded(dtype)
    for scale_dtype in TYPES:
        x, scale = normal(2, 5, 12, dtype=dtype), normal(12, dtype=scale_dtype)
        sweep.agree("BranchwiseRMSNorm", [x, scale], num_branches=3, **how)
        sweep.agree("BranchwiseRMSNorm", [x], num_branches=3, epsilon=0.5, **how)
    for activation, epsilon in itertools.product((None, "silu", "swish", "sigmoid"), (None, 0.01)):
        inputs = [normal(2, 5, 12, dtype=dtype), normal(4, dtype=dtype), normal(2, 5, 12, dtype=dtype)]
        sweep.agree("GatedRMSNorm", inputs, activation=activation, epsilon=epsilon, **how)


@pytest.mark.parametrize("dtype", [F32, np.float64, np.float16])
def test_inverse(dtype, sweep: Sweep) -> None:
    x = normal(3, 2, 4, 4) + 4 * np.eye(4, dtype=F32)
    sweep.agree("Inverse", [x.astype(dtype)], **rounded(np.dtype(dtype), 16))  # onnxruntime eliminates in float16


@pytest.mark.parametrize("dtype", [F32, np.float64, np.int16, np.int32, np.int64])
def test_range(dtype, sweep: Sweep) -> None:
    for start, limit, delta in ((0, 7, 2), (5, -5, -3), (3, 3, 1), (1, 6, None)):
        inputs = [None if x is None else np.array(x, dtype) for x in (start, limit, delta)]
        sweep.agree("Range", inputs)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_grid_sample(mode, padding_mode, align_corners, sweep: Sweep) -> None:
    grid = RNG.uniform(-1.4, 1.4, (2, 4, 5, 2)).astype(F32)
    how = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    sweep.agree("GridSample", [normal(2, 3, 6, 7), grid], **how, atol=1e-4)


# Attention and what stands around it


@pytest.mark.parametrize("dtype", TYPES[:2], ids=str)
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(dtype, interleaved, sweep: Sweep) -> None:
    how = {"interleaved": interleaved, **rounded(dtype)}
    whole, part = normal(20, 4), normal(20, 2)
    for scale, packed in itertools.product((None, 1.0), (0, 1)):
        more = how | {"scale": scale, "is_packed_batching": packed}
        for places in (np.array([3]), RNG.integers(0, 20, (2, 5))):
            for x in (normal(2, 5, 24), normal(2, 3, 5, 8)):
                sweep.agree("RotaryEmbedding", narrowed([x, places, whole, whole[::-1]], dtype), **more)
                turned = {"rotary_embedding_dim": 4, "num_heads": 3}
                sweep.agree("RotaryEmbedding", narrowed([x, places, part, part[::-1]], dtype), **more, **turned)
        places = RNG.integers(0, 20, (3, 2, 5))
        for layout, x in itertools.product((0, 1), (normal(2, 5, 24), normal(2, 3, 5, 8))):
            inputs = narrowed([x, places, whole, whole[::-1]], dtype)
            sweep.agree("MRotaryEmbedding", inputs, **more, mrope_section=[2, 1, 1], mrope_layout=layout)


@pytest.mark.parametrize("more", [{}, {"scale": 0.4}, {"mask_filter_value": -4.0}])
def test_multi_head_attention_over_keys_of_heads(more, sweep: Sweep) -> None:
    """onnxruntime's CPU kernel takes no tensors of queries, keys and values together."""
    mask = np.array([[1, 1, 1, 0, 0, 1, 1], [1] * 7], np.int32)
    for masked, bias in itertools.product((None, mask), (None, normal(1, 3, 5, 7))):
        inputs = [normal(2, 5, 24), normal(2, 3, 7, 8), normal(2, 3, 7, 8), None, masked, bias]
        sweep.agree("MultiHeadAttention", inputs, num_heads=3, **more, rtol=1e-4, atol=1e-5)


def test_attention_attributes(sweep: Sweep) -> None:
    close = {"rtol": 1e-4, "atol": 1e-5}
    x, weights, bias = normal(2, 5, 16), normal(16, 96), normal(96)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
    for filter_value, scale, causal in itertools.product((None, -3.0), (None, 0.3), (0, 1)):
        how = {"num_heads": 2, "mask_filter_value": filter_value, "scale": scale, "unidirectional": causal}
        sweep.agree("Attention", [x, weights, bias, mask], **how, **close)
    for more in ({}, {"rotary_embedding_dim": 8}, {"rotary_embedding_dim": 32}):
        wide = [normal(2, 5, 32), normal(32, 192), normal(192)]
        sweep.agree("Attention", wide, num_heads=2, do_rotary=1, **more, **close)
    sweep.agree("Attention", [x, normal(16, 40), normal(40)], num_heads=2, qkv_hidden_sizes=[12, 12, 16], **close)


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("filter_value", [None, -2.0])
def test_masked_decoding(scale, filter_value, sweep: Sweep) -> None:
    how = {"num_heads": 2, "scale": scale, "mask_filter_value": filter_value, "rtol": 1e-4, "atol": 1e-5}
    mask = np.array([[1, 1, 0, 1], [1, 1, 1, 1]], np.int32)
    for bias, masked in itertools.product((None, normal(24)), (None, mask)):
        cross = [normal(2, 1, 8), normal(2, 2, 4, 4), normal(2, 2, 4, 4), masked, *([None] * 6), bias]
        sweep.agree("DecoderMaskedMultiHeadAttention", cross, **how)


@pytest.mark.parametrize(
    "mode", [{}, {"scale": 0.3}, {"softcap": 2.0}, {"local_window_size": 3}, {"smooth_softmax": 1}]
)
def test_group_query_attention_in_float16(mode, sweep: Sweep) -> None:
    turning = {"cos": normal(20, 8), "sin": normal(20, 8)}
    for given, more in (
        (call(), {}),
        (call(**turning), {"do_rotary": 1}),
        (call(1, past=6, lengths=(6, 6), total=7, **turning), {"do_rotary": 1, "rotary_interleaved": 1}),
        (call(batch=1, past=6, lengths=(9,), total=10), {}),
        (call(head_sink=normal(4), attention_bias=normal(1, 4, 4, 4)), {}),
    ):
        inputs = narrowed(listed(given), np.dtype(np.float16))
        close = rounded(np.dtype(np.float16), 8)
        sweep.agree("GroupQueryAttention", inputs, outputs=3, **EVERY, **mode, **more, **close)


def test_linear_attention(sweep: Sweep) -> None:
    close = {"rtol": 1e-4, "atol": 1e-4}
    for rule, past in itertools.product(("linear", "gated", "delta", "gated_delta"), (False, True)):
        for more in ({}, {"scale": 0.4}, {"chunk_size": 2}, {"state_window": 3}):
            shape = (3, 2, 2, 4, 6) if "state_window" in more else (2, 2, 4, 6)
            inputs = [normal(2, 5, 16), normal(2, 5, 8) / 2, normal(2, 5, 12), normal(*shape) if past else None]
            inputs.append(-abs(normal(2, 5, 2)) if "gated" in rule else None)
            inputs.append(RNG.uniform(0, 1, (2, 5, 2)).astype(F32) if "delta" in rule else None)
            how = {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": rule, "outputs": 2}
            sweep.agree("LinearAttention", inputs, **how, **more, **close)


def test_causal_convolution(sweep: Sweep) -> None:
    close = {"rtol": 1e-4, "atol": 1e-5, "outputs": 2}
    for last, dilation, activation in itertools.product((0, 1), (1, 2), ("none", "silu", "swish")):
        length = 2 * dilation
        shape, state = ((2, 7, 4), (2, length, 4)) if last else ((2, 4, 7), (2, 4, length))
        inputs = [normal(*shape), normal(4, 1, 3), normal(4), normal(*state)]
        for given in varied(inputs, 2, 3):
            how = {"channels_last": last, "dilation": dilation, "activation": activation}
            sweep.agree("CausalConvWithState", given, **how, **close)


# Tables and experts


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_tables(index, sweep: Sweep) -> None:
    data, indices = RNG.integers(0, 256, (6, 32)).astype(np.uint8), np.array([[0, 3], [5, 5]], index)
    scales = abs(normal(6, 4)).astype(F32)
    for dtype in (F32, np.float16):
        inputs = [data, indices, scales.astype(dtype)]
        sweep.agree("GatherBlockQuantized", inputs, bits=4, block_size=16, constants=(0, 2), **rounded(np.dtype(dtype)))
    sweep.agree("GatherND", [normal(4, 5, 6), np.array([[[0, 1], [3, -1]]], index)])


def test_embeddings(sweep: Sweep) -> None:
    words, segments = RNG.integers(0, 9, (2, 5)).astype(np.int32), RNG.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    tables = [normal(9, 8), normal(7, 8), normal(2, 8), normal(8), normal(8)]
    for with_segments, with_mask, places, kind in itertools.product(
        (True, False), (True, False), (None, (2, 5), (1, 5)), (None, 0, 1)
    ):
        position_ids = None if places is None else RNG.integers(0, 7, places).astype(np.int32)
        inputs = [words, segments if with_segments else None, *tables, mask if with_mask else None, position_ids]
        if not with_segments:
            inputs[4] = None
        outputs = (0, 1, 2) if with_mask else (0, 2)
        sweep.agree("EmbedLayerNormalization", inputs, mask_index_type=kind, outputs=outputs, epsilon=0.01, atol=1e-5)


@pytest.mark.parametrize("dtype", TYPES[:2], ids=str)
def test_mixtures_of_quantized_experts(dtype, sweep: Sweep) -> None:
    for bits, block, k in itertools.product((4, 8), (0, 32), (1, 2)):
        inputs, _ = mixture(bits, block, dtype=dtype)
        how = {"expert_weight_bits": bits, "block_size": block or None, "k": k, "accuracy_level": 1}
        close = {"rtol": 5e-2, "atol": 5e-2} if bits == 8 and block else rounded(dtype, 8)
        for activation in ("relu", "gelu", "silu", "identity"):
            more = {"activation_type": activation, "normalize_routing_weights": 1}  # which onnxruntime always does
            estimate = {"rtol": 2e-2, "atol": 2e-2} if activation == "gelu" else {}  # onnxruntime takes one by tanh
            sweep.agree("QMoE", inputs, **how, **more, **(close | estimate))


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity", "swiglu"])
def test_mixtures_of_experts(activation, sweep: Sweep) -> None:
    x, logits = normal(6, 8), normal(6, 4)
    fused = {"swiglu_fusion": 1, "activation_alpha": 1.7, "activation_beta": 1.0} if activation == "swiglu" else {}
    first = 12 if fused else 6
    inputs = [x, logits, normal(4, first, 8), normal(4, first), normal(4, 8, 6), normal(4, 8)]
    for k, normalize in itertools.product((1, 2), (0, 1)):
        how = {"k": k, "normalize_routing_weights": normalize, "activation_type": activation, **fused}
        for given in varied(inputs, 3, 5):
            close = 2e-3 if activation == "gelu" else 1e-4  # onnxruntime takes an estimate of gelu
            sweep.agree("MoE", given, **how, rtol=close, atol=close)

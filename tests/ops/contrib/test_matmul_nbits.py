"""MatMulNBits and GatherBlockQuantized against loops over blocks and codes, and against onnxruntime."""

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(14)
INT4, UINT4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def packed(codes, bits):
    """(..., n) small integers -> bytes, the first in the low bits."""
    missing = -codes.shape[-1] % (8 // bits)
    codes = np.concatenate([codes, np.zeros((*codes.shape[:-1], missing), codes.dtype)], axis=-1)
    result = np.zeros((*codes.shape[:-1], codes.shape[-1] * bits // 8), np.uint8)
    for place in np.ndindex(codes.shape):
        *lead, last = place
        result[(*lead, last * bits // 8)] |= int(codes[place]) << (last * bits % 8)
    return result


class Weights:
    """Random weights of a bit width, and what MatMulNBits is to read from them."""

    def __init__(self, bits, block_size, K, N=5, zero_points="packed", grouped=False, dtype=np.float32) -> None:
        self.attributes = {"K": K, "N": N, "bits": bits, "block_size": block_size}
        blocks = -(-K // block_size)
        codes = RNG.integers(0, 2**bits, (N, blocks * block_size))
        scales = normal(N, blocks).astype(dtype)
        self.groups = RNG.integers(0, blocks, K).astype(np.int32) if grouped else np.arange(K) // block_size
        zeros = np.full((N, blocks), 2.0 ** (bits - 1))
        self.zero_points = None
        if zero_points == "packed":
            zeros = RNG.integers(0, 2**bits, (N, blocks))
            self.zero_points = packed(zeros, bits)
        elif zero_points == "float":
            self.zero_points = RNG.uniform(0, 2**bits, (N, blocks)).astype(dtype)
            zeros = self.zero_points.astype(np.float64)
        self.numbers = np.zeros((N, K))
        for n, k in np.ndindex(N, K):
            group = self.groups[k]
            self.numbers[n, k] = (codes[n, k] - zeros[n, group]) * float(scales[n, group])
        b = packed(codes.reshape(N, blocks, block_size), bits)
        self.inputs = [b, scales, self.zero_points, self.groups.astype(np.int32) if grouped else None]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("block_size", "K"), [(16, 32), (32, 40), (128, 100), (16, 16)])
@pytest.mark.parametrize("zero_points", [None, "packed", "float"])
@pytest.mark.parametrize("biased", [False, True])
def test_formula_and_onnxruntime(bits, block_size, K, zero_points, biased) -> None:
    weights = Weights(bits, block_size, K, zero_points=zero_points)
    a, bias = normal(2, 3, K), normal(5) if biased else None
    inputs = [a, *weights.inputs, bias]
    expected = a.astype(np.float64) @ weights.numbers.T + (bias if biased else 0)
    close = {"rtol": 1e-4, "atol": 1e-4 * 2**bits}
    np.testing.assert_allclose(ours("MatMulNBits", inputs, **weights.attributes), expected, **close)
    if not (bits == 8 and zero_points == "float"):  # which onnxruntime has no kernel for
        constants = tuple(place for place in (1, 2, 3) if inputs[place] is not None)
        assert_agree("MatMulNBits", inputs, constants=constants, **weights.attributes, **close)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero_points", [None, "packed", "float"])
def test_g_idx_says_which_block_scales_a_column(bits, zero_points) -> None:
    """onnxruntime 1.32 reads 2-bit codes as 4-bit ones here, and overlooks packed zero points."""
    weights = Weights(bits, 16, 40, zero_points=zero_points, grouped=True)
    a = normal(3, 40)
    y = ours("MatMulNBits", [a, *weights.inputs], **weights.attributes)
    np.testing.assert_allclose(y, a.astype(np.float64) @ weights.numbers.T, rtol=1e-4, atol=1e-4 * 2**bits)
    if bits == 4 and zero_points != "packed":
        assert_agree("MatMulNBits", [a, *weights.inputs], **weights.attributes, rtol=1e-4, atol=1e-3)


def test_flat_scales_of_older_models() -> None:
    weights = Weights(4, 32, 64)
    b, scales, zeros, _ = weights.inputs
    a = normal(2, 64)
    flat = [a, b, scales.reshape(-1), zeros.reshape(-1)]
    expected = ours("MatMulNBits", [a, *weights.inputs], **weights.attributes)
    np.testing.assert_array_equal(ours("MatMulNBits", flat, **weights.attributes), expected)
    assert_agree("MatMulNBits", flat, **weights.attributes, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("zero_points", [None, "packed", "float"])
def test_half_precision_rounds_once(dtype, zero_points) -> None:
    weights = Weights(4, 16, 32, zero_points=zero_points, dtype=dtype)
    a = normal(2, 32).astype(dtype)
    y = ours("MatMulNBits", [a, *weights.inputs], accuracy_level=4, **weights.attributes)
    assert y.dtype == dtype
    exact = a.astype(np.float64) @ weights.numbers.T
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=float(ml_dtypes.finfo(dtype).eps), atol=1e-3)


def test_weights_that_are_left_out_give_zeros_and_the_bias() -> None:
    how = {"K": 64, "N": 5, "block_size": 32}
    a, bias = normal(2, 3, 64), normal(5)
    scales = np.zeros(0, np.float32)
    for shape in ((0, 2, 16), (5, 0, 16), (0, 0, 0)):
        b = np.zeros(shape, np.uint8)
        y = ours("MatMulNBits", [a, b, scales, None, None, bias], **how)
        np.testing.assert_array_equal(y, np.broadcast_to(bias, (2, 3, 5)))
        assert_agree("MatMulNBits", [a, b, scales, None, None, bias], **how)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 3}, "bits 3 is none of 2, 4, 8"),
        ({"block_size": 24}, "block_size 24 is no power of 2"),
        ({"block_size": 8}, "block_size 8 is no power of 2"),
        ({"K": 63}, r"the input has shape \[2, 64\], expected \[..., 63\]"),
        ({"N": 6}, r"B has shape \[5, 2, 16\], expected \[6, 2, 16\]"),
        ({"weight_prepacked": 1}, "a layout of a device"),
    ],
)
def test_faults_of_attributes(change, message) -> None:
    weights = Weights(4, 32, 64)
    with pytest.raises(NodeError, match=message):
        ours("MatMulNBits", [normal(2, 64), *weights.inputs], **(weights.attributes | change))


def test_faults_of_inputs() -> None:
    weights = Weights(4, 32, 64)
    b, scales, zeros, _ = weights.inputs
    a = normal(2, 64)
    for inputs, message in (
        ([a, b, scales[:4], zeros], r"scales has shape \[4, 2\], expected \[5, 2\]"),
        ([a, b, scales, zeros[:, :0]], r"zero_points has shape \[5, 0\], expected \[5, 1\]"),
        ([a, b, scales, zeros, np.full(64, 2, np.int32)], "g_idx holds 2 to 2, there are 2 groups"),
        ([a, b, scales, zeros, np.zeros(3, np.int32)], r"g_idx has shape \[3\], expected \[64\]"),
        ([a, b, scales, zeros, None, normal(4)], r"the bias has shape \[4\], expected \[5\]"),
        ([a, b.astype(np.int8), scales], 'input 1 "b" is int8, allowed: uint8'),
    ):
        with pytest.raises(NodeError, match=message):
            ours("MatMulNBits", inputs, **weights.attributes)


# GatherBlockQuantized

INDICES = np.array([[0, -1, 3], [5, 7, -9]], np.int64)  # the last two are outside


def gathered(numbers, along):
    """The slices of a table of numbers at INDICES, zero where there are none."""
    size = numbers.shape[along]
    slices = [
        np.zeros_like(numbers.take(0, axis=along)) if not -size <= i < size else numbers.take(i, axis=along)
        for i in INDICES.reshape(-1)
    ]
    stacked = np.stack(slices, axis=along)
    return stacked.reshape(*numbers.shape[:along], *INDICES.shape, *numbers.shape[along + 1 :])


def spread(x, axis, length, block):
    return np.repeat(x.astype(np.float64), block, axis=axis).take(np.arange(length), axis=axis)


@pytest.mark.parametrize("dtype", [INT4, UINT4], ids=str)
@pytest.mark.parametrize(("along", "blocked"), [(0, 1), (1, 0), (0, 2), (2, 1), (1, 1), (-1, -1), (0, 0)])
@pytest.mark.parametrize("with_zero_points", [False, True])
@pytest.mark.parametrize("scale_dtype", [np.float32, np.float16])
def test_gather_of_four_bits(dtype, along, blocked, with_zero_points, scale_dtype) -> None:
    shape = [6, 5, 40]
    blocks = shape.copy()
    blocks[blocked] = -(-shape[blocked] // 16)
    low, high = (-8, 8) if dtype == INT4 else (0, 16)
    data, zeros = RNG.integers(low, high, shape), RNG.integers(low, high, blocks)
    scales = normal(*blocks).astype(scale_dtype)
    numbers = data - (spread(zeros, blocked, shape[blocked], 16) if with_zero_points else 0)
    numbers = numbers * spread(scales, blocked, shape[blocked], 16)
    inputs = [data.astype(dtype), INDICES, scales] + [zeros.astype(dtype)] * with_zero_points
    how = {"gather_axis": along, "quantize_axis": blocked, "block_size": 16}
    constants = (0, 2, 3) if with_zero_points else (0, 2)
    y = ours("GatherBlockQuantized", inputs, constants=constants, **how)
    assert y.dtype == scale_dtype
    rtol = float(np.finfo(scale_dtype).eps)
    np.testing.assert_allclose(y, gathered(numbers, along % 3), rtol=rtol)
    assert_agree("GatherBlockQuantized", inputs, constants=constants, **how, rtol=rtol)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("with_zero_points", [False, True])
@pytest.mark.parametrize("width", [64, 40])
def test_gather_of_bytes(bits, with_zero_points, width) -> None:
    codes, zeros = RNG.integers(0, 2**bits, (6, width)), RNG.integers(0, 2**bits, (6, -(-width // 16)))
    scales = normal(6, -(-width // 16))
    numbers = codes - (spread(zeros, 1, width, 16) if with_zero_points else 2 ** (bits - 1))
    numbers = numbers * spread(scales, 1, width, 16)
    inputs = [packed(codes, bits), INDICES, scales] + [packed(zeros, bits)] * with_zero_points
    how = {"bits": bits, "block_size": 16, "constants": (0, 2, 3) if with_zero_points else (0, 2)}
    np.testing.assert_allclose(ours("GatherBlockQuantized", inputs, **how), gathered(numbers, 0), rtol=1e-6)
    assert_agree("GatherBlockQuantized", inputs, **how)


@pytest.mark.parametrize(
    "dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"]
)
@pytest.mark.parametrize(
    ("block_size", "scale_shape"), [(16, (6, 5, 3)), (16, (1, 5, 3)), (16, (1, 1, 3)), (0, (6, 5, 1)), (0, (1, 1, 1))]
)
def test_gather_of_small_floats(dtype, block_size, scale_shape) -> None:
    data, scales = normal(6, 5, 40).astype(np.dtype(getattr(ml_dtypes, dtype))), normal(*scale_shape)
    whole = np.broadcast_to(scales, (6, 5, scale_shape[2]))
    numbers = data.astype(np.float64) * spread(whole, 2, 40, block_size or 40)
    how = {"quantize_axis": 2, "block_size": block_size, "constants": (0, 2)}
    y = ours("GatherBlockQuantized", [data, INDICES, scales], **how)
    np.testing.assert_allclose(y, gathered(numbers, 0), rtol=1e-6)
    assert_agree("GatherBlockQuantized", [data, INDICES, scales], **how)


def test_gather_faults() -> None:
    data, scales = np.zeros((4, 32), np.uint8), np.ones((4, 4), np.float32)
    floats = data.astype(ml_dtypes.float8_e5m2)
    for inputs, how, message in (
        ([data, INDICES, scales], {"bits": 3}, "bits 3 is none of 2, 4, 8"),
        ([data, INDICES, scales], {"gather_axis": 1}, "uint8 is gathered on axis 0"),
        ([data, INDICES, scales], {"quantize_axis": 0}, "blocked on another, not on 0 and 0"),
        ([data, INDICES, scales], {"block_size": 0}, "block_size 0 is no power of 2"),
        ([data, INDICES, scales[:, :3]], {}, r"scales have shape \[4, 3\], expected \[4, 4\]"),
        ([data, INDICES, scales, data], {}, r"zero_points have shape \[4, 32\], expected \[4, 2\]"),
        ([floats, INDICES, scales[:, :2], floats], {}, "float8e5m2 has no zero points"),
    ):
        with pytest.raises(NodeError, match=message):
            ours("GatherBlockQuantized", inputs, **({"block_size": 16} | how))

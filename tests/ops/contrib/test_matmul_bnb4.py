"""MatMulBnb4 with the floats of 4 bits built from their bits, and normal floats from the normal distribution."""

from statistics import NormalDist

import numpy as np
import pytest
from ops.contrib.codes import F32
from ops.contrib.nodes import assert_agree, ours

import onnxeval


def fp4(code):
    """Sign, two bits of exponent, one of mantissa; the largest is 1, and only 1/192 lies beside the scheme."""
    magnitude = {0: 0, 1: 1 / 192, 2: 2 / 3, 3: 1, 4: 1 / 3, 5: 1 / 2, 6: 1 / 6, 7: 1 / 4}[code & 7]
    return -magnitude if code & 8 else magnitude


def normal_floats():
    """Quantiles, seven below zero and eight above, scaled to [-1, 1]."""
    offset = 0.9677083
    above = [NormalDist().inv_cdf(p) for p in np.linspace(offset, 0.5, 9)[:-1]]
    below = [-NormalDist().inv_cdf(p) for p in np.linspace(offset, 0.5, 8)[:-1]]
    numbers = np.array(sorted([*above, 0, *below]))
    return numbers / numbers.max()


TABLES = [np.array([fp4(code) for code in range(16)]), normal_floats()]
SHAPES = [(16, 4, 16, (3, 16)), (3, 5, 16, (2, 1, 3)), (40, 7, 32, (5, 40)), (64, 9, 64, (64,)), (24, 5, 16, (0, 24))]


def node(K, N, block_size, shape):
    draw = np.random.default_rng(K)
    count = N * K
    codes = draw.integers(0, 16, count + count % 2).astype(np.uint8)
    absmax = draw.random(-(-count // block_size)).astype(F32) + F32(0.1)
    return [draw.standard_normal(shape).astype(F32), codes[::2] << 4 | codes[1::2], absmax], codes[:count]


def weights_of(inputs, codes, table, K, N, block_size):
    return np.array([table[code] * inputs[2][i // block_size] for i, code in enumerate(codes)]).reshape(N, K)


@pytest.mark.parametrize("quant_type", [0, 1])
@pytest.mark.parametrize(("K", "N", "block_size", "shape"), SHAPES)
def test_product(K, N, block_size, shape, quant_type) -> None:
    inputs, codes = node(K, N, block_size, shape)
    given = ours("MatMulBnb4", inputs, K=K, N=N, block_size=block_size, quant_type=quant_type)
    weights = weights_of(inputs, codes, TABLES[quant_type], K, N, block_size)
    assert given.dtype == F32
    np.testing.assert_allclose(given, inputs[0] @ weights.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("quant_type", [0, 1])
def test_weights_as_they_are(quant_type) -> None:
    inputs, codes = node(16, 4, 16, (3, 4))
    given = ours("MatMulBnb4", inputs, K=16, N=4, block_size=16, quant_type=quant_type, transB=0, training_mode=1)
    weights = weights_of(inputs, codes, TABLES[quant_type], 16, 4, 16)
    np.testing.assert_allclose(given, inputs[0] @ weights, rtol=1e-5, atol=1e-5)


def test_float16() -> None:
    inputs, codes = node(16, 4, 16, (3, 16))
    inputs = [inputs[0].astype(np.float16), inputs[1], inputs[2].astype(np.float16)]
    given = ours("MatMulBnb4", inputs, K=16, N=4, block_size=16, quant_type=1)
    assert given.dtype == np.float16
    np.testing.assert_allclose(given, inputs[0] @ weights_of(inputs, codes, TABLES[1], 16, 4, 16).T, rtol=2e-3)


@pytest.mark.parametrize("quant_type", [0, 1])
@pytest.mark.parametrize(("K", "N", "block_size", "shape"), SHAPES[:-1])
def test_onnxruntime(K, N, block_size, shape, quant_type) -> None:
    inputs, _ = node(K, N, block_size, shape)
    how = {"K": K, "N": N, "block_size": block_size, "quant_type": quant_type}
    assert_agree("MatMulBnb4", inputs, constants=(1, 2), rtol=1e-4, atol=1e-5, **how)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quant_type": 2}, "quant_type 2 is neither"),
        ({"block_size": 24}, "block_size 24 is no power of 2"),
        ({"K": 17}, r"B has shape \[32\], weights \(4, 17\) need 34 elements"),
        ({"block_size": 32}, r"absmax has shape \[4\], weights \(4, 16\) need 2 elements"),
        ({"N": -4, "K": -16}, "is negative"),
        ({"transB": 0}, "do not multiply"),
    ],
)
def test_refusals(change, message) -> None:
    how = {"K": 16, "N": 4, "block_size": 16, "quant_type": 0, **change}
    with pytest.raises(onnxeval.NodeError, match=message):
        ours("MatMulBnb4", node(16, 4, 16, (3, 16))[0], **how)

"""MatMulNBits with a norm before and a gate after, against formulas; onnxruntime has them for devices alone."""

import numpy as np
import pytest
from ops.contrib.nodes import ours
from ops.contrib.test_matmul_nbits import Weights, normal

from onnxeval.errors import NodeError

K, WIDTHS = 40, (6, 4, 4)


def weights_of(width):
    """(what a node takes, the matrix)."""
    weights = Weights(4, 32, K, N=width, zero_points=None)
    return weights.inputs[:2], weights.numbers


def normed(a, skip, scale, epsilon):
    """(the input of the products, the sum)."""
    total = a.astype(np.float64) + (0 if skip is None else skip)
    if scale is None:
        return total, total
    return total / np.sqrt((total * total).mean(axis=-1, keepdims=True) + epsilon) * scale, total


@pytest.mark.parametrize("norm", ["none", "plain", "of a sum"])
@pytest.mark.parametrize("biased", [False, True])
def test_mlp(norm, biased) -> None:
    a, skip = normal(2, 3, K), normal(2, 3, K) if norm == "of a sum" else None
    scale = None if norm == "none" else normal(K)
    (gate, gate_numbers), (up, up_numbers) = weights_of(5), weights_of(5)
    gate_bias, up_bias = (normal(5), normal(5)) if biased else (None, None)
    x, total = normed(a, skip, scale, 0.01)
    g = x @ gate_numbers.T + (gate_bias if biased else 0)
    u = x @ up_numbers.T + (up_bias if biased else 0)
    how = {"K": K, "N": 5, "block_size": 32, "activation": "silu", "epsilon": 0.01}
    outputs = 2 if skip is not None else 1
    given = ours("MatMulNBitsMlp", [a, skip, scale, *gate, gate_bias, *up, up_bias], outputs=outputs, **how)
    y = given if outputs == 1 else given[0]
    np.testing.assert_allclose(y, g / (1 + np.exp(-g)) * u, rtol=1e-3, atol=1e-3)
    if outputs == 2:
        np.testing.assert_allclose(given[1], total, rtol=1e-6)


@pytest.mark.parametrize("with_skip", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_qkv(with_skip, biased) -> None:
    a, skip, scale = normal(2, 3, K), normal(2, 3, K) if with_skip else None, normal(K)
    x, total = normed(a, skip, scale, 1e-6)
    inputs, expected = [a, skip, scale], []
    for width in WIDTHS:
        weights, numbers = weights_of(width)
        bias = normal(width) if biased else None
        inputs += [*weights, bias]
        expected.append(x @ numbers.T + (bias if biased else 0))
    if with_skip:
        expected.append(total)
    how = {"K": K, "Nq": WIDTHS[0], "Nkv": WIDTHS[1], "block_size": 32}
    given = ours("MatMulNBitsQkv", inputs, outputs=len(expected), **how)
    for our, wanted in zip(given, expected, strict=True):
        np.testing.assert_allclose(our, wanted, rtol=1e-3, atol=1e-3)


def test_faults() -> None:
    (gate, _), (up, _) = weights_of(5), weights_of(5)
    how = {"K": K, "N": 5, "block_size": 32}
    a = normal(2, K)
    with pytest.raises(NodeError, match="activation 'relu' is not 'silu'"):
        ours("MatMulNBitsMlp", [a, None, None, *gate, None, *up, None], activation="relu", **how)
    with pytest.raises(NodeError, match="a skip needs norm_scale"):
        ours("MatMulNBitsMlp", [a, a, None, *gate, None, *up, None], activation="silu", **how)
    with pytest.raises(NodeError, match="input_skip_bias_sum needs a skip"):
        ours("MatMulNBitsMlp", [a, None, normal(K), *gate, None, *up], activation="silu", outputs=2, **how)

"""The Gelu family against math.erf and math.tanh, element by element, and against onnxruntime."""

import math

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(11)
X = RNG.normal(size=(2, 3, 6)).astype(np.float32) * 3
BIAS = RNG.normal(size=6).astype(np.float32)


def each(function, x):
    return np.array([function(float(v)) for v in x.reshape(-1)], np.float64).reshape(x.shape)


def gelu(v):
    return 0.5 * v * (1 + math.erf(v / math.sqrt(2)))


def fast_gelu(v):
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


def quick_gelu(v, alpha=1.702):
    return v / (1 + math.exp(-alpha * v))


CASES = [
    ("Gelu", [X], {}, lambda: each(gelu, X)),
    ("BiasGelu", [X, BIAS], {}, lambda: each(gelu, X + BIAS)),
    ("FastGelu", [X], {}, lambda: each(fast_gelu, X)),
    ("FastGelu", [X, BIAS], {}, lambda: each(fast_gelu, X + BIAS)),
    ("QuickGelu", [X], {}, lambda: each(quick_gelu, X)),
    ("QuickGelu", [X], {"alpha": -0.5}, lambda: each(lambda v: quick_gelu(v, -0.5), X)),
]


@pytest.mark.parametrize(("op_type", "inputs", "attributes", "expected"), CASES)
def test_formula(op_type, inputs, attributes, expected) -> None:
    np.testing.assert_allclose(ours(op_type, inputs, **attributes), expected(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("op_type", "inputs", "attributes", "expected"), CASES)
def test_onnxruntime(op_type, inputs, attributes, expected) -> None:
    assert_agree(op_type, inputs, **attributes)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats_round_once(dtype) -> None:
    x = X.astype(dtype)
    wide = each(gelu, x.astype(np.float64))
    y = ours("Gelu", [x])
    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(np.float64), wide, rtol=float(ml_dtypes.finfo(dtype).eps), atol=1e-6)


def test_gemm_fast_gelu() -> None:
    w = RNG.normal(size=(6, 4)).astype(np.float32)
    bias = RNG.normal(size=4).astype(np.float32)
    y = ours("GemmFastGelu", [X, w, bias])
    np.testing.assert_allclose(y, each(fast_gelu, X.astype(np.float64) @ w + bias), rtol=1e-4, atol=1e-5)


def test_bias_split_gelu_multiplies_the_left_half() -> None:
    y = ours("BiasSplitGelu", [X, BIAS])
    biased = X.astype(np.float64) + BIAS
    np.testing.assert_allclose(y, biased[..., :3] * each(gelu, biased[..., 3:]), rtol=2e-5, atol=1e-6)


def test_faults() -> None:
    with pytest.raises(NodeError, match=r"\[2, 3, 5\], expected \[N, S, D\] with an even D"):
        ours("BiasSplitGelu", [X[..., :5], BIAS[:5]])
    with pytest.raises(NodeError, match=r"\[5\] and \[2, 3, 6\]"):
        ours("BiasGelu", [X, BIAS[:5]])
    with pytest.raises(NodeError, match='input 0 "x" is int64, allowed: float32'):
        ours("Gelu", [X.astype(np.int64)])
    with pytest.raises(NodeError, match='input 1 "bias" is float16, but 0 "x" is float32'):
        ours("BiasGelu", [X, BIAS.astype(np.float16)])

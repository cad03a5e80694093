"""Fused matrix products and convolutions against NumPy and against onnxruntime."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(13)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("trans_a", "batch_a", "trans_b", "batch_b"), list(itertools.product((0, 1), repeat=4)))
def test_flags_name_the_layout_of_the_operands(trans_a, batch_a, trans_b, batch_b) -> None:
    def laid_out(x, trans, batch):
        x = x.swapaxes(-1, -2) if trans else x
        return np.ascontiguousarray(np.moveaxis(x, -2, 0) if batch else x)

    a, b = normal(2, 5, 3, 4), normal(2, 5, 4, 6)
    inputs = [laid_out(a, trans_a, batch_a), laid_out(b, trans_b, batch_b)]
    flags = {"transA": trans_a, "transBatchA": batch_a, "transB": trans_b, "transBatchB": batch_b, "alpha": 0.5}
    np.testing.assert_allclose(ours("FusedMatMul", inputs, **flags), 0.5 * (a @ b), rtol=1e-5, atol=1e-5)
    assert_agree("FusedMatMul", inputs, **flags, atol=1e-5)


@pytest.mark.parametrize(
    ("a_shape", "b_shape", "flags"),
    [
        ((4,), (4, 3), {"transA": 1}),
        ((3, 4), (4,), {"transB": 1}),
        ((4,), (4,), {}),
        ((2, 3, 4), (4, 5), {}),
        ((2, 1, 3, 4), (7, 5, 4), {"transB": 1}),
        ((0, 3, 4), (4, 5), {}),
        ((3, 0), (0, 5), {"alpha": 2.0}),
    ],
)
def test_ranks(a_shape, b_shape, flags) -> None:
    a, b = normal(*a_shape), normal(*b_shape)
    left = a.swapaxes(-1, -2) if flags.get("transA") and a.ndim > 1 else a
    right = b.swapaxes(-1, -2) if flags.get("transB") and b.ndim > 1 else b
    expected = flags.get("alpha", 1) * np.matmul(left, right)
    np.testing.assert_allclose(ours("FusedMatMul", [a, b], **flags), expected, rtol=1e-5, atol=1e-5)
    assert_agree("FusedMatMul", [a, b], **flags)


def test_transpose_matmul_is_its_older_name() -> None:
    a, b = normal(4, 5), normal(3, 4)
    np.testing.assert_allclose(ours("TransposeMatMul", [a, b], transA=1, transB=1), a.T @ b.T, rtol=1e-5)
    assert_agree("TransposeMatMul", [a, b], transA=1, transB=1)


def test_half_precision_rounds_once() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        a, b = normal(3, 64).astype(dtype), normal(64, 3).astype(dtype)
        exact = 0.3 * (a.astype(np.float64) @ b.astype(np.float64))
        y = ours("FusedMatMul", [a, b], alpha=0.3)
        assert y.dtype == dtype
        np.testing.assert_allclose(y.astype(np.float64), exact, rtol=float(ml_dtypes.finfo(dtype).eps), atol=1e-5)


def softplus(v):
    return math.log1p(math.exp(v))


ACTIVATIONS = {
    "Relu": ("", lambda v: max(v, 0)),
    "LeakyRelu": ("a", lambda v: v if v >= 0 else 0.3 * v),
    "Tanh": ("", math.tanh),
    "Sigmoid": ("", lambda v: 1 / (1 + math.exp(-v))),
    "HardSigmoid": ("ab", lambda v: min(max(0.3 * v + 0.7, 0), 1)),
    "Elu": ("a", lambda v: v if v >= 0 else 0.3 * math.expm1(v)),
    "Celu": ("a", lambda v: max(v, 0) + min(0, 0.3 * math.expm1(v / 0.3))),
    "Selu": ("ag", lambda v: 1.5 * (v if v > 0 else 0.3 * math.expm1(v))),
    "Softplus": ("", softplus),
    "Softsign": ("", lambda v: v / (1 + abs(v))),
    "ThresholdedRelu": ("a", lambda v: v if v > 0.3 else 0),
    "ParametricSoftplus": ("ab", lambda v: 0.3 * softplus(0.7 * v)),
    "ScaledTanh": ("ab", lambda v: 0.3 * math.tanh(0.7 * v)),
}
PARAMETERS = {"a": ("activation_alpha", 0.3), "b": ("activation_beta", 0.7), "g": ("activation_gamma", 1.5)}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("op_type", ["FusedGemm", "FusedMatMulActivation"])
def test_activations(op_type, name) -> None:
    needed, function = ACTIVATIONS[name]
    given = dict(PARAMETERS[letter] for letter in needed)
    a, b = np.array([[-2, -0.5, 0.1, 0.5, 4]], np.float32), np.eye(5, dtype=np.float32)
    expected = np.array([[function(float(v)) for v in a[0]]])
    y = ours(op_type, [a, b], activation=name, **given)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    if op_type == "FusedGemm":
        assert_agree(op_type, [a, b], activation=name, **given)


def test_fused_gemm_transposes_and_weighs() -> None:
    inputs = [normal(3, 2), normal(5, 3), normal(5)]
    how = {"activation": "Relu", "transA": 1, "transB": 1, "alpha": 0.3, "beta": 0.6}
    expected = np.maximum(0.3 * inputs[0].T @ inputs[1].T + 0.6 * inputs[2], 0)
    np.testing.assert_allclose(ours("FusedGemm", inputs, **how), expected, rtol=1e-5, atol=1e-6)
    assert_agree("FusedGemm", inputs, **how)


def test_unknown_activations_and_missing_parameters() -> None:
    a = np.eye(2, dtype=np.float32)
    with pytest.raises(NodeError, match="activation 'Gelu' is none of Relu"):
        ours("FusedGemm", [a, a], activation="Gelu")
    with pytest.raises(
        NodeError, match=r"activation 'HardSigmoid' needs the parameters \(alpha, beta\), \[0.5\] given"
    ):
        ours("FusedGemm", [a, a], activation="HardSigmoid", activation_alpha=0.5)
    with pytest.raises(NodeError, match="activation 'Tanh' is not defined for int32"):
        ours("FusedGemm", [a.astype(np.int32)] * 2, activation="Tanh")


CONV = [
    ("Relu", (), lambda y: np.maximum(y, 0)),
    ("LeakyRelu", (0.3,), lambda y: np.where(y < 0, 0.3 * y, y)),
    ("Tanh", (), np.tanh),
    ("Sigmoid", (), lambda y: 1 / (1 + np.exp(-y))),
    ("HardSigmoid", (0.3, 0.7), lambda y: np.clip(0.3 * y + 0.7, 0, 1)),
    ("Clip", (-0.5, 0.25), lambda y: np.clip(y, -0.5, 0.25)),
    ("HardSwish", (), lambda y: y * np.clip(y / 6 + 0.5, 0, 1)),
    (None, (), lambda y: y),
]


@pytest.mark.parametrize(("activation", "parameters", "function"), CONV, ids=[str(case[0]) for case in CONV])
@pytest.mark.parametrize("residual", [True, False])
def test_fused_conv(activation, parameters, function, residual) -> None:
    x, w, b, z = normal(2, 4, 7, 7), normal(6, 2, 3, 3), normal(6), normal(2, 6, 4, 4)
    how = {"group": 2, "strides": [2, 2], "pads": [1, 1, 1, 1], "activation": activation}
    how["activation_params"] = list(parameters) or None
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    summed = np.zeros((2, 6, 4, 4))
    for n, m, i, j in np.ndindex(summed.shape):
        channels = slice(0, 2) if m < 3 else slice(2, 4)
        summed[n, m, i, j] = (padded[n, channels, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] * w[m]).sum() + b[m]
    expected = function(summed + z if residual else summed)
    inputs = [x, w, b, z] if residual else [x, w, b]
    np.testing.assert_allclose(ours("FusedConv", inputs, **how), expected, rtol=1e-4, atol=1e-5)
    assert_agree("FusedConv", inputs, **how, rtol=1e-4, atol=1e-5)


def test_fused_conv_faults() -> None:
    x, w = normal(1, 1, 4, 4), normal(1, 1, 3, 3)
    with pytest.raises(NodeError, match=r"Z has shape \[1, 1, 4, 4\], the convolution \[1, 1, 2, 2\]"):
        ours("FusedConv", [x, w, None, x])
    with pytest.raises(NodeError, match=r"activation 'Clip' needs the parameters \(min, max\)"):
        ours("FusedConv", [x, w], activation="Clip", activation_params=[0.5])

"""The normalisations that onnxruntime writes, against their formulas in float64 and against onnxruntime."""

import ml_dtypes
import numpy as np
import pytest
from ops.contrib.nodes import assert_agree, ours

from onnxeval.errors import NodeError

RNG = np.random.default_rng(12)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


X, GAMMA, BETA, BIAS = normal(2, 3, 8), normal(8), normal(8), normal(8)
EVERY = (0, 1, 2, 3)


def standardised(x, epsilon, axes=(-1,)):
    x = x.astype(np.float64)
    mean = x.mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse


def rooted(x, epsilon, axes=(-1,)):
    x = x.astype(np.float64)
    inverse = 1 / np.sqrt((x * x).mean(axis=axes, keepdims=True) + epsilon)
    return x * inverse, inverse


def assert_close(given, expected, rtol=1e-5, atol=1e-5):
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, np.broadcast_to(other, one.shape), rtol=rtol, atol=atol)


@pytest.mark.parametrize("skip_shape", [(2, 3, 8), (1, 3, 8), (3, 8)])
@pytest.mark.parametrize(("beta", "bias"), [(BETA, BIAS), (None, None), (None, BIAS)])
def test_skip_layer_normalization(skip_shape, beta, bias) -> None:
    inputs = [X, normal(*skip_shape), GAMMA, beta, bias]
    total = X + inputs[1] + (0 if bias is None else bias)
    y, mean, inverse = standardised(total, 0.1)
    expected = y * GAMMA + (0 if beta is None else beta), mean, inverse, total
    assert_close(ours("SkipLayerNormalization", inputs, outputs=EVERY, epsilon=0.1), expected)
    assert_agree("SkipLayerNormalization", inputs, outputs=EVERY, epsilon=0.1)


@pytest.mark.parametrize("skip_shape", [(2, 3, 8), (1, 3, 8), (3, 8)])
@pytest.mark.parametrize("bias", [BIAS, None])
def test_skip_simplified_layer_normalization(skip_shape, bias) -> None:
    inputs = [X, normal(*skip_shape), GAMMA, bias]
    total = X + inputs[1] + (0 if bias is None else bias)
    y, inverse = rooted(total, 0.1)
    given = ours("SkipSimplifiedLayerNormalization", inputs, outputs=EVERY, epsilon=0.1)
    assert_close(given, (y * GAMMA, 0, inverse, total))
    assert_agree("SkipSimplifiedLayerNormalization", inputs, outputs=EVERY, epsilon=0.1)


@pytest.mark.parametrize("op_type", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_default_epsilon_and_inputs_of_rank_2(op_type) -> None:
    tiny = [normal(3, 8) * 1e-5, normal(3, 8) * 1e-5, GAMMA]
    assert_agree(op_type, tiny, outputs=(0, 3), rtol=1e-4)
    total = (tiny[0] + tiny[1]).astype(np.float64)
    y = (standardised if op_type == "SkipLayerNormalization" else rooted)(total, 1e-12)[0] * GAMMA
    np.testing.assert_allclose(ours(op_type, tiny), y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_simplified_layer_normalization_stands_in_the_standards_domain(axis) -> None:
    scale = normal(*X.shape[axis:])
    axes = tuple(range(axis % 3, 3))
    y, inverse = rooted(X, 1e-5, axes)
    how = {"domain": "", "outputs": 2, "axis": axis}
    assert_close(ours("SimplifiedLayerNormalization", [X, scale], **how), (y * scale, inverse))
    assert_agree("SimplifiedLayerNormalization", [X, scale], **how)


@pytest.mark.parametrize("bias", [BETA, None])
@pytest.mark.parametrize("opset", [9, 12, 16])
def test_layer_normalization_before_opset_17(opset, bias) -> None:
    y, mean, inverse = standardised(X, 1e-5)
    inputs = [X, GAMMA, bias]
    given = ours("LayerNormalization", inputs, domain="", opset=opset, outputs=3)
    assert_close(given, (y * GAMMA + (0 if bias is None else bias), mean, inverse))
    assert_agree("LayerNormalization", inputs, domain="", opset=opset, outputs=3)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("scale_dtype", [np.float32, "the same"])
def test_half_precision_takes_the_type_of_the_scale(dtype, scale_dtype) -> None:
    x, scale = X.astype(dtype), GAMMA.astype(dtype if scale_dtype == "the same" else scale_dtype)
    y, inverse = ours("SimplifiedLayerNormalization", [x, scale], domain="", outputs=2)
    assert y.dtype == scale.dtype
    assert inverse.dtype == np.float32
    expected = rooted(x, 1e-5)[0] * scale.astype(np.float64)
    eps = float(ml_dtypes.finfo(scale.dtype).eps)
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=max(eps, 1e-5), atol=1e-6)


def test_double_stays_double() -> None:
    x, scale = X.astype(np.float64), GAMMA.astype(np.float64)
    y = ours("SimplifiedLayerNormalization", [x, scale], domain="")
    np.testing.assert_allclose(y, rooted(x, 1e-5)[0] * scale, rtol=1e-11)
    assert_agree("SimplifiedLayerNormalization", [x, scale], domain="", rtol=1e-12)


def test_faults() -> None:
    with pytest.raises(NodeError, match=r"skip has shape \[2, 8\], the input \[2, 3, 8\]"):
        ours("SkipLayerNormalization", [X, normal(2, 8), GAMMA])
    with pytest.raises(NodeError, match=r"gamma has shape \[4\], expected \[8\]"):
        ours("SkipSimplifiedLayerNormalization", [X, X, GAMMA[:4]])
    with pytest.raises(NodeError, match=r"\[8\], expected \[N, H\] or \[B, S, H\]"):
        ours("SkipLayerNormalization", [GAMMA, GAMMA, GAMMA])

"""Activations element by element from the formulas of their texts, and where those overflow or cancel."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from onnxeval.registry import STANDARD

STANDARD.load_section("math")
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
DIGITS = {np.float16: 2**-11, ml_dtypes.bfloat16: 2**-8, np.float32: 1e-7, np.float64: 1e-15}


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


FORMULAS = {
    ("Relu", 14): ({}, lambda x: max(0, x)),
    ("LeakyRelu", 16): ({"alpha": 0.25}, lambda x: 0.25 * x if x < 0 else x),
    ("ThresholdedRelu", 22): ({"alpha": 1.5}, lambda x: x if x > 1.5 else 0),
    ("Elu", 22): ({"alpha": 2.0}, lambda x: 2 * (math.exp(x) - 1) if x < 0 else x),
    ("Selu", 22): (
        {"alpha": 1.75, "gamma": 1.25},
        lambda x: 1.25 * (1.75 * math.exp(x) - 1.75) if x <= 0 else 1.25 * x,
    ),
    ("Celu", 28): ({"alpha": 2.0}, lambda x: max(0, x) + min(0, 2 * (math.exp(x / 2) - 1))),
    ("Celu", 12): ({"alpha": -2.0}, lambda x: max(0, x) + min(0, -2 * (math.exp(x / -2) - 1))),
    ("HardSigmoid", 22): ({"alpha": 0.25, "beta": 0.5}, lambda x: max(0, min(1, 0.25 * x + 0.5))),
    ("HardSwish", 22): ({}, lambda x: x * max(0, min(1, x / 6 + 0.5))),
    ("Sigmoid", 13): ({}, sigmoid),
    ("Softplus", 22): ({}, lambda x: math.log(math.exp(x) + 1)),
    ("Softsign", 22): ({}, lambda x: x / (1 + abs(x))),
    ("Mish", 22): ({}, lambda x: x * math.tanh(math.log(1 + math.exp(x)))),
    ("Swish", 24): ({"alpha": 1.5}, lambda x: x * sigmoid(1.5 * x)),
    ("Gelu", 20): ({"approximate": "none"}, lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("key", FORMULAS, ids="-".join(["{}"]).format)
def test_formulas(key, dtype):
    attributes, formula = FORMULAS[key]
    x = np.linspace(-6, 6, 97).astype(dtype)
    result = STANDARD["", *key](x, **attributes)
    assert result.dtype == dtype
    expected = [formula(value) for value in x.astype(float).tolist()]
    np.testing.assert_allclose(result.astype(float), expected, rtol=4 * DIGITS[dtype], atol=4 * DIGITS[dtype])
    assert STANDARD["", *key](x[:0], **attributes).shape == (0,)
    assert STANDARD["", *key](x[3:4].reshape(()), **attributes).shape == ()


@pytest.mark.parametrize("dtype", FLOATS)
def test_gelu_by_tanh(dtype):
    x = np.linspace(-6, 6, 97).astype(dtype)
    result = STANDARD["", "Gelu", 20](x, approximate="tanh")
    assert result.dtype == dtype
    expected = [
        0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) for v in x.astype(float).tolist()
    ]
    np.testing.assert_allclose(result.astype(float), expected, rtol=4 * DIGITS[dtype], atol=4 * DIGITS[dtype])
    with pytest.raises(ValueError, match="'fast'"):
        STANDARD["", "Gelu", 20](x, approximate="fast")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("key", "attributes", "x", "expected"),
    [
        (("Sigmoid", 13), {}, [-95, -30, 40], [math.exp(-95), math.exp(-30), 1]),
        (("Softplus", 22), {}, [-95, -20, 1000], [math.exp(-95), math.exp(-20), 1000]),
        (("Mish", 22), {}, [-20, 1000], [-20 * math.exp(-20), 1000]),
        (("Swish", 24), {"alpha": 1.0}, [-95, 1000], [-95 * math.exp(-95), 1000]),
        (("Elu", 22), {"alpha": 1.0}, [-1e-6, 1000], [math.expm1(-1e-6), 1000]),
        (("Celu", 28), {"alpha": 0.5}, [-1e-6, 1000], [0.5 * math.expm1(-2e-6), 1000]),
        (("Selu", 6), {"alpha": 1.0, "gamma": 2.0}, [-1e-6, 1000], [2 * math.expm1(-1e-6), 2000]),
        (("Gelu", 20), {"approximate": "none"}, [-6, -9], [-3 * math.erfc(6 / 2**0.5), -4.5 * math.erfc(9 / 2**0.5)]),
        (("Gelu", 20), {"approximate": "none"}, [-1e-6, 1e-6], [-5e-7 * (1 - 8e-7), 5e-7 * (1 + 8e-7)]),
    ],
)
def test_no_overflow_and_no_cancellation(key, attributes, x, expected, dtype):
    result = STANDARD["", *key](np.array(x, dtype), **attributes)
    np.testing.assert_allclose(result.astype(float), expected, rtol=2e-5 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize("key", FORMULAS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_stays(key, dtype):
    result = STANDARD["", *key](np.array([np.nan, 1], dtype), **FORMULAS[key][0])
    if key[0] == "ThresholdedRelu":  # y = x for x > alpha, y = 0 otherwise
        assert result[0] == 0
    else:
        assert np.isnan(result.astype(float)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (("Relu", 6), [0, np.inf]),
        (("LeakyRelu", 6), [-np.inf, np.inf]),
        (("Elu", 6), [-2, np.inf]),
        (("Sigmoid", 6), [0, 1]),
        (("Softplus", 1), [0, np.inf]),
        (("HardSigmoid", 6), [0, 1]),
    ],
)
def test_infinities(key, expected):
    attributes = next(a for (name, _), (a, _) in FORMULAS.items() if name == key[0])
    result = STANDARD["", *key](np.array([-np.inf, np.inf], np.float32), **attributes)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_relu_of_integers(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    result = STANDARD["", "Relu", 14](np.array([low, -1, 0, high], dtype))
    assert result.dtype == dtype
    assert result.tolist() == [0, 0, 0, high]


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64, np.uint32, np.uint64])
def test_prelu_broadcasts_one_way(dtype):
    prelu = STANDARD["", "PRelu", 16]
    signs = np.array([-3, 2, -1], int) if np.dtype(dtype).kind != "u" else np.array([3, 2, 2**31 + 1])
    x = np.resize(signs, (2, 3, 4)).astype(dtype)
    for shape in [(), (1,), (4,), (3, 1), (3, 4), (2, 1, 1), (2, 3, 4)]:
        slope = np.full(shape, 2, dtype)
        result = prelu(x, slope)
        assert result.dtype == dtype
        assert result.tolist() == [[[2 * v if v < 0 else v for v in row] for row in m] for m in x.tolist()]
    for shape in [(2,), (5,), (1, 1, 1, 1), (2, 2, 3, 4)]:
        with pytest.raises(ValueError, match="slope of shape"):
            prelu(x, np.ones(shape, dtype))
    with pytest.raises(ValueError, match="slope of shape"):
        prelu(x[:, :1], np.ones((3, 1), dtype))


def test_prelu_by_channel_before_7():
    prelu = STANDARD["", "PRelu", 6]
    x = -np.ones((2, 3, 3), np.float32)
    slope = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(prelu(x, slope), -np.broadcast_to(slope[:, None], (2, 3, 3)))
    np.testing.assert_array_equal(STANDARD["", "PRelu", 7](x, slope), -np.broadcast_to(slope, (2, 3, 3)))
    np.testing.assert_array_equal(prelu(x, np.array([5], np.float32)), 5 * x)
    np.testing.assert_array_equal(prelu(x, np.arange(18, dtype=np.float32).reshape(x.shape)).ravel(), -np.arange(18))
    np.testing.assert_array_equal(prelu(np.array([-1, 1], np.float16), np.array([2, 2], np.float16)), [-2, 1])
    with pytest.raises(ValueError, match="not one a channel"):
        prelu(x, np.ones(2, np.float32))


def test_swiglu():
    swiglu = STANDARD["", "SwiGLU", 28]
    gate, value = np.array([1.0, -2.0], np.float32), np.array([3.0, 4.0], np.float32)
    expected = [v * g * sigmoid(0.5 * g) for g, v in zip([1, -2], [3, 4], strict=True)]
    np.testing.assert_allclose(swiglu(gate, value, alpha=0.5), expected, rtol=1e-6)
    assert swiglu(gate.astype(ml_dtypes.bfloat16), value.astype(ml_dtypes.bfloat16), alpha=0.5).dtype == "bfloat16"
    with pytest.raises(ValueError, match=r"\[2\] and \[1\] differ"):
        swiglu(gate, value[:1], alpha=1.0)

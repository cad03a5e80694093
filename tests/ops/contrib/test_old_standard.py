"""Operators that left the standard with opset 10, and ConvTranspose with padding as an input."""

import numpy as np
import pytest
from ops.contrib.codes import F32
from ops.contrib.nodes import assert_agree, ours

import onnxeval

X = np.random.default_rng(0).standard_normal((2, 3, 6, 7)).astype(F32)
HOW = {"domain": "", "opset": 9}
CASES = {
    "Affine": ({"alpha": 2.0, "beta": 1.0}, lambda x: 2 * x + 1),
    "Affine, defaults": ({}, lambda x: x),
    "Scale": ({"scale": -2.5}, lambda x: -2.5 * x),
    "Scale, defaults": ({}, lambda x: x),
    "ScaledTanh": ({"alpha": 2.0, "beta": 0.5}, lambda x: 2 * np.tanh(x / 2)),
    "ParametricSoftplus": ({"alpha": 2.0, "beta": 50.0}, lambda x: 2 * np.logaddexp(50 * x, 0)),
    "ImageScaler": ({"bias": [1.0, 2.0, -3.0], "scale": 0.5}, lambda x: x / 2 + np.array([1, 2, -3])[:, None, None]),
    "Crop": ({"border": [1, 2, 3, 0]}, lambda x: x[:, :, 2:, 1:4]),
    "Crop, scale": ({"border": [1, 2, 9, 9], "scale": [3, 4]}, lambda x: x[:, :, 2:5, 1:5]),
    "Crop, nothing left": ({"border": [3, 0, 4, 0]}, lambda x: x[:, :, :, 3:3]),
}


@pytest.mark.parametrize("dtype", [np.float16, F32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_formula(name, dtype) -> None:
    attributes, function = CASES[name]
    x = X.astype(dtype)
    given = ours(name.split(",")[0], [x], **HOW, **attributes)
    assert given.dtype == dtype
    tolerance = {"rtol": 1e-3 if dtype == np.float16 else 1e-6, "atol": 1e-3 if dtype == np.float16 else 1e-6}
    np.testing.assert_allclose(given, function(x.astype(float)), **tolerance)


@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime(name) -> None:
    assert_agree(name.split(",")[0], [X], **HOW, **CASES[name][0])


def test_image_scaler_without_bias() -> None:
    np.testing.assert_array_equal(ours("ImageScaler", [X], scale=2.0, **HOW), X * 2)


D = np.arange(24, dtype=F32).reshape(4, 6)
SLICES = [
    (([1, 0], [2, 3], [0, 1]), np.s_[1:2, 0:3]),
    (([0, 1], [-1, 1000], None), np.s_[:-1, 1:]),
    (([1], [3], [-1]), np.s_[:, 1:3]),
    (([3], [1], [0]), np.s_[3:1]),
    (([-100], [3], [0]), np.s_[:3]),
]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(("bounds", "wanted"), SLICES)
def test_dynamic_slice(bounds, wanted, index) -> None:
    inputs = [D, *(None if each is None else np.array(each, index) for each in bounds)]
    np.testing.assert_array_equal(ours("DynamicSlice", inputs, **HOW), D[wanted])
    assert_agree("DynamicSlice", inputs, **HOW)


def test_dynamic_slice_of_text() -> None:
    x = np.array(["a", "b", "c"], object)
    assert ours("DynamicSlice", [x, np.array([1]), np.array([9])], **HOW).tolist() == ["b", "c"]


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("Crop", [X[0]], {"border": [0] * 4}, r"expected \[N, C, H, W\]"),
        ("Crop", [X], {"border": [1, 2, 3]}, "is not four sizes"),
        ("Crop", [X], {"border": [-1, 0, 0, 0]}, "is not four sizes"),
        ("Crop", [X], {"border": [4, 0, 4, 0]}, r"border \[4, 0, 4, 0\] leave the input"),
        ("Crop", [X], {"border": [0, 2, 0, 0], "scale": [5, 1]}, r"scale \[5, 1\] leave the input"),
        ("Crop", [X], {"border": [0, 2, 0, 0], "scale": [5]}, "is not a height and a width"),
        ("ImageScaler", [X], {"bias": [1.0, 2.0]}, "bias has 2 values, the input 3 channels"),
        ("DynamicSlice", [D, np.array([1]), np.array([1, 2])], {}, "."),
        ("Affine", [D.astype(np.int32)], {}, "is int32, allowed"),
    ],
)
def test_refusals(op_type, inputs, attributes, message) -> None:
    with pytest.raises(onnxeval.NodeError, match=message):
        ours(op_type, inputs, **HOW, **attributes)


def test_what_has_no_default_must_be_given() -> None:
    with pytest.raises(onnxeval.ModelError, match="needs the attribute beta"):
        ours("ScaledTanh", [X], alpha=1.0, **HOW)


TRANSPOSED = [
    {},
    {"strides": [2, 2]},
    {"strides": [2, 3], "output_padding": [1, 1]},
    {"dilations": [2, 1]},
    {"group": 2},
]


def transposed(group, pads):
    draw = np.random.default_rng(1)
    x, w, b = (draw.standard_normal(shape).astype(F32) for shape in ((1, 4, 5, 6), (4, 3, 3, 2), (3 * group,)))
    return [x, w, None if pads is None else np.array(pads, np.int64), b]


def lay_kernels(x, w, b, strides=(1, 1), dilations=(1, 1), output_padding=(0, 0), group=1):
    """Each element lays its kernel onto the output; nothing is cut off."""
    reach = [(size - 1) * d + 1 for size, d in zip(w.shape[2:], dilations, strict=True)]
    sizes = [(n - 1) * s + r + p for n, s, r, p in zip(x.shape[2:], strides, reach, output_padding, strict=True)]
    y = np.zeros((len(x), len(b), *sizes))
    for c, i, j in np.ndindex(*x.shape[1:]):
        maps = slice(c // (x.shape[1] // group) * w.shape[1], (c // (x.shape[1] // group) + 1) * w.shape[1])
        top, left = i * strides[0], j * strides[1]
        places = (slice(top, top + reach[0], dilations[0]), slice(left, left + reach[1], dilations[1]))
        y[0, maps, places[0], places[1]] += x[0, c, i, j] * w[c]
    return y + b[:, None, None]


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 1], None])
@pytest.mark.parametrize("attributes", TRANSPOSED)
def test_conv_transpose(attributes, pads) -> None:
    inputs = transposed(attributes.get("group", 1), pads)
    whole = lay_kernels(*inputs[:2], inputs[3], **attributes)
    top, left, bottom, right = pads or [0] * 4
    wanted = whole[:, :, top : whole.shape[2] - bottom, left : whole.shape[3] - right]
    given = ours("ConvTransposeWithDynamicPads", inputs, **attributes)
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)
    if pads is not None:
        assert_agree("ConvTransposeWithDynamicPads", inputs, rtol=1e-4, atol=1e-5, **attributes)


def test_conv_transpose_refuses() -> None:
    with pytest.raises(onnxeval.NodeError, match=r"pads \[1, 0\] has 2 values"):
        ours("ConvTransposeWithDynamicPads", transposed(1, [1, 0]))
    with pytest.raises(onnxeval.NodeError, match="has a negative value"):
        ours("ConvTransposeWithDynamicPads", transposed(1, [1, 0, -1, 0]))
